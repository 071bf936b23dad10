"""The controller's way to the registry: reads and writes in its own terms, every write fenced by its epoch.

Raises ControllerMovedError when another controller was elected since: the caller drops all it does and resigns.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from kavka.cluster.controller.context import TopicPartition
from kavka.cluster.registry.base import (
    BadVersionError,
    Check,
    Create,
    Delete,
    NodeExistsError,
    NoNodeError,
    Operation,
    Registry,
    RegistryError,
    Result,
    SetData,
    Stat,
    Watch,
    delete_trees,
)
from kavka.cluster.znodes.broker import BROKERS_PATH, BrokerInfo
from kavka.cluster.znodes.config import EntityConfig
from kavka.cluster.znodes.controller import CONTROLLER_EPOCH_PATH
from kavka.cluster.znodes.json_data import ZnodeError
from kavka.cluster.znodes.topic import TOPICS_PATH, PartitionState, TopicAssignment, TopicDeletion

log = logging.getLogger(__name__)


class ControllerMovedError(Exception):
    """Somebody else is the controller now."""


class ControllerStore:
    """One term of a controller.

    Threads: owned by the controller's thread.
    """

    __slots__ = ("_guard", "_registry", "epoch")

    def __init__(self, registry: Registry, epoch: int, epoch_version: int) -> None:
        self._registry = registry
        self.epoch = epoch
        self._guard = Check(CONTROLLER_EPOCH_PATH, epoch_version)

    def write(self, operations: Sequence[Operation]) -> list[Result | RegistryError]:
        """Each by itself, with its result or error."""
        if not operations:
            return []
        try:
            return self._registry.pipeline(operations, self._guard)
        except BadVersionError as error:
            raise self._moved(error) from error

    def write_all(self, operations: Sequence[Operation]) -> list[Result]:
        """All or none; raises the RegistryError of the one that failed."""
        try:
            return self._registry.multi([self._guard, *operations])[1:]
        except BadVersionError as error:
            raise self._moved(error) from error

    def _moved(self, error: BadVersionError) -> Exception:
        if error.path == self._guard.path:
            return ControllerMovedError(f"epoch {self.epoch} is over")
        return error

    # Brokers

    def live_brokers(self, watch: Watch | None) -> dict[int, BrokerInfo]:
        """All that are registered and readable; one that is not cannot be talked to, and is logged.

        The watch hears of brokers that come and go, and of those that announce other endpoints.
        """
        ids = sorted(int(name) for name in self._registry.children(BROKERS_PATH, watch) if name.isdigit())
        found = self._registry.get_many([BrokerInfo.path(broker_id) for broker_id in ids], watch)
        brokers = {}
        for broker_id, node in zip(ids, found, strict=True):
            if node is None:
                continue
            try:
                brokers[broker_id] = BrokerInfo.decode(broker_id, node[0], node[1].czxid)
            except ZnodeError as error:
                log.error("broker %d is left out: %s", broker_id, error)
        return brokers

    # Topics

    def topic_names(self, watch: Watch | None) -> list[str]:
        return self._registry.children(TOPICS_PATH, watch)

    def assignments(self, topics: Sequence[str], watch: Watch | None = None) -> dict[str, TopicAssignment]:
        """Those that exist and can be read; the others are logged and left alone."""
        found = self._registry.get_many([TopicAssignment.path(topic) for topic in topics], watch)
        assignments = {}
        for topic, node in zip(topics, found, strict=True):
            if node is None:
                continue
            try:
                assignments[topic] = TopicAssignment.decode(topic, node[0])
            except ZnodeError as error:
                log.error("topic %s is left out: %s", topic, error)
        return assignments

    def amend_assignments(
        self, changes: Mapping[str, Callable[[TopicAssignment], TopicAssignment]]
    ) -> dict[str, TopicAssignment | RegistryError]:
        """Make of each topic's assignment as it is stored what `changes` makes of it; what is stored then, or why not.

        Others may write a topic's node too, to give it more partitions: who is overtaken starts from what they wrote.
        """
        outcomes: dict[str, TopicAssignment | RegistryError] = {}
        waiting = list(changes)
        while waiting:
            wanted: dict[str, TopicAssignment] = {}
            writes: list[Operation] = []
            paths = [TopicAssignment.path(topic) for topic in waiting]
            for topic, path, node in zip(waiting, paths, self._registry.get_many(paths), strict=True):
                if node is None:
                    outcomes[topic] = NoNodeError(path)
                    continue
                try:
                    wanted[topic] = changes[topic](TopicAssignment.decode(topic, node[0]))
                except ZnodeError as error:
                    outcomes[topic] = RegistryError(str(error), path)
                    continue
                writes.append(SetData(path, wanted[topic].encode(), node[1].version))
            waiting = []
            for (topic, assignment), result in zip(wanted.items(), self.write(writes), strict=True):
                if isinstance(result, BadVersionError):
                    waiting.append(topic)
                else:
                    outcomes[topic] = result if isinstance(result, RegistryError) else assignment
        return outcomes

    def states(
        self, partitions: Sequence[TopicPartition], written: dict[TopicPartition, int] | None = None
    ) -> dict[TopicPartition, PartitionState]:
        """Those that exist. A state that cannot be read is logged; its partition gets no leader.

        `written` gets the zxids of their last writes.
        """
        found = self._registry.get_many([PartitionState.path(*partition) for partition in partitions])
        states = {}
        for partition, node in zip(partitions, found, strict=True):
            if node is None:
                continue
            try:
                states[partition] = PartitionState.decode(*partition, node[0], node[1].version)
            except ZnodeError as error:
                log.error("%s-%d has no state: %s", *partition, error)
            if written is not None:
                written[partition] = node[1].mzxid
        return states

    def create_states(
        self, states: Mapping[TopicPartition, PartitionState]
    ) -> dict[TopicPartition, PartitionState | RegistryError]:
        """Make the state nodes of new partitions with their parents."""
        parents = [TopicAssignment.partitions_path(topic) for topic in dict.fromkeys(topic for topic, _ in states)]
        parents += [f"{TopicAssignment.partitions_path(topic)}/{partition}" for topic, partition in states]
        creations = [Create(PartitionState.path(*partition), state.encode()) for partition, state in states.items()]
        results = self.write([*map(Create, parents), *creations])[len(parents) :]
        return {
            partition: result if isinstance(result, RegistryError) else state._replace(version=0)
            for (partition, state), result in zip(states.items(), results, strict=True)
        }

    def update_states(
        self, states: Mapping[TopicPartition, PartitionState]
    ) -> dict[TopicPartition, PartitionState | RegistryError]:
        """Write each if its node still has the version that the state carries."""
        writes = [
            SetData(PartitionState.path(*partition), state.encode(), state.version)
            for partition, state in states.items()
        ]
        results = self.write(writes)
        return {
            partition: state._replace(version=result.version) if isinstance(result, Stat) else _error(result)
            for (partition, state), result in zip(states.items(), results, strict=True)
        }

    def topic_configs(self, topics: Collection[str]) -> dict[str, dict[str, str]]:
        """The topics' own settings; none for those that have none or whose cannot be read."""
        entity_paths = [f"topics/{topic}" for topic in topics]
        found = self._registry.get_many([EntityConfig.path(entity_path) for entity_path in entity_paths])
        configs: dict[str, dict[str, str]] = {}
        for topic, entity_path, node in zip(topics, entity_paths, found, strict=True):
            configs[topic] = {}
            try:
                if node is not None:
                    configs[topic] = EntityConfig.decode(entity_path, node[0])
            except ZnodeError as error:
                log.error("topic %s counts as having no configuration: %s", topic, error)
        return configs

    def existing(self, paths: Sequence[str]) -> set[str]:
        found = self._registry.get_many(paths)
        return {path for path, node in zip(paths, found, strict=True) if node is not None}

    # Deletion of topics

    def topics_to_delete(self, watch: Watch | None) -> list[str]:
        return self._registry.children(TopicDeletion.PARENT, watch)

    def request_deletion(self, topics: Iterable[str]) -> None:
        """Note the wish, so that it survives this controller."""
        for result in self.write([Create(TopicDeletion.path(topic)) for topic in topics]):
            if isinstance(result, RegistryError) and not isinstance(result, NodeExistsError):
                raise result

    def forget_deletion(self, topics: Iterable[str]) -> None:
        self._delete_quietly([TopicDeletion.path(topic) for topic in topics])

    def remove_topics(self, topics: Sequence[str]) -> None:
        """The topics' nodes, their configurations, and last the wishes to delete them."""
        try:
            delete_trees(self._registry, [TopicAssignment.path(topic) for topic in topics], self._guard)
        except BadVersionError as error:
            raise self._moved(error) from error
        configs = [EntityConfig.path(f"topics/{topic}") for topic in topics]
        self._delete_quietly([*configs, *(TopicDeletion.path(topic) for topic in topics)])

    # Single nodes

    def node(self, path: str, watch: Watch | None = None) -> tuple[bytes, int] | None:
        """The node's data and version, None if it is not there; the watch hears of it being made or changed."""
        if self._registry.exists(path, watch) is None:
            return None
        found = self._registry.get_many([path])[0]
        return None if found is None else (found[0], found[1].version)

    def replace_node(self, path: str, data: bytes | None, version: int) -> bool:
        """Write the node, or with None remove it; False when somebody else was faster."""
        [result] = self.write([Delete(path, version) if data is None else SetData(path, data, version)])
        if isinstance(result, BadVersionError | NoNodeError):
            return False
        if isinstance(result, RegistryError):
            raise result
        return True

    # Notices

    def take_notices(self, parent: str, watch: Watch | None) -> dict[str, bytes]:
        """Names and data of the notices below `parent`, which are removed."""
        names = self._registry.children(parent, watch)
        paths = [f"{parent}/{name}" for name in names]
        found = self._registry.get_many(paths)
        self._delete_quietly(paths)
        return {name: node[0] for name, node in zip(names, found, strict=True) if node is not None}

    def _delete_quietly(self, paths: Sequence[str]) -> None:
        for result in self.write([Delete(path) for path in paths]):
            if isinstance(result, RegistryError) and not isinstance(result, NoNodeError):
                raise result


def _error(result: Result | RegistryError) -> RegistryError:
    return result if isinstance(result, RegistryError) else RegistryError(f"unexpected result {result!r}")
