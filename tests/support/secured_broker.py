"""A broker on whose listeners everybody logs in by SCRAM and needs rights, and an operator who may do everything."""

import socket
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from kavka.client import Admin, ScramMechanism, UserScramCredentialDeletion, UserScramCredentialUpsertion
from tests.support.certificates import PASSWORD
from tests.support.kavka_process import KavkaProcess
from tests.support.processes import free_port, wait_until
from tests.support.scram_listener import HOST, jaas, lets_in, log_in
from tests.support.tls_broker import Stores
from tests.support.wire import LATEST, RawClient

TIMEOUT_S: Final = 60.0
SESSION_MS: Final = 10_000
BRIEF_MS: Final = 3_000
SECRET: Final = "a-secret-of-this-test"
MECHANISM: Final = ScramMechanism.SCRAM_SHA_256
ENCRYPTED, PLAIN, BRIEF, UNLIMITED = "SASL_SSL", "SASL_PLAINTEXT", "BRIEF", "UNLIMITED"
"""The listeners: sessions of the first two end after SESSION_MS, of the third after BRIEF_MS."""


class SecuredBroker:
    """`with SecuredBroker(tmp_path) as secured:` serves. Threads: any."""

    def __init__(self, directory: Path) -> None:
        self.stores: Final = Stores(directory)
        self.ports: Final = {listener: free_port() for listener in (ENCRYPTED, PLAIN, BRIEF, UNLIMITED)}
        secured = ",".join(f"{listener}://{HOST}:{port}" for listener, port in self.ports.items())
        settings = {
            "listeners": f"PLAINTEXT://{HOST}:{free_port()},{secured}",
            "listener.security.protocol.map": (
                f"PLAINTEXT:PLAINTEXT,{ENCRYPTED}:{ENCRYPTED},{PLAIN}:{PLAIN},{BRIEF}:{PLAIN},{UNLIMITED}:{PLAIN}"
            ),
            "sasl.enabled.mechanisms": "SCRAM-SHA-256",
            "connections.max.reauth.ms": str(SESSION_MS),
            f"listener.name.{BRIEF.lower()}.scram-sha-256.connections.max.reauth.ms": str(BRIEF_MS),
            f"listener.name.{UNLIMITED.lower()}.scram-sha-256.connections.max.reauth.ms": "0",
            "ssl.keystore.location": str(self.stores.keys),
            "ssl.keystore.password": PASSWORD,
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": "User:ANONYMOUS",
            "offsets.topic.num.partitions": "1",
            "group.initial.rebalance.delay.ms": "0",
            "quota.window.num": "2",
        }
        self.broker: Final = KavkaProcess(directory / "kavka", settings)
        self.admin: Admin

    def __enter__(self) -> Self:
        self.broker.start()
        self.admin = Admin(bootstrap_servers=self.broker.bootstrap)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.admin.close()
        self.broker.__exit__(kind, error, trace)

    def client(self, listener: str, user: str) -> dict[str, str]:
        """A user's settings."""
        settings = {
            "bootstrap.servers": f"{HOST}:{self.ports[listener]}",
            "security.protocol": listener,
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.jaas.config": jaas(user, SECRET),
        }
        if listener == ENCRYPTED:
            settings |= {"ssl.truststore.location": str(self.stores.trust), "ssl.truststore.password": PASSWORD}
        return settings

    def librdkafka(self, listener: str, user: str) -> dict[str, str]:
        """The same for librdkafka."""
        return {
            "bootstrap.servers": f"{HOST}:{self.ports[listener]}",
            "security.protocol": listener,
            "ssl.ca.location": str(self.stores.trust_pem),
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": user,
            "sasl.password": SECRET,
        }

    def connect(self, listener: str, user: str) -> RawClient:
        """By hand, and logged in once."""
        client = RawClient(HOST, self.ports[listener])
        assert log_in(client, user, SECRET)
        return client

    def add_user(self, name: str) -> None:
        self.admin.alter_user_scram_credentials([UserScramCredentialUpsertion(name, MECHANISM, SECRET)])
        wait_until(lambda: self.lets_in(name), TIMEOUT_S, f"{name} cannot log in")

    def remove_user(self, name: str) -> None:
        self.admin.alter_user_scram_credentials((), [UserScramCredentialDeletion(name, MECHANISM)])

    def lets_in(self, name: str) -> bool:
        return lets_in(self.ports[PLAIN], name, SECRET)

    def end(self, topic: str) -> int:
        """Of partition 0."""
        with RawClient(HOST, self.broker.port) as client:
            return client.offset(topic, LATEST)

    def shown_certificate(self) -> bytes | None:
        """To a new client."""
        with (
            socket.create_connection((HOST, self.ports[ENCRYPTED]), TIMEOUT_S) as plain,
            self.stores.client().wrap_socket(plain, server_hostname="localhost") as connected,
        ):
            return connected.getpeercert(binary_form=True)
