"""Brokers with listeners of every kind, and the ways in that loads take: Kavka, Apache Kafka 3.9, and Kavka by itself.

A server knows by which listener its loads come (`way`). Topics are made, users and rights written by the plaintext one.
"""

import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.contestants import KAFKA_HEAP, KAVKA_WARM_SHARE, Contestant
from benchmarks.librdkafka import LoadFailedError
from kavka.client import AclBinding, AclOperation, Admin, ClientQuotaEntity, PatternType, ResourceType
from tests.support.certificates import rsa_key
from tests.support.kafka_process import KAFKAS_JVM
from tests.support.kavka_process import KavkaProcess
from tests.support.processes import free_port
from tests.support.secure_kafka import SecureZooKeeperKafka
from tests.support.secure_listeners import SECRET, USER, SecureListeners
from tests.support.server import RunningServer

CIPHER: Final = "TLS_AES_256_GCM_SHA384"
"""What OpenSSL's clients ask for first; nothing else is left to Kafka."""
VERSION: Final = "TLSv1.3"
ACLS: Final = 1000
OWN_ACLS: Final = 200
ACLS_A_REQUEST: Final = 250
FAR_OFF: Final = {"producer_byte_rate": 1e12, "consumer_byte_rate": 1e12, "request_percentage": 1e6}
SUPER_USER: Final = "broker"
"""One of the users that `SecureListeners` knows; its password is `BROKER_SECRET`."""


@dataclass(frozen=True)
class Way:
    """A listener, and what librdkafka has to be told to come in by it."""

    bootstrap: str
    properties: Mapping[str, str]


