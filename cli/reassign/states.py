"""How far a reassignment is: of each partition and of each replica that is to lie in a certain log directory."""

import enum
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kavka.cli.reassign.json_files import Reassignment
from kavka.client.admin import TopicPartitionReplica
from kavka.client.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kavka.client.admin import PartitionReassignment, ReplicaLogDirInfo
    from kavka.client.admin.admin import Admin


class State(enum.StrEnum):
    """What became of a move."""

    COMPLETED = "completed"
    IN_PROGRESS = "in progress"
    OTHERWISE = "not as wanted"
    """Nothing moves, and it is somewhere else: it was never begun, or called off."""
    MISSING = "not there"


class Checked(NamedTuple):
    """A partition, or with `broker_id` one replica's log directory: where it is, and where it is to be."""

    partition: TopicPartition
    broker_id: int | None
    state: State
    current: "tuple[int, ...] | str | None"
    target: "tuple[int, ...] | str"


class Found(NamedTuple):
    """`is_ongoing`: something moves in the cluster, whether it was asked about or not."""

    rows: list[Checked]
    is_ongoing: bool

    @property
    def is_done(self) -> bool:
        return all(row.state is State.COMPLETED for row in self.rows)


def checked(admin: "Admin", wanted: Reassignment) -> Found:
    """Ask how far it is."""
    ongoing = admin.list_partition_reassignments()
    current = _current(admin, {each.topic for each in wanted.replicas})
    rows = [
        Checked(partition, None, partition_state(partition, target, current, ongoing), current.get(partition), target)
        for partition, target in sorted(wanted.replicas.items())
    ]
    directories = admin.describe_replica_log_dirs(wanted.log_dirs) if wanted.log_dirs else {}
    for replica, directory in sorted(wanted.log_dirs.items()):
        info = directories[replica]
        name = TopicPartition(replica.topic, replica.partition)
        rows.append(Checked(name, replica.broker_id, directory_state(info, directory), info.current_dir, directory))
    is_moving = any(row.state is State.IN_PROGRESS for row in rows)
    return Found(rows, bool(ongoing) or is_moving)


def partition_state(
    partition: TopicPartition,
    target: tuple[int, ...],
    current: Mapping[TopicPartition, tuple[int, ...]],
    ongoing: "Collection[TopicPartition] | Mapping[TopicPartition, PartitionReassignment]",
) -> State:
    """Of a partition, which moves as long as the controller says so."""
    if partition in ongoing:
        return State.IN_PROGRESS
    if partition not in current:
        return State.MISSING
    return State.COMPLETED if current[partition] == tuple(target) else State.OTHERWISE


def directory_state(info: "ReplicaLogDirInfo", directory: str) -> State:
    """Of a replica; one that is on its way to a third directory is not as wanted."""
    if info.current_dir is None:
        return State.MISSING
    if info.future_dir is not None:
        return State.IN_PROGRESS if info.future_dir == directory else State.OTHERWISE
    return State.COMPLETED if info.current_dir == directory else State.OTHERWISE


def moving_directories(admin: "Admin", wanted: Reassignment) -> dict[TopicPartitionReplica, str]:
    """The replicas that are on their way to another directory, and where they are meanwhile."""
    if not wanted.log_dirs:
        return {}
    found = admin.describe_replica_log_dirs(wanted.log_dirs)
    return {
        replica: info.current_dir
        for replica, info in found.items()
        if info.future_dir is not None and info.current_dir is not None
    }


def _current(admin: "Admin", topics: set[str]) -> dict[TopicPartition, tuple[int, ...]]:
    """Of those topics that are there: one may have been deleted while it moved."""
    listed = admin.list_topics(include_internal=True)
    there = sorted(topics & listed.keys())
    described = admin.describe_topics(there) if there else {}
    return {
        TopicPartition(topic.name, each.partition): each.replicas
        for topic in described.values()
        for each in topic.partitions
    }
