"""The sink `aggregate`: rows counted by windows of event time, each batch's new values to a compacted topic.

    [[sinks]]
    kind = "aggregate"
    topic = "visits-by-hour"              # made compacted if it is not there
    time = "time"                         # the column of the event time
    window = "1h"
    slide = "1h"                          # windows overlap when it is less
    delay = "10m"                         # how late a row may be
    by = ["site"]
    late_topic = "visits-by-hour-late"    # rows that came later, as dead letters
    measures = { visits = "count", first = "min(time)", bytes = "sum(bytes)" }

A record's key is its group, `{"window_start": ..., "site": ...}`, its value all of the group's numbers up to now: the
last value of each key is the aggregate. Bytes stand there as base64. Each batch sends the groups that it changed, in
one transaction, so that nothing is left unsent when a run ends, and readers of committed records see whole batches.

What a batch comes to lies in the sink's own state (states.py) before anything is sent. A batch that comes again sends
what is there. So values are exact whatever is killed when, rows are counted once, and late ones by the same watermark.
"""

import base64
import json
import math
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

import pyarrow
import pyarrow.compute
from pyspark.sql import Column, DataFrame, functions

from kavka.client import Admin, ConfigResource
from kavka.client.api_errors import KafkaError
from kavka.pipeline.arrow.plain_values import plain_values
from kavka.pipeline.jobs.dead_rows import dead_rows
from kavka.pipeline.jobs.letter_size import most_letter_bytes
from kavka.pipeline.jobs.made_topics import make_topic
from kavka.pipeline.jobs.measures import Measure, check_types, measure, merged, of_one_schema, type_of
from kavka.pipeline.jobs.short_values import short
from kavka.pipeline.jobs.states import Note, State, States
from kavka.pipeline.jobs.windows import NO_WATERMARK_US, Windows, late_reason, micros
from kavka.pipeline.running.sink import RunContext, Sink, SinkError
from kavka.pipeline.running.tables import Table
from kavka.pipeline.sending.marked_producer import MarkedProducer, Row
from kavka.pipeline.sending.marker_reading import NOTHING_READ
from kavka.pipeline.sending.markers import Marker, MarkerName, common_settings, marker_place
from kavka.pipeline.sending.partition_task import stale
from kavka.pipeline.sending.steps import OnStep, unwatched
from kavka.pipeline.sending.topic_sink import options_of
from kavka.pipeline.sending.writing import WriteOptions, write

ALL_PARTITIONS: Final = -2
"""In place of a partition, in the name of the marker of what the driver sends itself."""
SPLIT: Final = "split"
SAVED: Final = "saved"
LATE_SENT: Final = "late sent"
"""Steps, beside those of `kavka.pipeline.sending.steps`."""
_START: Final = "_start_us"
_BATCH: Final = "_batch"
_ROWS: Final = "_rows"
_LATEST: Final = "_latest_us"
_LATE: Final = "_late"
_TIME: Final = "_time_us"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_GROUPS: Final = 5_000_000


class Aggregation(NamedTuple):
    """What is counted. `by` are columns, `delay_us` how late a row may be."""

    time: str
    windows: Windows
    delay_us: int
    by: tuple[str, ...]
    measures: tuple[Measure, ...]

    @property
    def groups(self) -> list[str]:
        """What tells groups apart."""
        return [_START, *self.by]

    @property
    def merges(self) -> dict[str, str]:
        """How the state's other columns are merged."""
        return {**{name: merge for each in self.measures for name, merge in each.merges.items()}, _BATCH: "max"}


def split_and_counted(batch: DataFrame, what: Aggregation, watermark_us: int) -> DataFrame:
    """A row for each group of the batch, and one for its late rows: how many rows, the latest time, the measures."""
    timed = batch.withColumn(_TIME, micros(batch, what.time, what.windows.size_us))
    time_us = functions.col(_TIME)
    split = timed.withColumn(_LATE, what.windows.is_late(time_us, watermark_us))
    starts = functions.when(~functions.col(_LATE), what.windows.starts(time_us))
    placed = split.withColumn(_START, functions.explode_outer(starts))
    is_counted_here = functions.col(_LATE) | (functions.col(_START) == what.windows.latest_start(time_us))

    def of_group(name: str) -> Column:
        return functions.when(~functions.col(_LATE), short(functions.col(name), type_of(batch, name))).alias(name)

    parts = [column for each in what.measures for column in each.of_rows(batch)]
    return placed.groupBy(functions.col(_LATE), functions.col(_START), *[of_group(name) for name in what.by]).agg(
        *parts,
        functions.sum(functions.when(is_counted_here, 1).otherwise(0)).alias(_ROWS),
        functions.max(_TIME).alias(_LATEST),
    )


