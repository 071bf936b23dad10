"""Topics, their partitions and where these are."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kavka.client.admin.types.acls import AclOperation
    from kavka.client.admin.types.configs import ConfigEntry
    from kavka.protocol.schema import Uuid


class NewTopic(NamedTuple):
    """A topic to be created. -1: as the broker's `num.partitions` and `default.replication.factor` say (KIP-464).

    `assignment` instead gives each partition's brokers, the preferred leader first.

        NewTopic("visits", num_partitions=6, configs={"retention.ms": "86400000"})
        NewTopic("visits", assignment={0: [1, 2], 1: [2, 1]})
    """

    name: str
    num_partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str | None] | None = None
    assignment: Mapping[int, Sequence[int]] | None = None


class TopicMetadataAndConfig(NamedTuple):
    """A topic as it was created, or would have been. -1 and None where brokers before 2.4 do not tell, or may not.

    made = admin.create_topics([NewTopic("places")], validate_only=True)["places"]
    print(made.num_partitions, made.replication_factor, made.topic_id.hex())
    """

    name: str
    topic_id: Uuid
    num_partitions: int
    replication_factor: int
    configs: Mapping[str, ConfigEntry] | None


class NewPartitions(NamedTuple):
    """How many partitions a topic is to have in all; `assignments` gives the brokers of each one that is new.

    NewPartitions(3, [[1, 2]])
    """

    total_count: int
    assignments: Sequence[Sequence[int]] | None = None


class TopicListing(NamedTuple):
    """A topic that is there. `topic_id` is all zero where brokers know no ids (before 2.8).

    for topic in admin.list_topics(include_internal=True).values():
        print(topic.name, topic.is_internal)
    """

    name: str
    topic_id: Uuid
    is_internal: bool


class TopicPartitionInfo(NamedTuple):
    """Who has a partition: broker ids, the preferred leader first. `leader_id` is -1 while it has no leader.

    The two lists of eligible leaders (KIP-966) are None where brokers do not tell.

        for partition in admin.describe_topics(["visits"])["visits"].partitions:
            print(partition.partition, partition.leader_id, set(partition.replicas) - set(partition.isr))
    """

    partition: int
    leader_id: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline_replicas: tuple[int, ...]
    eligible_leader_replicas: tuple[int, ...] | None = None
    last_known_eligible_leader_replicas: tuple[int, ...] | None = None


class TopicDescription(NamedTuple):
    """A topic, its partitions in their order, and what the caller may do, if that was asked for.

    visits = admin.describe_topics(["visits"])["visits"]
    print(visits.topic_id.hex(), len(visits.partitions))
    """

    name: str
    topic_id: Uuid
    is_internal: bool
    partitions: tuple[TopicPartitionInfo, ...]
    authorized_operations: frozenset[AclOperation] | None


class ElectionType(enum.IntEnum):
    """Whom an election may make leader: the preferred replica alone, or any that is alive, though records be lost.

    print(admin.elect_leaders(ElectionType.PREFERRED))
    """

    PREFERRED = 0
    UNCLEAN = 1


class PartitionReassignment(NamedTuple):
    """A partition on its way: all its brokers now, those that are to have it, and those that will lose it.

    for partition, moving in admin.list_partition_reassignments().items():
        print(partition, moving.adding_replicas, moving.removing_replicas)
    """

    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]


class ListOffsetsResultInfo(NamedTuple):
    """What was found: -1 each where there is none, as for a time after the last record.

    for partition, found in admin.list_offsets({TopicPartition("visits", 0): OffsetSpec.EARLIEST}).items():
        print(partition, found.offset, found.timestamp_ms)
    """

    offset: int
    timestamp_ms: int
    leader_epoch: int


class OffsetSpec(enum.IntEnum):
    """Offsets with a name; any number from 0 on is a time in milliseconds instead: the first record since then.

    print(admin.list_offsets({TopicPartition("visits", 0): OffsetSpec.MAX_TIMESTAMP}))
    """

    LATEST = -1
    """One after the last record; with isolation read_committed, after the last that is stable."""
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    """The record with the newest timestamp (KIP-734)."""
    EARLIEST_LOCAL = -4
    """The first that is not in tiered storage alone (KIP-405)."""
    LATEST_TIERED = -5
    EARLIEST_PENDING_UPLOAD = -6


class IsolationLevel(enum.IntEnum):
    """Whether records of transactions that are open, or were aborted, count.

    ends = {TopicPartition("visits", 0): OffsetSpec.LATEST}
    print(admin.list_offsets(ends, isolation_level=IsolationLevel.READ_COMMITTED))
    """

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


class TopicPartitionReplica(NamedTuple):
    """One broker's copy of a partition. As a `TopicPartition` equal to, and hashed as, the plain tuple.

    print(TopicPartitionReplica("visits", 0, broker_id=1))
    """

    topic: str
    partition: int
    broker_id: int
