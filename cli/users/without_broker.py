"""A SCRAM credential written where brokers will find it, while none runs: so that the first user can log in at all."""

import time
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from kavka.broker.registry_choice import open_embedded, open_zookeeper
from kavka.cluster.entity_configs import write_config
from kavka.cluster.registry.base import Registry
from kavka.cluster.znodes.scram_credential import credential_text, entity_of_user
from kavka.config.broker_config import BrokerConfig
from kavka.protocol.sasl.scram import ScramMechanism, credential_of
from kavka.storage.files import Files
from kavka.storage.log_directories import LogDirectories
from kavka.storage.meta_properties import MetaProperties, read_meta_properties


def write_user(config: BrokerConfig, user: str, mechanisms: Iterable[str], password: str, iterations: int) -> None:
    """Give a user a password for these mechanisms, in place of one that there is.

    In ZooKeeper brokers that run hear of it; the file of a broker that stands alone is for a stopped one, or for one
    that is still to be started for the first time. Raises one of `adopting.REFUSED`.
    """
    texts = {each: credential_text(credential_of(ScramMechanism(each), password, iterations)) for each in mechanisms}
    if config.zookeeper_connect:
        owner = read_meta_properties(Path(config.log_dirs[0]), Files()) or MetaProperties(None, None)
        with closing(open_zookeeper(config, owner)) as registry:
            _write(registry, user, texts)
        return
    directories = LogDirectories(config.log_dirs, Files(), lambda _: None)
    directories.lock()
    try:
        with closing(open_embedded(config, lambda: time.time_ns() // 1_000_000)) as registry:
            _write(registry, user, texts)
    finally:
        directories.unlock()


def _write(registry: Registry, user: str, texts: dict[str, str]) -> None:
    write_config(registry, entity_of_user(user), lambda stored: {**stored, **texts})
