"""How far groups have come: their committed offsets, and what lies before them, in records and in seconds."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from kavka.cli.groups.choosing import outcomes
from kavka.cli.groups.described import Group, Member
from kavka.cli.groups.unread import Unread
from kavka.client.admin.types.groups import GroupType, SharePartitionOffsetInfo
from kavka.client.admin.types.topics import OffsetSpec
from kavka.client.consumer.group.port import OffsetAndMetadata
from kavka.client.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kavka.client import Admin
    from kavka.client.kafka_error import KafkaError

Look: TypeAlias = Callable[[Iterable[Unread]], Mapping[Unread, int]]
"""Finds the timestamps of the first unread records: `UnreadTimestamps.look`."""
Committed: TypeAlias = OffsetAndMetadata | SharePartitionOffsetInfo | None
"""What a broker tells of a group in a partition."""


class Progress(NamedTuple):
    """A group in a partition; None is what is not known, or not there."""

    partition: TopicPartition
    committed: OffsetAndMetadata | None
    """Of a share group, where its records in flight begin."""
    end: int | None
    lag: int | None
    unread_since_ms: int | None
    """When the oldest record was made that is not consumed yet."""
    member: Member | None

    def lag_seconds(self, now_ms: int) -> float | None:
        """How long ago that was; 0 if nothing lies before the group."""
        if self.lag is None:
            return None
        if self.lag <= 0:
            return 0.0
        if self.unread_since_ms is None or self.unread_since_ms < 0:
            return None
        return max(now_ms - self.unread_since_ms, 0) / 1000


def progress_of(
    admin: "Admin", groups: Iterable[Group], look: Look | None
) -> "tuple[dict[str, list[Progress]], dict[str, KafkaError]]":
    """By group, in the order of partitions: those that it has committed, and those that members have. Then failures.

    Without `look` nothing is said of seconds. Partitions that are gone have no end.
    """
    asked = list(groups)
    committed, failures = _committed(admin, asked)
    owners = {
        (group.group_id, partition): member
        for group in asked
        for member in group.members
        for partition in member.assignment
    }
    places = sorted(
        {(group_id, partition) for group_id, offsets in committed.items() for partition in offsets}
        | {place for place in owners if place[0] in committed}
    )
    ends = end_offsets(admin, {partition for _, partition in places})
    rows = {
        (group_id, partition): _progress(
            partition, committed[group_id].get(partition), ends.get(partition), owners.get((group_id, partition))
        )
        for group_id, partition in places
    }
    unread = {place: each for place, row in rows.items() if (each := _unread(row)) is not None}
    since = look(unread.values()) if look is not None else {}
    found: dict[str, list[Progress]] = {group_id: [] for group_id in committed}
    for place, row in rows.items():
        timestamp_ms = since.get(unread[place]) if place in unread else None
        found[place[0]].append(row._replace(unread_since_ms=timestamp_ms))
    return found, failures


def end_offsets(admin: "Admin", partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """One after each partition's last record; partitions that have no leader or are gone are left out."""
    latest = OffsetSpec.LATEST
    found, _ = outcomes(sorted(partitions), lambda asked: admin.list_offsets(dict.fromkeys(asked, latest)))
    return {partition: info.offset for partition, info in found.items()}


def _committed(
    admin: "Admin", groups: list[Group]
) -> "tuple[dict[str, Mapping[TopicPartition, Committed]], dict[str, KafkaError]]":
    share = [group.group_id for group in groups if group.type is GroupType.SHARE]
    others = [group.group_id for group in groups if group.type is not GroupType.SHARE]
    offsets, failures = outcomes(others, lambda ids: admin.list_group_offsets(dict.fromkeys(ids)))
    starts, failed = outcomes(share, lambda ids: admin.list_share_group_offsets(dict.fromkeys(ids)))
    found: dict[str, Mapping[TopicPartition, Committed]] = {**offsets}
    found.update(starts)
    return found, {**failures, **failed}


def _progress(partition: TopicPartition, found: Committed, end: int | None, member: Member | None) -> Progress:
    if isinstance(found, SharePartitionOffsetInfo):
        begins = OffsetAndMetadata(found.start_offset, found.leader_epoch) if found.start_offset >= 0 else None
        lag = found.lag if found.lag >= 0 else _lag(begins, end)
        return Progress(partition, begins, end, lag, None, member)
    return Progress(partition, found, end, _lag(found, end), None, member)


def _lag(committed: OffsetAndMetadata | None, end: int | None) -> int | None:
    return None if committed is None or end is None else end - committed.offset


def _unread(row: Progress) -> Unread | None:
    if row.committed is None or row.end is None or not row.lag or row.lag < 0:
        return None
    return Unread(row.partition, row.committed.offset, row.end)
