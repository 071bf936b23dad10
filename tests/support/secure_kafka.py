"""Apache Kafka with listeners of every kind beside its plaintext one."""

from pathlib import Path
from typing import Final

from tests.support.kafka_process import KRaftKafka, ZooKeeperKafka
from tests.support.secure_listeners import PROTOCOLS, SecureListeners

_PROTOCOLS_BY_NAME: Final = ",".join(f"{name}:{name}" for name in ("PLAINTEXT", *PROTOCOLS))


def _with_listeners(settings: dict[str, str], secure: SecureListeners) -> dict[str, str]:
    names = ("listeners", "advertised.listeners")
    return {**settings, **secure.settings(), **{name: f"{settings[name]},{secure.listeners}" for name in names}}


class SecureKRaftKafka(KRaftKafka):
    """Apache Kafka 4.3.1. Only its own process is stopped by `with`: users are written after the start."""

    def __init__(self, directory: Path, secure: SecureListeners) -> None:
        super().__init__(directory)
        self.secure: Final = secure

    def settings(self) -> dict[str, str]:
        protocols = {"listener.security.protocol.map": f"CONTROLLER:PLAINTEXT,{_PROTOCOLS_BY_NAME}"}
        return {**_with_listeners(super().settings(), self.secure), **protocols}


class SecureZooKeeperKafka(ZooKeeperKafka):
    """Apache Kafka 3.9, in ZooKeeper mode."""

    def __init__(self, directory: Path, secure: SecureListeners) -> None:
        super().__init__(directory)
        self.secure: Final = secure

    def settings(self) -> dict[str, str]:
        return _with_listeners(super().settings(), self.secure)


SECURE_KAFKAS: Final[dict[str, type[SecureKRaftKafka] | type[SecureZooKeeperKafka]]] = {
    "kafka-4.3": SecureKRaftKafka,
    "kafka-3.9": SecureZooKeeperKafka,
}
