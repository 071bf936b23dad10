"""Taking over a stopped Kafka's log directories before the first start: its topics, and their configurations.

A broker does the same by itself at its first start, but then keeps every topic for ever, because the configurations are
in ZooKeeper. Here the operator gives them, or ZooKeeper does. Topics that the registry does not know are entered at any
time here, where a later start leaves them alone.
"""

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from kavka.broker.metadata.identity import IdentityError, establish_identity
from kavka.broker.partitions.topic_adoption import enter_topics, find_topics
from kavka.cluster.broker_registration import prepare_tree
from kavka.cluster.registry.base import Registry, RegistryError
from kavka.cluster.registry.embedded import FILE_NAME, EmbeddedRegistry
from kavka.cluster.znodes.config import EntityConfig
from kavka.cluster.znodes.json_data import ZnodeError
from kavka.cluster.znodes.topic import TOPICS_PATH
from kavka.config.broker_config import BrokerConfig
from kavka.config.errors import ConfigError
from kavka.config.topic_config import validate_topic_overrides
from kavka.protocol.errors import BrokerError
from kavka.storage.adoption import AdoptionError
from kavka.storage.files import Files
from kavka.storage.log_directories import LogDirectories, NoLogDirectoryError
from kavka.storage.log_directory import DirectoryInUseError
from kavka.storage.log_loading import DuplicatePartitionError, find_folders
from kavka.storage.meta_properties import META_PROPERTIES_FILE, MetaPropertiesError

TopicConfigs = Mapping[str, Mapping[str, str]]
REFUSED = (
    OSError,
    AdoptionError,
    BrokerError,
    ConfigError,
    DirectoryInUseError,
    DuplicatePartitionError,
    IdentityError,
    MetaPropertiesError,
    NoLogDirectoryError,
    RegistryError,
    ZnodeError,
)
"""What may keep the directories from being adopted; each says why."""


def adopt(
    config: BrokerConfig, zookeeper: str | None = None, settings: Sequence[tuple[str, str, str]] = ()
) -> TopicConfigs:
    """Enter the topics that lie in `log.dirs` into the registry, unless they are there, and configure them.

    First come the configurations that ZooKeeper has, if it is given, then `settings`: (topic, name, value), no value
    for the broker's default. A wrong one changes no configuration. Returns what all topics have then. Raises one of
    REFUSED; the directories are locked meanwhile.
    """
    _require_kafka_directories(config.log_dirs)
    with _opened_registry(config) as registry:
        before = _configs(registry)
        known = {**before, **(read_from_zookeeper(zookeeper, list(before)) if zookeeper else {})}
        for topic, name, value in settings:
            if topic not in before:
                raise ConfigError("topic", topic, f"one of {', '.join(sorted(before)) or 'none: no topic was found'}")
            known[topic] = {key: text for key, text in known[topic].items() if key != name} | (
                {name: value} if value else {}
            )
        for overrides in known.values():
            validate_topic_overrides(dict(overrides), config)
        for topic, overrides in known.items():
            if overrides != before[topic]:
                registry.set(EntityConfig.path(f"topics/{topic}"), EntityConfig.encode(overrides))
        return known


def read_from_zookeeper(connect: str, topics: Sequence[str], timeout_s: float = 10.0) -> TopicConfigs:
    """The topics' configurations as Kafka keeps them; `connect` is Kafka's `zookeeper.connect`, maybe with a chroot.

    A topic that ZooKeeper doesn't know is left out. Raises OSError when it can't be reached.
    """
    from kazoo.client import KazooClient
    from kazoo.exceptions import NoNodeError
    from kazoo.handlers.threading import KazooTimeoutError
    from kazoo.hosts import collect_hosts

    try:
        collect_hosts(connect)
    except ValueError as error:
        raise ValueError(f"--zookeeper {connect}: expected HOST:PORT[,HOST:PORT][/CHROOT]: {error}") from None
    client = KazooClient(connect, timeout=timeout_s, read_only=True)
    try:
        client.start(timeout_s)
        found = {}
        for topic in topics:
            with contextlib.suppress(NoNodeError):
                entity = f"topics/{topic}"
                found[topic] = EntityConfig.decode(entity, client.get(EntityConfig.path(entity))[0])
        return found
    except KazooTimeoutError as error:
        raise TimeoutError(f"ZooKeeper at {connect} didn't answer in {timeout_s:.0f} s") from error
    finally:
        client.stop()
        client.close()


def _require_kafka_directories(paths: Sequence[Path]) -> None:
    """Raises AdoptionError unless all are there and one of them has been a broker's: nothing is made for a typo."""
    for path in paths:
        if not path.is_dir():
            raise AdoptionError(f"{path}: no such directory; log.dirs must name the stopped Kafka's directories")
    files = Files()
    if not any((path / META_PROPERTIES_FILE).exists() or find_folders(path, files).logs for path in paths):
        named = ", ".join(map(str, paths))
        raise AdoptionError(f"{named}: no Kafka's log directory, for there is neither meta.properties nor a partition")


@contextlib.contextmanager
def _opened_registry(config: BrokerConfig) -> Iterator[Registry]:
    files = Files()
    directories = LogDirectories(config.log_dirs, files, lambda _: None)
    owner = directories.lock()
    try:
        registry = EmbeddedRegistry(Path(config.log_dirs[0]) / FILE_NAME, lambda: time.time_ns() // 1_000_000)
        try:
            prepare_tree(registry)
            found = find_topics(directories, files, registry, asked=True)
            enter_topics(registry, establish_identity(config, owner, registry).broker_id, found)
            yield registry
        finally:
            registry.close()
    finally:
        directories.unlock()


def _configs(registry: Registry) -> TopicConfigs:
    entities = [f"topics/{topic}" for topic in sorted(registry.children(TOPICS_PATH))]
    nodes = registry.get_many([EntityConfig.path(entity) for entity in entities])
    return {
        entity.removeprefix("topics/"): EntityConfig.decode(entity, node[0]) if node else {}
        for entity, node in zip(entities, nodes, strict=True)
    }
