"""Listeners of every kind beside a plaintext one, of Kavka's brokers or Apache Kafka's, and clients that may enter."""

from pathlib import Path
from typing import Final

from kavka.client import Admin, ScramMechanism, UserScramCredentialUpsertion
from tests.support.certificates import PASSWORD, Authority, Issued
from tests.support.processes import free_port

USER: Final = "alice"
SECRET: Final = "wonderland-4711"
BROKER_USER: Final = "broker"
BROKER_SECRET: Final = "between-us-0815"
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
PROTOCOLS: Final = ("SSL", "SASL_PLAINTEXT", "SASL_SSL")
_PACKAGE: Final = "org.apache.kafka.common.security"
_MODULES: Final = {
    "PLAIN": f"{_PACKAGE}.plain.PlainLoginModule",
    "SCRAM-SHA-256": f"{_PACKAGE}.scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{_PACKAGE}.scram.ScramLoginModule",
    "OAUTHBEARER": f"{_PACKAGE}.oauthbearer.OAuthBearerLoginModule",
}


def client_jaas(mechanism: str, user: str = USER, secret: str = SECRET) -> str:
    """A client's sasl.jaas.config."""
    if mechanism == "OAUTHBEARER":
        return f'{_MODULES[mechanism]} required unsecuredLoginStringClaim_sub="{user}";'
    return f'{_MODULES[mechanism]} required username="{user}" password="{secret}";'


class SecureListeners:
    """Stores and passwords lie in `directory`. The TLS listener takes clients with certificates and without."""

    def __init__(self, directory: Path, host: str = "127.0.0.1") -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.authority: Final = Authority()
        self.client_key: Final[Issued] = self.authority.issue(USER)
        self.key_store: Final = self.authority.issue("kavka-broker").write_pkcs12(directory / "server.p12")
        self.trust_store: Final = self.authority.write_pkcs12(directory / "trust.p12")
        self.authority_pem: Final = self.authority.write_pem(directory / "authority.pem")
        self.client_store: Final = self.client_key.write_pkcs12(directory / "client.p12")
        self.host: Final = host
        self.ports: Final = {protocol: free_port() for protocol in PROTOCOLS}

    @property
    def listeners(self) -> str:
        """To be added to a broker's `listeners`."""
        return ",".join(f"{protocol}://{self.host}:{port}" for protocol, port in self.ports.items())

    def settings(self) -> dict[str, str]:
        """A broker's, but for `listeners`."""
        settings = {
            "sasl.enabled.mechanisms": ",".join(MECHANISMS),
            "ssl.client.auth": "requested",
            **self.stores("key", self.key_store),
            **self.stores("trust", self.trust_store),
        }
        for listener in ("sasl_plaintext", "sasl_ssl"):
            for mechanism in MECHANISMS:
                name = f"listener.name.{listener}.{mechanism.lower()}.sasl.jaas.config"
                settings[name] = self._jaas(mechanism)
        return settings

    def stores(self, kind: str, path: Path) -> dict[str, str]:
        """A key store or a trust store, for brokers and clients."""
        settings = {f"ssl.{kind}store.location": str(path), f"ssl.{kind}store.password": PASSWORD}
        return {**settings, "ssl.key.password": PASSWORD} if kind == "key" else settings

    def client(self, protocol: str, mechanism: str | None = None, *, secret: str = SECRET) -> dict[str, str]:
        """A client's settings, `bootstrap.servers` among them."""
        settings = {"bootstrap.servers": f"{self.host}:{self.ports[protocol]}", "security.protocol": protocol}
        if protocol.endswith("SSL"):
            settings |= self.stores("trust", self.trust_store)
        if mechanism is not None:
            settings |= {"sasl.mechanism": mechanism, "sasl.jaas.config": client_jaas(mechanism, secret=secret)}
        return settings

    def create_scram_users(self, bootstrap: str) -> None:
        """By a listener that lets anybody in."""
        with Admin(bootstrap_servers=bootstrap) as admin:
            for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
                users = ((USER, SECRET), (BROKER_USER, BROKER_SECRET))
                admin.alter_user_scram_credentials(
                    [UserScramCredentialUpsertion(user, mechanism, secret) for user, secret in users]
                )

    def _jaas(self, mechanism: str) -> str:
        if mechanism == "PLAIN":
            known = f'user_{USER}="{SECRET}" user_{BROKER_USER}="{BROKER_SECRET}"'
            return f'{_MODULES[mechanism]} required username="{BROKER_USER}" password="{BROKER_SECRET}" {known};'
        return client_jaas(mechanism, BROKER_USER, BROKER_SECRET)
