"""Creating, growing and deleting topics, as the active controller does on request."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from kavka.cluster.assignment import assign_replicas, validate_assignment
from kavka.cluster.controller.context import PartitionPhase, TopicPartition
from kavka.cluster.controller.requests import NewPartitions, NewTopic, TopicResult
from kavka.cluster.controller.term import Term
from kavka.cluster.registry.base import (
    Create,
    InvalidNodeError,
    NodeExistsError,
    Operation,
    RegistryError,
    SetData,
    Watch,
)
from kavka.cluster.topic_ids import ZERO_ID, new_topic_id
from kavka.cluster.topic_names import collision_key, validate_topic_name
from kavka.cluster.znodes.config import EntityConfig
from kavka.cluster.znodes.topic import TopicAssignment
from kavka.config.errors import ConfigError
from kavka.protocol.errors import BrokerError, ErrorCode

CheckConfig = Callable[[Mapping[str, str]], None]
CountPartitions = Callable[[int], None]
"""Told of partitions that are to be made or deleted, of one topic at a time; raises BrokerError if they must not."""

MAX_PARTITIONS_PER_TOPIC = 100_000
"""Beyond this one request would hold the controller, and the files of this broker, for minutes."""

MAX_CONFIG_SIZE_BYTES = 512 << 10
"""Half of what a node in ZooKeeper may hold: a topic whose configuration cannot be written must not be made."""


class TopicChanges:
    """Changes of the set of topics and partitions.

    Threads: owned by the controller's thread.
    """

    __slots__ = ("_check_config", "_random")

    def __init__(self, check_config: CheckConfig, seed: int | None = None) -> None:
        """`check_config` raises ConfigError; `seed` makes placements repeatable in tests."""
        self._check_config = check_config
        self._random = random.Random(seed)

    def create(
        self, term: Term, topics: Sequence[NewTopic], validate_only: bool, count: CountPartitions | None = None
    ) -> list[TopicResult]:
        """One result for each, in order; those without an error are served and published, unless only validated."""
        planned: dict[str, TopicAssignment] = {}
        names_by_key: dict[str, str] = {}
        results: list[TopicResult] = []
        for topic in topics:
            try:
                assignment = self._plan(term, topic, names_by_key)
                if count is not None and not validate_only:
                    count(len(assignment.replicas))
            except BrokerError as error:
                results.append(TopicResult(topic.name, ZERO_ID, error))
                continue
            planned[topic.name] = assignment
            names_by_key[collision_key(topic.name)] = topic.name
            results.append(_result(topic, assignment))
        if validate_only or not planned:
            return results
        configs = {topic.name: _texts(topic.configs) for topic in topics if topic.name in planned}
        refused = self._write(term, planned, configs)
        made = {name: assignment for name, assignment in planned.items() if name not in refused}
        for name, assignment in made.items():
            term.context.put_topic(name, assignment)
        term.configs_changed([name for name in made if configs[name]])
        partitions = [each for name in made for each in term.context.partitions_of(name)]
        term.found(partitions)
        term.settle()
        return [self._outcome(term, result, refused) for result in results]

    def grow(
        self, term: Term, growths: Sequence[NewPartitions], validate_only: bool, count: CountPartitions | None = None
    ) -> dict[str, BrokerError | None]:
        """Each topic gets the partitions that it lacks, or an error."""
        results: dict[str, BrokerError | None] = {}
        grown: dict[str, TopicAssignment] = {}
        for growth in growths:
            try:
                planned = self._plan_growth(term, growth)
                if count is not None and not validate_only:
                    count(len(planned.replicas) - len(term.context.assignments[growth.name].replicas))
                grown[growth.name] = planned
                results[growth.name] = None
            except BrokerError as error:
                results[growth.name] = error
        if validate_only or not grown:
            return results
        partitions: list[TopicPartition] = []
        added = {name: partial(_grown, replicas=each.replicas) for name, each in grown.items()}
        for name, outcome in term.store.amend_assignments(added).items():
            if isinstance(outcome, RegistryError):
                results[name] = _not_written(outcome)
                continue
            before = term.context.assignments[name].replicas
            term.context.put_topic(name, outcome)
            partitions += [(name, partition) for partition in outcome.replicas if partition not in before]
        term.found(partitions)
        term.settle()
        for name in grown:
            results[name] = results[name] or _unled(term, [each for each in partitions if each[0] == name])
        return results

    def delete(
        self, term: Term, names: Sequence[str], count: CountPartitions | None = None
    ) -> dict[str, BrokerError | None]:
        """Topics that exist go; see `topic_deletion` for when they are gone."""
        results: dict[str, BrokerError | None] = {}
        is_enabled = term.settings.current.delete_topic_enable
        for name in names:
            if not is_enabled:
                results[name] = BrokerError(ErrorCode.TOPIC_DELETION_DISABLED, "Topic deletion is disabled.")
            elif name not in term.context.assignments or name in term.context.deleting:
                results[name] = _unknown_topic(name)
            else:
                results[name] = _refusal(count, len(term.context.assignments[name].replicas))
        going = [name for name, error in results.items() if error is None]
        term.store.request_deletion(going)
        term.deletions.begin(going)
        term.settle()
        return results

    def take_deletion_wishes(self, term: Term, watch: Watch) -> None:
        """What tools asked for, and what an earlier controller could not finish."""
        names = term.store.topics_to_delete(watch)
        known = term.context.assignments
        is_enabled = term.settings.current.delete_topic_enable
        term.store.forget_deletion([name for name in names if name not in known or not is_enabled])
        if is_enabled:
            term.deletions.begin([name for name in names if name in known])
        term.settle()

    def _plan(self, term: Term, topic: NewTopic, planned: Mapping[str, str]) -> TopicAssignment:
        """Where the topic's replicas go. Raises BrokerError when it may not be created.

        `planned` are the names of topics that the same request makes, by their collision keys.
        """
        key = collision_key(topic.name)
        validate_topic_name(topic.name)
        if topic.name in term.context.assignments or planned.get(key) == topic.name:
            reason = " and is being deleted" if topic.name in term.context.deleting else ""
            raise BrokerError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{topic.name}' already exists{reason}.")
        others = term.context.colliding(topic.name) + ([planned[key]] if key in planned else [])
        if others:
            raise BrokerError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"Topic '{topic.name}' collides with existing topics: {', '.join(others)}",
            )
        self._validate_config(topic.configs)
        settings = term.settings.current
        brokers = term.context.brokers
        if topic.assignments:
            if topic.partitions != -1 or topic.replication_factor != -1:
                raise BrokerError(
                    ErrorCode.INVALID_REQUEST, "Give counts of partitions and replicas, or an assignment, but not both."
                )
            _validate_partition_count(len(topic.assignments))
            validate_assignment(topic.assignments, brokers)
            replicas = {partition: tuple(topic.assignments[partition]) for partition in sorted(topic.assignments)}
        else:
            partition_count = settings.num_partitions if topic.partitions == -1 else topic.partitions
            factor = topic.replication_factor
            _validate_partition_count(partition_count)
            replicas = assign_replicas(
                {broker: info.rack for broker, info in brokers.items()},
                partition_count,
                settings.default_replication_factor if factor == -1 else factor,
                start_index=self._random.randrange(1 << 16),
                start_shift=self._random.randrange(1 << 16),
            )
        return TopicAssignment(replicas, new_topic_id())

    def _plan_growth(self, term: Term, growth: NewPartitions) -> TopicAssignment:
        assignment = term.context.assignments.get(growth.name)
        if assignment is None or growth.name in term.context.deleting:
            raise _unknown_topic(growth.name)
        if assignment.adding or assignment.removing:
            raise BrokerError(
                ErrorCode.REASSIGNMENT_IN_PROGRESS,
                f"A partition reassignment is in progress for the topic '{growth.name}'.",
            )
        count, total = len(assignment.replicas), growth.total_count
        if total <= count:
            fewer = f"Topic currently has {count} partitions, which is higher than the requested {total}."
            reason = f"Topic already has {count} partitions." if total == count else fewer
            raise BrokerError(ErrorCode.INVALID_PARTITIONS, reason)
        _validate_partition_count(total)
        if not assignment.replicas:
            raise BrokerError(ErrorCode.INVALID_PARTITIONS, f"Topic '{growth.name}' has no partition to go by.")
        first = assignment.replicas[min(assignment.replicas)]
        brokers = term.context.brokers
        if growth.assignments is not None:
            if len(growth.assignments) != total - count:
                raise BrokerError(
                    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                    f"Increasing the number of partitions by {total - count} "
                    f"but {len(growth.assignments)} assignments provided.",
                )
            added = {count + each: tuple(replicas) for each, replicas in enumerate(growth.assignments)}
            validate_assignment(added, brokers, first_partition=count, replication_factor=len(first))
        else:
            # Where partition 0 began, as Kafka's AdminUtils has it: the new ones go on with its round.
            start = next((index for index, broker in enumerate(sorted(brokers)) if broker >= first[0]), 0)
            added = assign_replicas(
                {broker: info.rack for broker, info in brokers.items()},
                total - count,
                len(first),
                start_index=start,
                start_shift=start,
                first_partition=count,
            )
        return assignment._replace(replicas={**assignment.replicas, **added})

    def _validate_config(self, configs: Mapping[str, str | None]) -> None:
        nulls = sorted(name for name, value in configs.items() if value is None)
        if nulls:
            raise BrokerError(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {nulls}")
        size_bytes = len(EntityConfig.encode(_texts(configs)))
        if size_bytes > MAX_CONFIG_SIZE_BYTES:
            reason = f"{size_bytes} bytes of configuration are more than the {MAX_CONFIG_SIZE_BYTES} a topic may have"
            raise BrokerError(ErrorCode.INVALID_CONFIG, reason)
        try:
            self._check_config(_texts(configs))
        except ConfigError as error:
            raise BrokerError(ErrorCode.INVALID_CONFIG, str(error)) from None

    def _write(
        self, term: Term, planned: Mapping[str, TopicAssignment], configs: Mapping[str, dict[str, str]]
    ) -> dict[str, BrokerError]:
        """Configuration first, then the topic: whoever sees a topic sees its configuration. Gives those refused.

        No topic is made without the configuration that was asked for, and no configuration stays of one that was not.
        """
        paths = {name: EntityConfig.path(f"topics/{name}") for name in planned}
        # A node may be left over from a topic that an old tool removed by hand.
        left_over = term.store.existing(list(paths.values()))
        operations: list[Operation] = []
        for name, path in paths.items():
            data = EntityConfig.encode(configs[name])
            operations.append(SetData(path, data) if path in left_over else Create(path, data))
        refused = _refusals(planned, term.store.write(operations))
        configured = [name for name in planned if name not in refused]
        creations = [Create(TopicAssignment.path(name), planned[name].encode()) for name in configured]
        unmade = _refusals(configured, term.store.write(creations))
        term.store.remove_configs(name for name in unmade if paths[name] not in left_over)
        return refused | unmade

    def _outcome(self, term: Term, result: TopicResult, refused: Mapping[str, BrokerError]) -> TopicResult:
        if result.error is not None:
            return result
        if result.name in refused:
            return TopicResult(result.name, ZERO_ID, refused[result.name])
        return result._replace(error=_unled(term, term.context.partitions_of(result.name)))


def _refusal(count: CountPartitions | None, partitions: int) -> BrokerError | None:
    if count is not None:
        try:
            count(partitions)
        except BrokerError as error:
            return error
    return None


def _grown(stored: TopicAssignment, replicas: Mapping[int, tuple[int, ...]]) -> TopicAssignment:
    """A partition that somebody else made meanwhile stays where it was put."""
    return stored._replace(replicas={**replicas, **stored.replicas})


def _refusals(names: Iterable[str], results: Sequence[object]) -> dict[str, BrokerError]:
    """Of the topics whose nodes could not be made: `results` has what became of each."""
    refused: dict[str, BrokerError] = {}
    for name, result in zip(names, results, strict=True):
        if isinstance(result, NodeExistsError):
            refused[name] = BrokerError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        elif isinstance(result, RegistryError):
            refused[name] = _not_written(result)
    return refused


def _result(topic: NewTopic, assignment: TopicAssignment) -> TopicResult:
    return TopicResult(
        topic.name,
        assignment.topic_id or ZERO_ID,
        None,
        len(assignment.replicas),
        len(assignment.replicas[0]),
        _texts(topic.configs),
    )


def _unled(term: Term, partitions: Sequence[TopicPartition]) -> BrokerError | None:
    """An error that names partitions which exist now but have no leader, a failed disk being the usual reason."""
    phases = term.context.partition_phases
    unled = [partition for partition in partitions if phases.get(partition) is not PartitionPhase.ONLINE]
    if not unled:
        return None
    names = ", ".join(f"{topic}-{partition}" for topic, partition in unled[:10])
    return BrokerError(
        ErrorCode.KAFKA_STORAGE_ERROR, f"Created, but without a leader yet: {names} ({len(unled)} in all)."
    )


def _validate_partition_count(count: int) -> None:
    if count > MAX_PARTITIONS_PER_TOPIC:
        raise BrokerError(
            ErrorCode.INVALID_PARTITIONS,
            f"{count} partitions are more than the {MAX_PARTITIONS_PER_TOPIC} a topic may have.",
        )


def _texts(configs: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in configs.items() if value is not None}


def _not_written(failure: RegistryError) -> BrokerError:
    """A node that is too large is its asker's fault."""
    code = ErrorCode.INVALID_REQUEST if isinstance(failure, InvalidNodeError) else ErrorCode.UNKNOWN_SERVER_ERROR
    return BrokerError(code, str(failure))


def _unknown_topic(name: str) -> BrokerError:
    return BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Topic '{name}' does not exist.")
