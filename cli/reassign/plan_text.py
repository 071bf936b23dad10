"""Reassignments that have yet to begin, and those that go on, as tables."""

from collections import Counter
from collections.abc import Iterable, Mapping

from kavka.cli.counting import counted
from kavka.cli.reassign.placement import Assignment
from kavka.cli.reassign.progress import size_text
from kavka.cli.reassign.states import Checked, State
from kavka.cli.showing import BAD, GOOD, WARN, Report, Table, Value, table_lines
from kavka.client.admin import PartitionReassignment
from kavka.client.topic_partition import TopicPartition

_TINTS = {State.COMPLETED: GOOD, State.IN_PROGRESS: WARN, State.OTHERWISE: BAD, State.MISSING: BAD}


def plan_report(proposed: Assignment, current: Assignment, sizes: Mapping[TopicPartition, int]) -> Report:
    """The moves with their bytes; for people also what becomes of each broker. `sizes` are of all copies of a move."""
    columns = ("topic", "partition", "former_replicas", "replicas", "bytes_to_move")
    rows = [
        (partition.topic, partition.partition, list(current[partition]), list(replicas), sizes.get(partition, 0))
        for partition, replicas in sorted(proposed.items())
    ]

    def lines() -> Iterable[str]:
        if not rows:
            return ["nothing is to move"]
        moving = sum(size_bytes > 0 or set(old) != set(new) for _, _, old, new, size_bytes in rows)
        reordered = len(rows) - moving
        total = sum(sizes.get(each, 0) for each in proposed)
        summary = (
            f"{counted(moving, 'partition moves', 'partitions move')},"
            f" {counted(reordered, 'partition changes its', 'partitions change their')} preferred leader only:"
            f" {size_text(total)} to copy"
        )
        return [*table_lines(Table("reassign-plan", columns, rows)), "", summary]

    return Report("reassign-plan", [dict(zip(columns, row, strict=True)) for row in rows], lines)


def broker_lines(
    after: Assignment, before: Assignment, racks: Mapping[int, str | None], sizes: Mapping[TopicPartition, int]
) -> list[str]:
    """What each broker has before and after, of the partitions that were looked at. `sizes` are of one replica."""
    brokers = sorted({*racks, *(each for replicas in (*before.values(), *after.values()) for each in replicas)})
    old, new = _totals(before, sizes), _totals(after, sizes)
    rows = [
        (
            broker_id,
            racks.get(broker_id),
            _change(old[0][broker_id], new[0][broker_id]),
            _change(old[1][broker_id], new[1][broker_id]),
            f"{size_text(old[2][broker_id])} -> {size_text(new[2][broker_id])}",
        )
        for broker_id in brokers
    ]
    return table_lines(Table("", ("broker", "rack", "replicas", "preferred_leader", "size"), rows))


def state_table(rows: Iterable[Checked]) -> Table:
    """How far each is."""
    columns = ("topic", "partition", "broker", "state", "current", "target")
    shown = [
        (
            row.partition.topic,
            row.partition.partition,
            row.broker_id,
            row.state.value,
            list(row.current) if isinstance(row.current, tuple) else row.current,
            list(row.target) if isinstance(row.target, tuple) else row.target,
        )
        for row in rows
    ]
    return Table("reassign-verify", columns, shown, tint=lambda row: _TINTS[State(str(row[3]))])


def ongoing_table(
    ongoing: Mapping[TopicPartition, PartitionReassignment], sizes: Mapping[TopicPartition, int]
) -> Table:
    """What moves now, and the bytes that are left."""
    columns = ("topic", "partition", "replicas", "adding", "removing", "bytes_left")
    rows: list[tuple[Value, ...]] = [
        (
            partition.topic,
            partition.partition,
            list(each.replicas),
            list(each.adding_replicas),
            list(each.removing_replicas),
            sizes.get(partition, 0),
        )
        for partition, each in sorted(ongoing.items())
    ]
    return Table("reassign-list", columns, rows)


def _totals(
    assignment: Assignment, sizes: Mapping[TopicPartition, int]
) -> tuple[Counter[int], Counter[int], Counter[int]]:
    """Replicas, preferred leaderships and bytes by broker."""
    replicas: Counter[int] = Counter()
    leaders: Counter[int] = Counter()
    size_bytes: Counter[int] = Counter()
    for partition, brokers in assignment.items():
        leaders[brokers[0]] += 1
        for broker_id in brokers:
            replicas[broker_id] += 1
            size_bytes[broker_id] += sizes.get(partition, 0)
    return replicas, leaders, size_bytes


def _change(old: int, new: int) -> str:
    return str(old) if old == new else f"{old} -> {new}"
