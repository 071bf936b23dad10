"""How much of a reassignment is left, in partitions and bytes."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from kavka.cli.reassign.cluster_view import log_dirs_of
from kavka.cli.reassign.json_files import Reassignment
from kavka.client.admin import TopicPartitionReplica
from kavka.client.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kavka.client.admin import LogDirDescription, PartitionReassignment
    from kavka.client.admin.admin import Admin

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_STEP: Final = 1024


class Left(NamedTuple):
    """Moves that go on: of partitions, and of replicas between log directories; and the bytes to be copied yet."""

    partitions: int
    directories: int
    bytes: int

    @property
    def is_nothing(self) -> bool:
        return not self.partitions and not self.directories


def left(admin: "Admin", wanted: Reassignment) -> Left:
    """Ask what is left of a reassignment."""
    ongoing = admin.list_partition_reassignments(wanted.replicas) if wanted.replicas else {}
    brokers = {broker_id for each in ongoing.values() for broker_id in each.replicas}
    brokers |= {replica.broker_id for replica in wanted.log_dirs}
    log_dirs = log_dirs_of(admin, brokers) if brokers else {}
    by_partition = bytes_left(ongoing, log_dirs)
    by_directory = _directories_left(wanted, log_dirs)
    return Left(len(ongoing), len(by_directory), sum(by_partition.values()) + sum(by_directory.values()))


def bytes_left(
    ongoing: "Mapping[TopicPartition, PartitionReassignment]",
    log_dirs: "Mapping[int, Mapping[str, LogDirDescription]]",
) -> dict[TopicPartition, int]:
    """By partition, what the brokers that get it have less of than those who have most."""
    sizes: dict[tuple[TopicPartition, int], int] = {}
    for broker_id, dirs in log_dirs.items():
        for log_dir in dirs.values():
            for partition, replica in log_dir.replicas.items():
                if partition in ongoing and not replica.is_future:
                    sizes[partition, broker_id] = replica.size_bytes
    found = {}
    for partition, each in ongoing.items():
        whole = max((sizes.get((partition, broker_id), 0) for broker_id in each.replicas), default=0)
        found[partition] = sum(whole - sizes.get((partition, broker_id), 0) for broker_id in each.adding_replicas)
    return found


def _directories_left(
    wanted: Reassignment, log_dirs: "Mapping[int, Mapping[str, LogDirDescription]]"
) -> dict[TopicPartitionReplica, int]:
    """The replicas that are not where they are to be, but on their way there, and their bytes."""
    found = {}
    for replica, directory in wanted.log_dirs.items():
        dirs = log_dirs.get(replica.broker_id, {})
        partition = TopicPartition(replica.topic, replica.partition)
        copy = dirs[directory].replicas.get(partition) if directory in dirs else None
        if copy is None or not copy.is_future:
            continue
        rows = [each.replicas[partition] for each in dirs.values() if partition in each.replicas]
        whole = max((each.size_bytes for each in rows if not each.is_future), default=0)
        found[replica] = max(0, whole - copy.size_bytes)
    return found


def size_text(size_bytes: int) -> str:
    """For people: `0 B`, `1.5 MiB`."""
    size, unit = float(size_bytes), 0
    while size >= _STEP and unit < len(_UNITS) - 1:
        size /= _STEP
        unit += 1
    return f"{size_bytes} B" if unit == 0 else f"{size:.1f} {_UNITS[unit]}"
