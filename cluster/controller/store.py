"""The controller's way to the registry: reads and writes in its own terms, every write fenced by its epoch.

Raises ControllerMovedError when another controller was elected since: the caller drops all it does and resigns.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Final

from kavka.cluster.controller.context import TopicPartition
from kavka.cluster.registry.base import (
    BadVersionError,
    Check,
    Create,
    Delete,
    NodeExistsError,
    NoNodeError,
    NotPermittedError,
    Operation,
    Registry,
    RegistryError,
    RegistryUnavailableError,
    Result,
    SetData,
    Stat,
    Watch,
    children_or_none,
    create_path,
    delete_trees,
    get_permitted,
    get_readable,
)
from kavka.cluster.znodes.broker import BROKERS_PATH, BrokerInfo
from kavka.cluster.znodes.config import EntityConfig
from kavka.cluster.znodes.controller import CONTROLLER_EPOCH_PATH
from kavka.cluster.znodes.json_data import INT32_MAX, ZnodeError
from kavka.cluster.znodes.topic import (
    NO_BROKER_EPOCH,
    TOPICS_PATH,
    PartitionState,
    TopicAssignment,
    TopicDeletion,
)

NONE_KNOWN: Final[Mapping[int, BrokerInfo]] = MappingProxyType({})
_UNKNOWN_SETTINGS: Final = "nobody knows a topic's settings: %s"

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
        except (BadVersionError, NoNodeError) as error:
            raise self._moved(error) from error

    def _moved(self, error: RegistryError) -> Exception:
        if error.path == self._guard.path:
            return ControllerMovedError(f"epoch {self.epoch} is over")
        return error

    # Brokers

    def live_brokers(self, watch: Watch | None, known: Mapping[int, BrokerInfo] = NONE_KNOWN) -> dict[int, BrokerInfo]:
        """All that are registered and readable; one that is not cannot be talked to, and is logged.

        One of `known` whose registration cannot be read any more stays what it was while that stands. The watch hears
        of brokers that come and go, and of those that announce other endpoints.

        Whoever has an epoch up to the highest of these is among them, or gone: what states say of their writer's
        knowledge (`latest_broker_epoch`) stands on that.
        """
        before: dict[int, BrokerInfo] | None = None
        while True:
            seen = self._registry.exists(BROKERS_PATH)
            brokers = self._brokers_read(watch, known)
            if brokers == before or seen is None or all([each.epoch <= seen.pzxid for each in brokers.values()]):
                return brokers
            # One came meanwhile, and what was read before it may be the former run of another one that did.
            before = brokers

    def _brokers_read(self, watch: Watch | None, known: Mapping[int, BrokerInfo]) -> dict[int, BrokerInfo]:
        names = children_or_none(self._registry, BROKERS_PATH, watch)
        ids = sorted(int(name) for name in names if _is_broker_id(name))
        if len(ids) < len(names):
            log.error("no brokers, and left out: %.200r", [name for name in names if not _is_broker_id(name)])
        found = get_readable(self._registry, [BrokerInfo.path(broker_id) for broker_id in ids], watch)
        brokers = {}
        for broker_id, node in zip(ids, found, strict=True):
            if node is None:
                continue
            try:
                brokers[broker_id] = BrokerInfo.decode(broker_id, node[0], node[1].czxid)
            except ZnodeError as error:
                before = known.get(broker_id)
                if before is not None and before.epoch == node[1].czxid:
                    log.error("broker %d stays what it was: %s", broker_id, error)
                    brokers[broker_id] = before
                else:
                    log.error("broker %d is left out: %s", broker_id, error)
        return brokers

    # Topics

    def topic_names(self, watch: Watch | None) -> list[str]:
        return children_or_none(self._registry, TOPICS_PATH, watch)

    def assignments(self, topics: Sequence[str], watch: Watch | None = None) -> dict[str, TopicAssignment]:
        """Those that exist and can be read; the others are logged and left alone.

        Of two topics with one id the older one has it: the other is a copy that somebody made by hand.
        """
        found = get_readable(self._registry, [TopicAssignment.path(topic) for topic in topics], watch)
        assignments: dict[str, TopicAssignment] = {}
        oldest: dict[bytes, tuple[int, str]] = {}
        for topic, node in zip(topics, found, strict=True):
            if node is None:
                continue
            try:
                assignment = assignments[topic] = TopicAssignment.decode(topic, node[0])
            except ZnodeError as error:
                log.error("topic %s is left out: %s", topic, error)
                continue
            if assignment.topic_id is not None:
                rival = oldest.get(assignment.topic_id, (node[1].czxid, topic))
                older, younger = sorted([rival, (node[1].czxid, topic)])
                oldest[assignment.topic_id] = older
                if younger != older:
                    log.error("topic %s is left out: it has the id of %s", younger[1], older[1])
                    del assignments[younger[1]]
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
            for topic, path, node in zip(waiting, paths, get_readable(self._registry, paths), strict=True):
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

    def states(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, PartitionState]:
        """Those that exist. A state that cannot be read is logged; its partition gets no leader.

        Kafka's controllers, who do not say whom they know, pass for having known all that were registered by then.
        """
        found = get_readable(self._registry, [PartitionState.path(*partition) for partition in partitions])
        states = {}
        for partition, node in zip(partitions, found, strict=True):
            if node is None:
                continue
            try:
                state = PartitionState.decode(*partition, node[0], node[1].version)
            except ZnodeError as error:
                log.error("%s-%d has no state: %s", *partition, error)
                continue
            # Higher where the tree was copied from another registry: it is one of that one's zxids.
            if len(state.isr) > 1 and not NO_BROKER_EPOCH < state.latest_broker_epoch <= node[1].mzxid:
                state = state._replace(latest_broker_epoch=node[1].mzxid)
            states[partition] = state
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
        """The topics' own settings. Those that cannot be read are logged, and their topics left out: nobody knows what
        they may forbid.
        """
        asked = {EntityConfig.path(f"topics/{topic}"): topic for topic in topics}
        found = get_permitted(self._registry, asked, partial(log.error, _UNKNOWN_SETTINGS))
        configs: dict[str, dict[str, str]] = {}
        for path, node in found.items():
            topic = asked[path]
            try:
                configs[topic] = {} if node is None else EntityConfig.decode(f"topics/{topic}", node[0])
            except ZnodeError as error:
                log.error(_UNKNOWN_SETTINGS, error)
        return configs

    def existing(self, paths: Sequence[str]) -> set[str]:
        found = self._registry.get_many(paths)
        return {path for path, node in zip(paths, found, strict=True) if node is not None}

    # Deletion of topics

    def topics_to_delete(self, watch: Watch | None) -> list[str]:
        return self._wishes_below(TopicDeletion.PARENT, watch)

    def request_deletion(self, topics: Iterable[str]) -> None:
        """Note the wish, so that it survives this controller."""
        waiting = [Create(TopicDeletion.path(topic)) for topic in topics]
        results = self.write(waiting)
        if any(isinstance(result, NoNodeError) for result in results):
            # Somebody has cleared `/admin`.
            create_path(self._registry, TopicDeletion.PARENT)
            results = self.write(waiting)
        for result in results:
            if isinstance(result, RegistryError) and not isinstance(result, NodeExistsError):
                raise result

    def forget_deletion(self, topics: Iterable[str]) -> None:
        self._delete([TopicDeletion.path(topic) for topic in topics])

    def remove_topics(self, topics: Sequence[str]) -> dict[str, RegistryError]:
        """The topics' nodes, their configurations, and last the wishes to delete them.

        Gives those that are not gone, with the reason: their wishes stay.
        """
        refused: dict[str, RegistryError] = {}
        while gone := [topic for topic in topics if topic not in refused]:
            paths = {TopicAssignment.path(topic): topic for topic in gone}
            try:
                left = delete_trees(self._registry, list(paths), self._guard)
            except BadVersionError as error:
                raise self._moved(error) from error
            except NotPermittedError as error:
                # What is below one of them may not even be listed.
                hidden = next((path for path in paths if f"{error.path}/".startswith(f"{path}/")), None)
                if hidden is None:
                    raise
                refused[paths[hidden]] = error
                continue
            refused |= {paths[path]: error for path, error in left.items()}
            gone = [topic for topic in gone if topic not in refused]
            break
        configs = [EntityConfig.path(f"topics/{topic}") for topic in gone]
        self._delete([*configs, *(TopicDeletion.path(topic) for topic in gone)])
        return refused

    def remove_configs(self, topics: Iterable[str]) -> None:
        self._delete([EntityConfig.path(f"topics/{topic}") for topic in topics])

    # Single nodes

    def node(self, path: str, watch: Watch | None = None) -> tuple[bytes, int] | None:
        """The node's data and version, None if it is not there or may not be read; the watch hears of it being made
        or changed.
        """
        if self._registry.exists(path, watch) is None:
            return None
        found = get_readable(self._registry, [path])[0]
        return None if found is None else (found[0], found[1].version)

    def replace_node(self, path: str, data: bytes | None, version: int) -> bool:
        """Write the node, or with None remove it; False when somebody else was faster.

        One that cannot be written or removed, as somebody made another one below it, is logged, and stays as it is.
        """
        [result] = self.write([Delete(path, version) if data is None else SetData(path, data, version)])
        if isinstance(result, BadVersionError | NoNodeError):
            return False
        _check_done(result)
        return True

    # Notices

    def take_notices(self, parent: str, watch: Watch | None) -> dict[str, bytes]:
        """Names and data of the notices below `parent`, which are removed."""
        names = self._wishes_below(parent, watch)
        paths = [f"{parent}/{name}" for name in names]
        found = get_readable(self._registry, paths)
        self._delete(paths)
        return {name: node[0] for name, node in zip(names, found, strict=True) if node is not None}

    def _wishes_below(self, parent: str, watch: Watch | None) -> list[str]:
        """A controller does without what others may want of it, where it may not even read that."""
        try:
            return children_or_none(self._registry, parent, watch)
        except NotPermittedError as error:
            log.error("nothing is heard of what lies there: %s", error)
            return []

    def _delete(self, paths: Sequence[str]) -> None:
        """What is gone already is gone; what cannot be removed is logged, and stays: it must not end a term."""
        for result in self.write([Delete(path) for path in paths]):
            if not isinstance(result, NoNodeError):
                _check_done(result)


def _is_broker_id(name: str) -> bool:
    """A number as brokers write it: another way to write it is another node."""
    return name.isascii() and name.isdigit() and len(name) <= 10 and str(int(name)) == name and int(name) <= INT32_MAX


def _check_done(result: Result | RegistryError) -> None:
    """Log a refusal that concerns one node alone; raise what stands for all, as the registry is out of reach."""
    if isinstance(result, RegistryUnavailableError):
        raise result
    if isinstance(result, RegistryError):
        log.error("a node stays as it is: %s", result)


def _error(result: Result | RegistryError) -> RegistryError:
    return result if isinstance(result, RegistryError) else RegistryError(f"unexpected result {result!r}")
