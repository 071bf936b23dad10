"""What was set for topics, groups and brokers: read from the tree, and written with a notification for all brokers.

Every write leaves a sequential node in `/config/changes`; `config_notifications.py` hears of it on every broker.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

from kavka.cluster.registry.base import (
    BadVersionError,
    Check,
    Create,
    Delete,
    NodeExistsError,
    NoNodeError,
    Operation,
    Registry,
    SetData,
    create_path,
    get_readable,
)
from kavka.cluster.topic_ids import new_topic_id
from kavka.cluster.znodes.config import ConfigChange, EntityConfig
from kavka.cluster.znodes.json_data import ZnodeError
from kavka.cluster.znodes.topic import TopicAssignment
from kavka.config.topic_config import KEPT
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.schema import uuid_to_text

log = logging.getLogger(__name__)

ConfigUpdate = Callable[[dict[str, str]], dict[str, str]]
"""From an entity's stored configuration to its new one; runs on the writer's thread, may raise BrokerError."""


def read_config(registry: Registry, entity_path: str) -> dict[str, str]:
    """What was set for `topics/T`, `brokers/1`, `brokers/<default>`, ...; empty without such a node."""
    found = registry.get_many([EntityConfig.path(entity_path)])[0]
    return {} if found is None else EntityConfig.decode(entity_path, found[0])


def read_configs(
    registry: Registry, kind: str, unreadable: Mapping[str, str] = MappingProxyType({})
) -> dict[str, dict[str, str]]:
    """What was set for all entities of a kind (`topics`, `brokers`) in one go, without those that have nothing set.

    One that cannot be read is logged, and `unreadable` stands for what it has; see `unreadable_configs`.
    """
    try:
        names = registry.children(EntityConfig.path(kind))
    except NoNodeError:
        return {}
    found = get_readable(registry, [EntityConfig.path(f"{kind}/{name}") for name in names])
    configs = {}
    for name, node in zip(names, found, strict=True):
        try:
            # One that is listed and not found may not be read, or has gone since.
            config = EntityConfig.decode(f"{kind}/{name}", node[0]) if node is not None else dict(unreadable)
        except ZnodeError as error:
            log.error("the configuration is left out: %s", error)
            config = dict(unreadable)
        if config:
            configs[name] = config
    return configs


def read_named_configs(
    registry: Registry, folders: Sequence[str], names: Sequence[str | None]
) -> Iterator[tuple[tuple[str, ...], dict[str, str]]]:
    """What is set for entities below `folders`, by their names: of ("users", "clients") those of users' client ids.

    `names` has for each folder the one that is wanted, or None for all. One that cannot be read is logged and left out.
    """
    found: list[tuple[str, ...]] = [()]
    for place, (folder, name) in enumerate(zip(folders, names, strict=True)):
        if name is not None:
            found = [(*path, name) for path in found]
            continue
        parents = [EntityConfig.path(_entity_path(folders[:place], path, folder)) for path in found]
        below = registry.children_of_many(parents)
        found = [(*path, each) for path, children in zip(found, below, strict=True) for each in children or ()]
    paths = [_entity_path(folders, path) for path in found]
    nodes = get_readable(registry, [EntityConfig.path(path) for path in paths])
    for names_found, entity_path, node in zip(found, paths, nodes, strict=True):
        try:
            if node is not None:
                yield names_found, EntityConfig.decode(entity_path, node[0])
        except ZnodeError as error:
            log.error("the configuration is left out: %s", error)


def _entity_path(folders: Sequence[str], names: Sequence[str], *more: str) -> str:
    return "/".join([part for pair in zip(folders, names, strict=True) for part in pair] + list(more))


def unreadable_configs(registry: Registry, kind: str) -> dict[str, str]:
    """Those of a kind that `read_configs` leaves out, with the reason."""
    reasons: dict[str, str] = {}
    try:
        names = registry.children(EntityConfig.path(kind))
    except NoNodeError:
        return reasons
    for name in names:
        try:
            read_config(registry, f"{kind}/{name}")
        except ZnodeError as error:
            reasons[name] = str(error)
    return reasons


def forget_config(registry: Registry, entity_path: str) -> None:
    """Leave an entity with nothing set, whatever there is now."""
    path = EntityConfig.path(entity_path)
    registry.multi([Delete(path), _notice(entity_path)])


def write_config(
    registry: Registry, entity_path: str, update: Mapping[str, str] | ConfigUpdate, *, validate_only: bool = False
) -> dict[str, str]:
    """Replace an entity's configuration, or derive it from what is stored; gives the new one.

    A function given as `update` runs again when another writer was faster. Of a topic's that cannot be read it is given
    what counts in their place, and they are replaced. Raises what it raises, ZnodeError for what else cannot be read,
    and BrokerError(UNKNOWN_TOPIC_OR_PARTITION) for a topic that does not exist.
    """
    path = EntityConfig.path(entity_path)
    kind, _, name = entity_path.partition("/")
    topic_path = TopicAssignment.path(name) if kind == "topics" else None
    while True:
        stored = registry.get_many([path] if topic_path is None else [path, topic_path])
        if stored[-1] is None and topic_path is not None:
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Topic '{name}' does not exist.")
        node = stored[0]
        before = {} if node is None else _decoded(entity_path, node[0])
        config = update(before) if callable(update) else dict(update)
        if validate_only:
            return config
        data = EntityConfig.encode(config)
        operations: list[Operation] = [] if topic_path is None else [Check(topic_path)]
        operations.append(Create(path, data) if node is None else SetData(path, data, node[1].version))
        operations.append(_notice(entity_path))
        try:
            registry.multi(operations)
        except (BadVersionError, NodeExistsError):
            continue
        except NoNodeError as error:
            if error.path == topic_path:
                continue
            create_path(registry, ConfigChange.PARENT)
            create_path(registry, path.rpartition("/")[0])
            continue
        return config


def _notice(entity_path: str) -> Create:
    data = ConfigChange.encode(entity_path, uuid_to_text(new_topic_id()))
    return Create(ConfigChange.PREFIX, data, sequential=True)


def _decoded(entity_path: str, data: bytes) -> dict[str, str]:
    try:
        return EntityConfig.decode(entity_path, data)
    except ZnodeError:
        if not entity_path.startswith("topics/"):
            raise
        return dict(KEPT)