def next_state(before: State | None, counted: pyarrow.Table, what: Aggregation, batch_id: int) -> State:
    """The state after a batch, of that before and what `split_and_counted` made. A pure function of the two."""
    note = before.note if before is not None else Note(batch_id - 1, NO_WATERMARK_US, NO_WATERMARK_US)
    is_late = counted.column(_LATE)
    read = pyarrow.compute.sum(counted.column(_ROWS)).as_py() or 0
    late = pyarrow.compute.sum(counted.filter(is_late).column(_ROWS)).as_py() or 0
    following = note.following(read, late, pyarrow.compute.max(counted.column(_LATEST)).as_py(), what.delay_us)
    fresh = counted.filter(pyarrow.compute.invert(is_late)).drop_columns([_LATE, _ROWS, _LATEST])
    fresh = fresh.append_column(_BATCH, pyarrow.array([batch_id] * fresh.num_rows, pyarrow.int64()))
    if before is None:
        return State(following, fresh)
    ends = pyarrow.compute.add(before.groups.column(_START), what.windows.size_us)
    still_open = before.groups.filter(pyarrow.compute.greater(ends, following.split_us))
    return State(following, merged(of_one_schema(still_open, fresh), what.groups, what.merges))


def updates(state: State, what: Aggregation) -> Iterator[Row]:
    """Records of the groups that the state's batch has changed."""
    changed = state.groups.filter(pyarrow.compute.equal(state.groups.column(_BATCH), state.note.batch_id))
    columns = {name: plain_values(changed.column(name)) for name in changed.column_names}
    for row in (dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)):
        start_us = row[_START]
        group = {"window_start": _time(start_us), **{name: row[name] for name in what.by}}
        numbers = {each.name: each.result(row) for each in what.measures}
        value = {**group, "window_end": _time(start_us + what.windows.size_us), **numbers}
        yield _json(group), _json(value), _record_time_ms(start_us), ()


def _time(time_us: int) -> str:
    return (_EPOCH + timedelta(microseconds=time_us)).isoformat().replace("+00:00", "Z")


def _record_time_ms(start_us: int) -> int | None:
    """That of the window; None, for now, where that is no record's time, or is ahead: brokers may refuse such."""
    return start_us // 1000 if 0 <= start_us <= time.time_ns() // 1000 else None


def _json(fields: Mapping[str, object]) -> bytes:
    said = {name: _said(value) for name, value in fields.items()}
    return json.dumps(said, separators=(",", ":"), ensure_ascii=False, default=_as_text).encode()


def _said(value: object) -> object:
    """Numbers that JSON has not are texts, as in Spark's JSON."""
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"


def _as_text(value: object) -> str:
    """What JSON has no type for: times, dates, decimals, bytes."""
    if isinstance(value, datetime):
        # One without a zone has nothing to do with that of this machine.
        value = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        return value.isoformat().replace("+00:00", "Z")
    # Each value a text of its own: it is part of the group's key.
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


