"""A lake's rows to a topic again: in their order, to their partitions, with their times and headers, each once.

Each source partition has a producer of its own, and a marker with the next offset in the same transactions as the rows:
whatever is killed when, the same call goes on behind the last transaction that counts. Partitions take turns by the
times of their rows, so that a reader of the target meets history about as it was.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow
import pyarrow.compute

from kavka.client import Admin, OffsetSpec, TopicPartition
from kavka.pipeline.lake.entries import Filter
from kavka.pipeline.lake.lake import Lake
from kavka.pipeline.sending.lake_rows import Piece, pieces, portions
from kavka.pipeline.sending.marked_producer import MarkedProducer, Transactions
from kavka.pipeline.sending.marker_reading import NOTHING_READ, read_markers
from kavka.pipeline.sending.markers import (
    MARKER_TOPIC,
    Marker,
    MarkerName,
    MarkerPlace,
    common_settings,
    marker_place,
)
from kavka.pipeline.sending.pace import Pace
from kavka.pipeline.sending.rows import rows_of
from kavka.pipeline.sending.steps import OnStep, unwatched
from kavka.pipeline.sending.target_checks import Target, TargetError, checked_target, load_of
from kavka.pipeline.sending.target_partitions import AS_SOURCE, PartitionChoice

TRANSACTION_ROWS: Final = 50_000
_BEFORE_ALL_MS: Final = -(2**63)
_MICROSECONDS: Final = pyarrow.timestamp("us", "UTC")


class Replay(NamedTuple):
    """What is replayed, and how.

    `name` tells replays apart: the same name goes on where it was, and sends nothing once it has ended; another one
    sends all again. A name is of one lake, time and target: with others it is refused, as it is when the target was
    made anew. `from_ms` and `to_ms` are times of records, half open; None: no limit. `settings` are a producer's.
    A time that moves with the clock, as `7d` does, comes with how it was said (`from_said`, `to_said`): said alike, it
    stays what it was when the replay began.
    `partitions`: "source" keeps each row's partition, "key" has its key decide. `rows_per_second`: of all partitions
    together; None: as quick as it goes.
    """

    lake: Path
    topic: str
    target: str
    settings: Mapping[str, str]
    name: str
    from_ms: int | None = None
    to_ms: int | None = None
    partitions: str = AS_SOURCE
    rows_per_second: float | None = None
    transactions: Transactions = Transactions(rows=TRANSACTION_ROWS)
    marker_topic: str = MARKER_TOPIC
    on_step: OnStep = unwatched
    from_said: str | None = None
    to_said: str | None = None


class Replayed(NamedTuple):
    """So far: rows that were sent just now, and the next offset of each source partition."""

    rows: int
    positions: Mapping[int, int]


OnProgress = Callable[[Replayed], None]


def replay(what: Replay, on_progress: OnProgress = lambda so_far: None) -> Replayed:
    """Send the lake's rows of a topic and time to another topic, or the same. Returns when all are there.

    Before the first record the target is checked: that it takes such times and keeps them, and has the partitions.
    `on_progress` is called after each transaction. Raises TargetError, LakeError, NoRowsError, FencedWriterError when
    the same replay runs elsewhere, KafkaError, ValueError. Threads: one.
    """
    return _replayed(what, {}, on_progress)


def backfill(what: Replay, on_progress: OnProgress = lambda so_far: None) -> Replayed:
    """As `replay`, of what the topic itself has lost to retention: the lake's rows before the log's start.

    A topic that is not there has lost all.
    """
    with Admin(common_settings(what.settings)) as admin:
        if what.topic not in admin.list_topics():
            return _replayed(what, {}, on_progress)
        partitions = [each.partition for each in admin.describe_topics([what.topic])[what.topic].partitions]
        asked = {TopicPartition(what.topic, partition): OffsetSpec.EARLIEST for partition in partitions}
        starts = {each.partition: found.offset for each, found in admin.list_offsets(asked).items()}
    return _replayed(what, starts, on_progress)


def _replayed(what: Replay, ends: Mapping[int, int], on_progress: OnProgress) -> Replayed:
    choice = PartitionChoice(what.partitions, what.settings)
    pace = Pace(what.rows_per_second)
    lake = Lake(what.lake)
    partitions = sorted(lake.next_offsets().get(what.topic, {}))
    if partitions and (what.from_said is not None or what.to_said is not None):
        what = _as_begun(what, partitions)
    wanted = {
        partition: Filter(what.topic, partition, None, ends.get(partition), _micros(what.from_ms), _micros(what.to_ms))
        for partition in partitions
    }
    files = {partition: found for partition, filters in wanted.items() if (found := lake.files(filters))}
    rows, positions = 0, dict.fromkeys(files, 0)
    if not files:
        return Replayed(rows, positions)
    with Admin(common_settings(what.settings)) as admin:
        load = load_of(files, what.from_ms, what.to_ms)
        target = checked_target(admin, what.target, load, what.partitions, time.time_ns() // 1_000_000)
        place = marker_place(admin, what.settings, what.marker_topic)
    with ExitStack() as stack:
        waiting = []
        for partition in files:
            source = _Source(what, place, lake, wanted[partition], choice, target)
            stack.callback(source.close)
            positions[partition] = source.open()
            waiting.append(source)
        while waiting:
            source = min(waiting, key=lambda each: each.time_ms)
            sent = source.send_some(pace)
            if sent is None:
                waiting.remove(source)
                continue
            rows += sent
            positions[source.partition] = source.position
            on_progress(Replayed(rows, dict(positions)))
    return Replayed(rows, positions)


def _as_begun(what: Replay, partitions: Iterable[int]) -> Replay:
    """With the times that it began with, if it did and they were said alike."""
    names = [MarkerName(what.name, what.topic, partition) for partition in partitions]
    with Admin(common_settings(what.settings)) as admin:
        place = marker_place(admin, what.settings, what.marker_topic)
    read = read_markers(place, NOTHING_READ, 2 * what.transactions.timeout_ms, names.__contains__)
    for details in (marker.details for name in names if (marker := read.furthest(name)) is not None):
        if what.from_said is not None and details.get("from_said") == what.from_said:
            what = what._replace(from_ms=details["from_ms"])
        if what.to_said is not None and details.get("to_said") == what.to_said:
            what = what._replace(to_ms=details["to_ms"])
    return what


class _Source:
    """One partition of the lake on its way. Threads: one."""

    def __init__(
        self, what: Replay, place: MarkerPlace, lake: Lake, wanted: Filter, choice: PartitionChoice, target: Target
    ) -> None:
        assert wanted.partition is not None
        self.partition: Final = wanted.partition
        self.position = 0
        self.time_ms = _BEFORE_ALL_MS
        """Of the newest row that was sent."""
        self._what: Final = what
        self._lake: Final = lake
        self._wanted: Final = wanted
        self._choice: Final = choice
        self._count: Final = target.partitions
        self._details: Final = _details(what, target)
        name = MarkerName(what.name, what.topic, self.partition)
        self._producer: Final = MarkedProducer(place, name, what.transactions, what.on_step)
        self._rest: Iterator[Piece] = iter(())

    def open(self) -> int:
        """Find out where to begin. Raises TargetError when the replay of this name is another one."""
        marker = self._producer.open(NOTHING_READ)
        if marker is not None:
            if marker.details != self._details:
                raise TargetError(_other(self._what.name, marker.details, self._details))
            self.position = marker.position
        self._rest = self._portions(replace(self._wanted, start_offset=self.position))
        return self.position

    def _portions(self, wanted: Filter) -> Iterator[Piece]:
        """Rows for a transaction each, and the offset that comes after."""
        limit = self._what.transactions.rows or TRANSACTION_ROWS
        rate = self._what.rows_per_second
        if rate is not None:
            # It must not last longer than a quarter of what a transaction may.
            limit = max(min(limit, int(rate * self._what.transactions.timeout_ms / 4000)), 1)
        for piece in pieces(self._lake, wanted):
            yield from portions(piece, limit)

    def send_some(self, pace: Pace) -> int | None:
        """One transaction; its rows. None: there are no more."""
        portion = next(self._rest, None)
        if portion is None:
            return None
        rows, end = portion
        self._producer.begin()
        for batch in rows.combine_chunks().to_batches(pace.piece or None):
            self._send(batch)
            pace.sent(batch.num_rows)
        self._producer.commit(Marker(0, end, details=self._details))
        self.position = end
        newest = pyarrow.compute.max(rows.column("timestamp").cast(_MICROSECONDS))
        if newest.is_valid:
            # Not as a datetime: a record's time may be of the year 10000.
            self.time_ms = newest.value // 1000
        return int(rows.num_rows)

    def _send(self, batch: pyarrow.RecordBatch) -> None:
        target = self._what.target
        if self._choice.way == AS_SOURCE:
            self._producer.send(target, self.partition, rows_of(batch))
            return
        size = batch.num_rows
        keys = batch.column("key") if "key" in batch.schema.names else pyarrow.nulls(size, pyarrow.binary())
        sources = pyarrow.array([self.partition] * size, pyarrow.int32())
        chosen = self._choice.partitions(self._count, keys, batch.column("value"), sources)
        for partition, row in zip(chosen.to_pylist(), rows_of(batch), strict=True):
            self._producer.send(target, partition, (row,))

    def close(self) -> None:
        """What is open is aborted."""
        self._producer.close()


def _details(what: Replay, target: Target) -> dict[str, object]:
    """What makes a replay the same one: its position means nothing for other rows, or in a topic made anew."""
    said = {"from_said": what.from_said, "to_said": what.to_said}
    return {
        **{name: text for name, text in said.items() if text is not None},
        "lake": str(what.lake.resolve()),
        "from_ms": what.from_ms,
        "to_ms": what.to_ms,
        "target": what.target,
        "target_id": target.topic_id,
        "partitions": target.partitions,
        "by": what.partitions,
    }


def _other(name: str, began: Mapping[str, object], now: Mapping[str, object]) -> str:
    differences = [
        f"{each}={began.get(each)!r} (now {now.get(each)!r})"
        for each in sorted({*began, *now})
        if began.get(each) != now.get(each)
    ]
    return f"replay {name!r} began with {', '.join(differences)}: go on with the same, or give it another name"


def _micros(time_ms: int | None) -> int | None:
    return None if time_ms is None else time_ms * 1000
