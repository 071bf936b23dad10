"""Partitions: offsets, deleting records, elections, reassignments, and the directories that replicas are in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from kavka.client.admin.areas.area import Area, Outcomes, each_of, settled, split
from kavka.client.admin.areas.later import Later
from kavka.client.admin.types.topics import IsolationLevel
from kavka.client.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kavka.client.admin.operations import log_dirs
    from kavka.client.admin.operations import partitions as operations
    from kavka.client.admin.types.log_dirs import LogDirDescription, ReplicaLogDirInfo
    from kavka.client.admin.types.topics import (
        ElectionType,
        ListOffsetsResultInfo,
        OffsetSpec,
        PartitionReassignment,
        TopicPartitionReplica,
    )
else:
    log_dirs = Later("kavka.client.admin.operations.log_dirs")
    operations = Later("kavka.client.admin.operations.partitions")


class PartitionsArea(Area):
    """Threads: any."""

    def list_offsets(
        self,
        specs: Mapping[TopicPartition, OffsetSpec | int],
        *,
        isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
        timeout_ms: float | None = None,
    ) -> dict[TopicPartition, ListOffsetsResultInfo]:
        """Partitions' first, last and other offsets; a number from 0 on is a time in milliseconds (KIP-79).

            admin.list_offsets({TopicPartition("orders", 0): OffsetSpec.LATEST})

        Asked of the leaders. An offset of -1: there is none. Raises UnknownTopicOrPartitionError, after some seconds in
        which it might only be new; UnsupportedVersionError for a spec that the leader does not know.
        """
        return self._run(operations.list_offsets(specs, isolation_level), self._deadline(timeout_ms))

    def delete_records(
        self, before: Mapping[TopicPartition, int], *, timeout_ms: float | None = None
    ) -> dict[TopicPartition, int]:
        """Delete the records before these offsets, -1 for all there are; the first offset that each partition has then.

        Asked of the leaders (KIP-107). Raises OffsetOutOfRangeError, PolicyViolationError for compacted topics, ...;
        with -1 DisconnectedError when it is not known whether it was done: asked again it would delete what came since.
        """
        return self._run(operations.delete_records(before), self._deadline(timeout_ms))

    def elect_leaders(
        self,
        election_type: ElectionType,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        timeout_ms: float | None = None,
    ) -> dict[TopicPartition, None]:
        """Have leaders elected, of all partitions where none are given; those that have been (KIP-183, KIP-460).

        Asked of the controller. Raises ElectionNotNeededError for a given partition whose leader is the right one
        already, PreferredLeaderNotAvailableError, EligibleLeadersNotAvailableError, ...
        """
        deadline_ms = self._deadline(timeout_ms)
        if partitions is not None:
            return self._run(operations.elect_leaders(election_type, each_of(partitions)), deadline_ms)
        operation = operations.elect_all_leaders(election_type)
        elected = self._one(operation, deadline_ms)
        return split(operation.name, elected)

    def alter_partition_reassignments(
        self,
        targets: Mapping[TopicPartition, Sequence[int] | None],
        *,
        allow_replication_factor_change: bool = True,
        timeout_ms: float | None = None,
    ) -> dict[TopicPartition, None]:
        """Have partitions moved to these brokers, or with None no longer moved (KIP-455). Asked of the controller.

        It returns when the moves have begun: `list_partition_reassignments` shows those that go on.
        Raises InvalidReplicaAssignmentError, NoReassignmentInProgressError, ...
        """
        operation = operations.alter_reassignments(targets, allow_replication_factor_change)
        return self._run(operation, self._deadline(timeout_ms))

    def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None, *, timeout_ms: float | None = None
    ) -> dict[TopicPartition, PartitionReassignment]:
        """Those of the partitions, or of all, that are being moved now. Asked of the controller."""
        wanted = None if partitions is None else each_of(partitions)
        return self._one(operations.list_reassignments(wanted), self._deadline(timeout_ms))

    def describe_log_dirs(
        self, broker_ids: Iterable[int] | None = None, *, timeout_ms: float | None = None
    ) -> dict[int, dict[str, LogDirDescription]]:
        """Each broker's log directories, by broker and path, and the replicas in them (KIP-113); of all by default."""
        deadline_ms = self._deadline(timeout_ms)
        ids = self._broker_ids(deadline_ms) if broker_ids is None else each_of(broker_ids)
        return self._run(log_dirs.describe_log_dirs(ids), deadline_ms)

    def describe_replica_log_dirs(
        self, replicas: Iterable[TopicPartitionReplica], *, timeout_ms: float | None = None
    ) -> dict[TopicPartitionReplica, ReplicaLogDirInfo]:
        """Where these replicas are, and where they are being moved to. One that its broker has not is nowhere."""
        asked = each_of(replicas)
        by_broker: dict[int, list[TopicPartition]] = {}
        for topic, partition, broker_id in asked:
            by_broker.setdefault(broker_id, []).append(TopicPartition(topic, partition))
        operation = log_dirs.describe_log_dirs(list(by_broker), by_broker)
        found = self._outcomes(operation, self._deadline(timeout_ms))
        by_replica = Outcomes(
            {each: _where(each, found.results[each.broker_id]) for each in asked if each.broker_id in found.results},
            {each: found.errors[each.broker_id] for each in asked if each.broker_id in found.errors},
        )
        return settled(operation.name, by_replica.results, by_replica.errors)

    def alter_replica_log_dirs(
        self, moves: Mapping[TopicPartitionReplica, str], *, timeout_ms: float | None = None
    ) -> dict[TopicPartitionReplica, None]:
        """Have replicas moved to another log directory of their broker (KIP-113).

        It returns when the moves have begun: `describe_replica_log_dirs` shows how far they are. Raises
        LogDirNotFoundError, KafkaStorageError, ...
        """
        return self._run(log_dirs.alter_replica_log_dirs(moves), self._deadline(timeout_ms))


def _where(replica: TopicPartitionReplica, dirs: Mapping[str, LogDirDescription]) -> ReplicaLogDirInfo:
    from kavka.client.admin.types.log_dirs import ReplicaLogDirInfo

    found = ReplicaLogDirInfo(None, -1, None, -1)
    for path, log_dir in dirs.items():
        info = log_dir.replicas.get(TopicPartition(replica.topic, replica.partition))
        if info is None:
            continue
        if info.is_future:
            found = found._replace(future_dir=path, future_offset_lag=info.offset_lag)
        else:
            found = found._replace(current_dir=path, current_offset_lag=info.offset_lag)
    return found