class Stores(SecureListeners):
    """As the tests have them, with the kind of key that most brokers have; TLS by one cipher, before SASL both ways."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.authority.issue("broker", key=rsa_key()).write_pkcs12(self.key_store)
        self.client_pem: Final = self.client_key.write_pem(directory / "client.pem")

    def settings(self) -> dict[str, str]:
        return {
            **super().settings(),
            "ssl.client.auth": "none",
            "listener.name.sasl_ssl.ssl.client.auth": "required",
            "ssl.enabled.protocols": VERSION,
            "ssl.cipher.suites": CIPHER,
        }

    def client_context(self) -> ssl.SSLContext:
        """Of a client that shows its certificate where it is asked for."""
        context = ssl.create_default_context(cafile=str(self.authority_pem))
        context.load_cert_chain(str(self.client_pem))
        return context

    def tls(self) -> Way:
        properties = {"security.protocol": "ssl", "ssl.ca.location": str(self.authority_pem)}
        return Way(f"{self.host}:{self.ports['SSL']}", properties)

    def password(self) -> Way:
        properties = {"sasl.mechanisms": "PLAIN", "sasl.username": USER, "sasl.password": SECRET}
        return Way(f"{self.host}:{self.ports['SASL_PLAINTEXT']}", {"security.protocol": "sasl_plaintext", **properties})


class Secure(RunningServer):
    """A broker with all kinds of listeners. Loads come by TLS."""

    stores: Stores

    @property
    def way(self) -> Way:
        return self.stores.tls()

    def start(self) -> float:
        seconds = super().start()
        self.stores.create_scram_users(self.bootstrap)
        return seconds


class TlsKavka(Secure, KavkaProcess):
    """Kavka."""

    def __init__(self, directory: Path, settings: Mapping[str, str]) -> None:
        self.stores = Stores(directory / "stores")
        plain = f"PLAINTEXT://{self.host}:{free_port()}"
        listeners = {"listeners": f"{plain},{self.stores.listeners}", **self.stores.settings()}
        # Asked for a suite of TLS 1.3 alone, it says that it has no choice.
        super().__init__(directory, {**settings, **listeners})


class TlsKafka(Secure, SecureZooKeeperKafka):
    """Apache Kafka 3.9, beside a ZooKeeper."""

    def __init__(self, directory: Path, settings: Mapping[str, str]) -> None:
        self.stores = Stores(directory / "stores")
        super().__init__(directory, self.stores)
        self.overrides |= settings
        self.heap, self.jvm = KAFKA_HEAP, KAFKAS_JVM


class GuardedKavka(TlsKavka):
    """Kavka with a thousand ACLs and quotas that nobody comes near. Loads come by SASL, without TLS, as `USER`."""

    def __init__(self, directory: Path, settings: Mapping[str, str]) -> None:
        rights = {
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": f"User:ANONYMOUS;User:{SUPER_USER}",
        }
        super().__init__(directory, {**settings, **rights})

    @property
    def way(self) -> Way:
        return self.stores.password()

    def start(self) -> float:
        seconds = super().start()
        with Admin(bootstrap_servers=self.bootstrap) as admin:
            bindings = _bindings()
            for begin in range(0, len(bindings), ACLS_A_REQUEST):
                admin.create_acls(bindings[begin : begin + ACLS_A_REQUEST])
            admin.alter_client_quotas({ClientQuotaEntity.of(user=USER): FAR_OFF})
        return seconds


class PlainKavka(KavkaProcess):
    """Kavka with nothing of it configured."""

    @property
    def way(self) -> Way:
        # Said, so that the same program sends.
        return Way(self.bootstrap, {"security.protocol": "plaintext"})


class SecureKavka(Contestant):
    name = "kavka"
    warm_share = KAVKA_WARM_SHARE

    def create(self, directory: Path, settings: Mapping[str, str]) -> RunningServer:
        return TlsKavka(directory, settings)


class SecureKafka(Contestant):
    name = "kafka"

    def create(self, directory: Path, settings: Mapping[str, str]) -> RunningServer:
        return TlsKafka(directory, settings)


class WithSecurity(Contestant):
    """In the tables of Kavka by itself this one stands where Kavka does elsewhere, and the next where Kafka does."""

    name = "kavka"

    def create(self, directory: Path, settings: Mapping[str, str]) -> RunningServer:
        return GuardedKavka(directory, settings)


class WithoutSecurity(Contestant):
    name = "kafka"

    def create(self, directory: Path, settings: Mapping[str, str]) -> RunningServer:
        return PlainKavka(directory, settings)


def way_of(server: RunningServer) -> Way:
    """By which loads come."""
    assert isinstance(server, Secure | PlainKavka)
    return server.way


def stores_of(server: RunningServer) -> Stores:
    assert isinstance(server, Secure)
    return server.stores


def check_cipher(context_cipher: tuple[str, str, int] | None) -> None:
    """Both are compared by the same one. Raises LoadFailedError."""
    if context_cipher is None or context_cipher[:2] != (CIPHER, VERSION):
        raise LoadFailedError(f"the connection's cipher is {context_cipher}, and not {CIPHER}")


def _bindings() -> Sequence[AclBinding]:
    """A thousand, two hundred of them of `USER`, who may do all that loads do by the first ones."""
    topic, group = ResourceType.TOPIC, ResourceType.GROUP
    whose = [f"User:{USER}" if number < OWN_ACLS else f"User:u{number % 100}" for number in range(ACLS)]
    found = [
        AclBinding(topic, f"topic-{number}", who, AclOperation.READ, pattern_type=PatternType.LITERAL)
        if number % 2
        else AclBinding(topic, f"prefix-{number}-", who, AclOperation.WRITE, pattern_type=PatternType.PREFIXED)
        for number, who in enumerate(whose)
    ]
    used = [(topic, "bench-", AclOperation.READ), (topic, "bench-", AclOperation.WRITE), (group, "", AclOperation.READ)]
    found[: len(used)] = [
        AclBinding(
            kind,
            name or "*",
            f"User:{USER}",
            operation,
            pattern_type=PatternType.PREFIXED if name else PatternType.LITERAL,
        )
        for kind, name, operation in used
    ]
    return found
