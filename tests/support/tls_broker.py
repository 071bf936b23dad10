"""A real broker with TLS, and the stores of it, its users and an authority that all trust."""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Mapping
from pathlib import Path

from tests.support.certificates import PASSWORD, Authority, Issued, rsa_key, subject
from tests.support.kavka_process import KavkaProcess

TIMEOUT_S = 120.0
SSL_PORT = re.compile(r'msg="?serving"?.*?[, =]SSL://127\.0\.0\.1:(\d+)')


class Stores:
    """Files of a broker, of a user, and of an authority that both trust."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.authority = Authority()
        self.broker = self.authority.issue("broker", key=rsa_key())
        self.user = self.authority.issue(subject("user", organisation="Kavka"), hosts=())
        self.trust_pem = self.authority.write_pem(directory / "trust.pem")
        self.trust = self.authority.write_pkcs12(directory / "trust.p12")
        self.keys = self.broker.write_pkcs12(directory / "broker.p12")
        self.user_key = self.user.write_key_pem(directory / "user.key", PASSWORD)
        self.user_chain = self.user.write_chain_pem(directory / "user.pem")
        self.user_keys = self.user.write_pkcs12(directory / "user.p12")

    def put(self, issued: Issued) -> None:
        """Replace the broker's key store."""
        issued.write_pkcs12(self.directory / "fresh.p12").replace(self.keys)

    def client(self, own: Issued | None = None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.trust_pem)
        if own is not None:
            context.load_cert_chain(own.write_pem(self.directory / "own.pem"))
        return context

    @property
    def librdkafka(self) -> dict[str, str]:
        return {
            "security.protocol": "ssl",
            "ssl.ca.location": str(self.trust_pem),
            "ssl.key.location": str(self.user_key),
            "ssl.key.password": PASSWORD,
            "ssl.certificate.location": str(self.user_chain),
        }

    @property
    def java(self) -> Path:
        path = self.directory / "client.properties"
        settings = {
            "security.protocol": "SSL",
            "ssl.truststore.location": self.trust,
            "ssl.truststore.password": PASSWORD,
            "ssl.keystore.location": self.user_keys,
            "ssl.keystore.password": PASSWORD,
        }
        path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        return path


class TlsBroker(KavkaProcess):
    """With a plaintext listener and one with TLS, which asks for certificates."""

    def __init__(self, directory: Path, stores: Stores, overrides: Mapping[str, str] | None = None) -> None:
        settings = {
            "broker.id": "1",
            "listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0",
            "ssl.keystore.location": str(stores.keys),
            "ssl.keystore.password": PASSWORD,
            "ssl.truststore.location": str(stores.trust),
            "ssl.truststore.password": PASSWORD,
            "listener.name.ssl.ssl.client.auth": "required",
            "metrics.port": "0",
            "offsets.topic.num.partitions": "1",
            "password.encoder.secret": PASSWORD,
            **(overrides or {}),
        }
        super().__init__(directory, settings)

    @property
    def tls_port(self) -> int:
        return int(self.process.wait_for_log(SSL_PORT.pattern, TIMEOUT_S)[1])

    def connect(self, context: ssl.SSLContext) -> ssl.SSLSocket:
        """A socket behind its handshake. Raises OSError."""
        plain = socket.create_connection(("127.0.0.1", self.tls_port), TIMEOUT_S)
        try:
            return context.wrap_socket(plain, server_hostname="localhost")
        except BaseException:
            plain.close()
            raise

    def shown(self, stores: Stores) -> bytes | None:
        """The certificate that a client is shown now."""
        with self.connect(stores.client(stores.user)) as connected:
            return connected.getpeercert(binary_form=True)
