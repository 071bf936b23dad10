"""The settings that a stopped broker keeps in its registry because they were changed while it ran."""

import time
from collections.abc import Collection, Mapping
from pathlib import Path

from kavka.broker.registry_choice import open_embedded, open_zookeeper
from kavka.cluster.entity_configs import forget_config, read_configs, unreadable_configs, write_config
from kavka.cluster.registry.base import Registry
from kavka.cluster.registry.embedded import FILE_NAME
from kavka.config.broker_config import BrokerConfig
from kavka.config.errors import ConfigError
from kavka.config.listener_prefix import row_of
from kavka.config.topic_config import UNREADABLE
from kavka.config.values import HIDDEN
from kavka.storage.files import Files
from kavka.storage.log_directory import LogDirectory
from kavka.storage.meta_properties import MetaProperties, read_meta_properties

Kept = Mapping[str, Mapping[str, str]]
"""Broker id, or `<default>` for the cluster's defaults -> name -> text."""


def kept_settings(config: BrokerConfig, delete: Collection[str] = ()) -> Kept:
    """What is kept, without the names in `delete`, which are forgotten for good.

    In ZooKeeper those of all brokers are kept, and brokers that run hear of what is forgotten. The first log directory
    is held meanwhile. Raises DirectoryInUseError, OSError, RegistryError, IdentityError, and ConfigError where there is
    no registry or a name to delete is not kept: then nothing is changed.
    """
    directory = Path(config.log_dirs[0])
    file = directory / FILE_NAME
    if not config.zookeeper_connect and not file.exists():
        raise ConfigError("log.dirs", directory, f"its first directory must have the file {FILE_NAME}")
    held = LogDirectory(directory, Files())
    held.lock()
    try:
        registry: Registry
        if config.zookeeper_connect:
            registry = open_zookeeper(config, read_meta_properties(directory, Files()) or MetaProperties(None, None))
        else:
            registry = open_embedded(config, lambda: time.time_ns() // 1_000_000)
        try:
            kept = read_configs(registry, "brokers")
            broken = unreadable_configs(registry, "brokers")
            kept |= {entity: {UNREADABLE: reason} for entity, reason in broken.items()}
            if missing := [name for name in delete if not any(name in texts for texts in kept.values())]:
                raise ConfigError(missing[0], "--delete", "no such setting is kept")
            for entity, texts in kept.items():
                left = {name: text for name, text in texts.items() if name not in delete}
                if entity in broken:
                    if not left:
                        forget_config(registry, f"brokers/{entity}")
                        kept[entity] = left
                elif left != texts:
                    write_config(registry, f"brokers/{entity}", left)
                    kept[entity] = left
            return kept
        finally:
            registry.close()
    finally:
        held.unlock()


def shown(name: str, text: str) -> str:
    """`name=value`; of what may be a secret the name alone."""
    if name == UNREADABLE:
        return f"{name} {text}"
    row = row_of(name, BrokerConfig.ALL_ROWS)
    return f"{name}={HIDDEN if row is None or row.is_sensitive else text}"