class AggregateSink:
    """See the head of the module. Threads: one."""

    def __init__(self, table: Table, on_step: OnStep = unwatched) -> None:
        """Raises SettingError."""
        self._topic: Final = table.text("topic")
        self._late_topic: Final = table.text("late_topic", f"{self._topic}-late")
        self._partitions: Final = table.number("topic_partitions", -1, least=-1)
        self._what: Final = aggregation_of(table)
        self._options: Final = options_of(table, self._topic)._replace(on_step=on_step)
        self._client: Final = table.table("client").flat()
        self._on_step: Final = on_step
        self._run: RunContext | None = None
        self._most_late_bytes = 0
        self._known = NOTHING_READ
        """Of markers: each batch reads on."""

    def open(self, run: RunContext) -> None:
        """Make the topics that are not there. Raises SinkError."""
        self._run = run
        try:
            with Admin(common_settings(self._settings(run))) as admin:
                make_topic(admin, self._topic, self._partitions, {"cleanup.policy": "compact"})
                make_topic(admin, self._late_topic, self._partitions, {})
                self._most_late_bytes = most_letter_bytes(admin, self._late_topic, self._settings(run))
                resource = ConfigResource.topic(self._topic)
                found = admin.describe_configs([resource], names=["cleanup.policy"])[resource]["cleanup.policy"].value
        except KafkaError as error:
            raise SinkError(f"{run.name}: {error}") from error
        if "compact" not in (found or ""):
            raise SinkError(f"{run.name}: topic {self._topic!r} has cleanup.policy={found}: set it to compact")

    def write(self, batch: DataFrame, batch_id: int) -> None:
        """Count a batch, and send what changed. Raises SinkError."""
        run = self._run
        assert run is not None, "write comes after open"
        states = States(run.directory)
        state = states.load(batch_id)
        if state is None:
            before = states.before(batch_id)
            watermark_us = NO_WATERMARK_US if before is None else before.note.watermark_us
            try:
                kinds = {field.name: field.dataType for field in batch.schema.fields}
                check_types(kinds, self._what.by, self._what.measures)
                counted = split_and_counted(batch, self._what, watermark_us).toArrow()
                self._on_step(SPLIT)
                state = next_state(before, counted, self._what, batch_id)
            except (ValueError, OverflowError) as error:
                raise SinkError(f"{run.name}: {error}") from error
            if state.groups.num_rows > _MOST_GROUPS:
                raise SinkError(f"{run.name}: {state.groups.num_rows} groups are open: shorten delay or window")
            states.save(state)
            self._on_step(SAVED)
        try:
            if state.note.late:
                self._send_late(run, batch, state.note)
            sent = self._send(run, state)
        except (KafkaError, ValueError) as error:
            raise SinkError(f"{run.name}: {error}") from error
        run.report.add("rows_out", sent)
        run.report.add("late_rows", state.note.late)

    def _settings(self, run: RunContext) -> dict[str, str]:
        return {**run.client_settings, **self._client}

    def _send_late(self, run: RunContext, batch: DataFrame, note: Note) -> None:
        windows = self._what.windows
        timed = batch.withColumn(_TIME, micros(batch, self._what.time, windows.size_us))
        time_us = functions.col(_TIME)
        late = timed.filter(windows.is_late(time_us, note.split_us))
        options = WriteOptions(
            self._late_topic, transactions=self._options.transactions, marker_topic=self._options.marker_topic
        )
        rows = dead_rows(late, run.job, late_reason(time_us), self._most_late_bytes)
        write(rows, note.batch_id, self._settings(run), query=f"{run.query_id}-late", options=options)
        self._on_step(LATE_SENT)

    def _send(self, run: RunContext, state: State) -> int:
        """All that changed in one transaction; the number of records."""
        batch_id, settings = state.note.batch_id, self._settings(run)
        with Admin(common_settings(settings)) as admin:
            place = marker_place(admin, settings, self._options.marker_topic)
        name = MarkerName(run.query_id, self._topic, ALL_PARTITIONS)
        with MarkedProducer(place, name, self._options.transactions, self._on_step) as producer:
            marker = producer.open(self._known)
            self._known = producer.read
            if marker is not None and marker.batch_id > batch_id:
                raise stale(name, marker, batch_id)
            rows = list(updates(state, self._what))
            if marker is not None and marker.batch_id == batch_id:
                return 0
            if rows:
                producer.begin()
                producer.send(self._topic, None, rows)
                producer.commit(Marker(batch_id, len(rows), is_whole=True))
            return len(rows)

    def close(self) -> None:
        """Nothing is open between batches."""


def aggregation_of(table: Table) -> Aggregation:
    """What a table says is to be counted. Raises SettingError."""
    size_ms = table.duration_ms("window")
    slide_ms = table.duration_ms("slide", size_ms)
    if not 0 < slide_ms <= size_ms:
        raise table.wrong("slide", "is more than nothing, and no more than window")
    if size_ms > 1000 * slide_ms:
        raise table.wrong("slide", "puts a row into more than 1000 windows")
    measures: list[Measure] = []
    given: dict[str, Any] = table.table("measures").rest() or {"count": "count"}
    for name, text in given.items():
        try:
            measures.append(measure(name, str(text)))
        except ValueError as error:
            raise table.wrong(f"measures.{name}", str(error)) from None
    by = tuple(table.texts("by", ()))
    for name in (*by, *given):
        if name.startswith("_") or name in ("window_start", "window_end") or (name in by and name in given):
            raise table.wrong("by", f"{name!r} cannot be a column of a group: it is a name of ours, or there twice")
    windows = Windows(size_ms * 1000, slide_ms * 1000)
    return Aggregation(table.text("time"), windows, table.duration_ms("delay", 0) * 1000, by, tuple(measures))


def sink(settings: Mapping[str, object]) -> Sink:
    """The sink that a table of a job file describes. Raises SettingError."""
    table = Table(settings)
    made = AggregateSink(table)
    table.close()
    return made
