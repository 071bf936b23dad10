"""Groups as they are shown: offsets, members, states, histories."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kavka.cli.groups.described import Group, Member
from kavka.cli.groups.moments import ago_text, moment_text
from kavka.cli.groups.progress import Progress
from kavka.cli.showing import Report, Table, escaped, table_lines
from kavka.client.topic_partition import TopicPartition

OFFSETS: Final = (
    "group",
    "topic",
    "partition",
    "current_offset",
    "log_end_offset",
    "lag",
    "lag_seconds",
    "consumer_id",
    "host",
    "client_id",
)
OFFSETS_VERBOSE: Final = (*OFFSETS[:3], "leader_epoch", *OFFSETS[3:], "metadata")
MEMBERS: Final = ("group", "consumer_id", "group_instance_id", "host", "client_id", "partitions")
MEMBERS_VERBOSE: Final = (
    *MEMBERS,
    "current_epoch",
    "current_assignment",
    "target_assignment",
    "upgraded",
)
STATE: Final = (
    "group",
    "type",
    "coordinator",
    "coordinator_id",
    "assignment_strategy",
    "state",
    "members",
    "last_rebalance",
    "last_rebalance_reason",
)
STATE_VERBOSE: Final = (*STATE[:6], "group_epoch", "target_assignment_epoch", *STATE[6:])
HISTORY: Final = ("group", "time", "old_state", "new_state", "epoch", "members", "begins_rebalance", "reason")


def offset_rows(groups: Iterable[Group], progress: Mapping[str, list[Progress]], now_ms: int) -> list[dict[str, Any]]:
    """A row for each group's each partition."""
    return [
        {
            "group": group.group_id,
            "topic": row.partition.topic,
            "partition": row.partition.partition,
            "leader_epoch": row.committed.leader_epoch if row.committed is not None else None,
            "current_offset": row.committed.offset if row.committed is not None else None,
            "log_end_offset": row.end,
            "lag": row.lag,
            "lag_seconds": row.lag_seconds(now_ms),
            "consumer_id": row.member.member_id if row.member is not None else None,
            "host": row.member.host if row.member is not None else None,
            "client_id": row.member.client_id if row.member is not None else None,
            "metadata": row.committed.metadata if row.committed is not None else None,
        }
        for group in groups
        for row in progress.get(group.group_id, ())
    ]


def member_rows(groups: Iterable[Group]) -> list[dict[str, Any]]:
    """A row for each member."""
    return [_member_row(group, member) for group in groups for member in group.members]


def _member_row(group: Group, member: Member) -> dict[str, Any]:
    return {
        "group": group.group_id,
        "consumer_id": member.member_id,
        "group_instance_id": member.instance_id,
        "host": member.host,
        "client_id": member.client_id,
        "partitions": len(member.assignment),
        "current_epoch": member.epoch,
        "current_assignment": places_text(member.assignment),
        "target_assignment": None if member.target is None else places_text(member.target),
        "upgraded": member.is_upgraded,
    }


def state_rows(groups: Iterable[Group]) -> list[dict[str, Any]]:
    """A row for each group."""
    return [_state_row(group) for group in groups]


def _state_row(group: Group) -> dict[str, Any]:
    last = group.last_rebalance
    return {
        "group": group.group_id,
        "type": group.type.value,
        "coordinator": f"{group.coordinator.host}:{group.coordinator.port}",
        "coordinator_id": group.coordinator.id,
        "assignment_strategy": group.assignor or None,
        "state": group.state.value,
        "group_epoch": group.epoch,
        "target_assignment_epoch": group.target_epoch,
        "members": len(group.members),
        "last_rebalance": None if last is None else moment_text(last.timestamp_ms),
        "last_rebalance_reason": None if last is None else last.reason,
    }


def history_rows(groups: Iterable[Group]) -> list[dict[str, Any]]:
    """A row for each transition, the oldest of a group first."""
    return [
        {
            "group": group.group_id,
            "time": moment_text(each.timestamp_ms),
            "old_state": each.old_state.value,
            "new_state": each.new_state.value,
            "epoch": each.epoch,
            "members": each.member_count,
            "begins_rebalance": each.begins_rebalance,
            "reason": each.reason,
        }
        for group in groups
        for each in group.history
    ]


def report(name: str, rows: Sequence[dict[str, Any]], columns: Sequence[str], above: Sequence[str] = ()) -> Report:
    """All of the rows for programs; for people a table of some columns, with lines above it."""

    def lines() -> Iterable[str]:
        yield from above
        if above:
            yield ""
        yield from table_lines(Table(name, columns, [[row[column] for column in columns] for row in rows]))

    return Report(name, rows, lines)


def headline(group: Group, now_ms: int) -> str:
    """A group in a line: its state, its members, when it last rebalanced and why."""
    count = len(group.members)
    members = "no active members" if not count else "1 member" if count == 1 else f"{count} members"
    text = f"{group.group_id}: {group.state.value}, {members}"
    last = group.last_rebalance
    if last is not None:
        when = f"{moment_text(last.timestamp_ms)} ({ago_text(last.timestamp_ms, now_ms)})"
        text += f"; last rebalance {when}: {last.reason}"
    elif group.history:
        text += f"; no rebalance since {moment_text(group.history[0].timestamp_ms)}"
    return escaped(text)


def places_text(partitions: Iterable[TopicPartition]) -> str:
    """`orders:0,1;payments:2`, as Kafka's tool has it."""
    by_topic: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        by_topic.setdefault(topic, []).append(number)
    return ";".join(f"{topic}:{','.join(map(str, numbers))}" for topic, numbers in by_topic.items())
