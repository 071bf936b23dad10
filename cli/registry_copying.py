"""A stopped broker's tree from its own file into ZooKeeper, and back.

There, the brokers of a cluster share it: the one that had it alone is the first. Back, it must be the only one again.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kavka.broker.metadata.identity import IdentityError
from kavka.broker.registry_choice import open_zookeeper
from kavka.cluster.broker_registration import known_cluster_id
from kavka.cluster.registry.base import NotEmptyError, Registry, RegistryError
from kavka.cluster.registry.embedded import FILE_NAME, EmbeddedRegistry
from kavka.cluster.registry.tree_copy import Node, read_tree, write_tree
from kavka.cluster.znodes.broker import BROKERS_PATH
from kavka.cluster.znodes.log_dirs_survey import LOG_DIRS_SURVEYED_PATH
from kavka.cluster.znodes.topic import TOPICS_PATH, TopicAssignment
from kavka.config.broker_config import BrokerConfig
from kavka.config.errors import ConfigError
from kavka.storage.files import Files
from kavka.storage.log_directories import LogDirectories
from kavka.storage.meta_properties import MetaProperties

PARTIAL_SUFFIX: Final = ".copying"


def copy_to_zookeeper(config: BrokerConfig) -> int:
    """The number of nodes copied. Raises one of `adopting.REFUSED`; the directories are locked meanwhile."""
    with _stopped(config) as (file, owner):
        if not file.exists():
            raise ConfigError("log.dirs", file.parent, f"its first directory must have the file {FILE_NAME}")
        with _opened(file) as source:
            cluster_id = _own_cluster(source, owner, str(file))
            nodes = [node for node in read_tree(source) if node.path != LOG_DIRS_SURVEYED_PATH]
        target = open_zookeeper(config, MetaProperties(None, None))
        try:
            write_tree(target, nodes, cluster_id)
        except NotEmptyError:
            raise RegistryError(
                f"zookeeper.connect={config.zookeeper_connect} leads to a tree with something in it; "
                "a copy needs an empty root path of its own"
            ) from None
        finally:
            target.close()
        return len(nodes)


def copy_from_zookeeper(config: BrokerConfig) -> int:
    """The number of nodes copied. The file takes the place of one that was there. Raises one of `adopting.REFUSED`."""
    with _stopped(config) as (file, owner):
        if owner.cluster_id is None or owner.broker_id is None:
            raise IdentityError(f"{file.parent} belongs to no broker: there is no meta.properties")
        source = open_zookeeper(config, owner)
        try:
            nodes = read_tree(source)
            if names := source.children(BROKERS_PATH):
                raise RegistryError(f"brokers of the cluster run: {', '.join(names)}; stop them before the copy")
        finally:
            source.close()
        _check_alone(nodes, owner.broker_id)
        partial = file.with_name(file.name + PARTIAL_SUFFIX)
        _remove(partial)
        with _opened(partial) as target:
            write_tree(target, nodes, owner.cluster_id)
            # Its topics are known: what else lies in the directories is nobody's.
            if target.exists(LOG_DIRS_SURVEYED_PATH) is None:
                target.create(LOG_DIRS_SURVEYED_PATH)
        if file.exists():
            # Ends its write-ahead log, which would be taken for the new file's.
            with _opened(file) as old:
                _own_cluster(old, owner, str(file))
        partial.replace(file)
        _sync(file.parent)
        return len(nodes)


@contextmanager
def _stopped(config: BrokerConfig) -> Iterator[tuple[Path, MetaProperties]]:
    """The registry's file and whose the directories are, which nobody else uses meanwhile."""
    if not config.zookeeper_connect:
        raise ConfigError("zookeeper.connect", config.zookeeper_connect, "must say where ZooKeeper is")
    directories = LogDirectories(config.log_dirs, Files(), lambda _: None)
    owner = directories.lock()
    try:
        yield Path(config.log_dirs[0]) / FILE_NAME, owner
    finally:
        directories.unlock()


@contextmanager
def _opened(file: Path) -> Iterator[EmbeddedRegistry]:
    registry = EmbeddedRegistry(file, lambda: time.time_ns() // 1_000_000)
    try:
        yield registry
    finally:
        registry.close()


def _own_cluster(registry: Registry, owner: MetaProperties, where: str) -> str:
    found = known_cluster_id(registry)
    if found is None or (owner.cluster_id is not None and found != owner.cluster_id):
        raise IdentityError(f"{where} has cluster {found}, the log directories belong to {owner.cluster_id}")
    return found


def _check_alone(nodes: list[Node], broker_id: int) -> None:
    """Raises RegistryError for a topic that this broker does not have alone."""
    for node in nodes:
        parent, _, topic = node.path.rpartition("/")
        if parent != TOPICS_PATH:
            continue
        for partition, replicas in TopicAssignment.decode(topic, node.data).replicas.items():
            if replicas != (broker_id,):
                raise RegistryError(
                    f"{topic}-{partition} has its replicas on brokers {', '.join(map(str, replicas))}: "
                    f"reassign all partitions to broker {broker_id} alone before the copy"
                )


def _remove(file: Path) -> None:
    for each in file.parent.glob(f"{file.name}*"):
        each.unlink()


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
