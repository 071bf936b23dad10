"""Two topics joined by columns and event time: inner, each pair once.

A row is late when its time lies before the watermark: the latest time of all batches before, less the delay. Rows wait
for others as long as one that is not late could match them: in Parquet below the sink's own folder, one folder a batch.
What a batch begins with is there until the next one is done, so that a batch that comes again makes the same pairs.
The pairs are those of a join of all rows that were not late.
"""

import shutil
from functools import reduce
from operator import and_
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow
from pyspark.sql import Column, DataFrame, functions

from kavka.client import Admin
from kavka.client.api_errors import KafkaError
from kavka.pipeline.jobs.dead_rows import dead_rows
from kavka.pipeline.jobs.letter_size import most_letter_bytes
from kavka.pipeline.jobs.made_topics import make_topic
from kavka.pipeline.jobs.states import Note, State, States
from kavka.pipeline.jobs.windows import NO_WATERMARK_US, late_reason, micros
from kavka.pipeline.lake.spark_paths import to_read, to_write
from kavka.pipeline.running.sink import RunContext, SinkError
from kavka.pipeline.running.tables import Table
from kavka.pipeline.sending.markers import common_settings
from kavka.pipeline.sending.steps import OnStep, unwatched
from kavka.pipeline.sending.topic_sink import options_of
from kavka.pipeline.sending.writing import write
from kavka.storage.files import Files

WAITING_SAVED: Final = "waiting saved"
SAVED: Final = "saved"
_TIME: Final = "_time_us"
_NEW: Final = "_new"
_OF_RECORDS: Final = ("key", "value", "headers", "topic", "partition", "offset", "timestamp", "timestampType")
_ORDER: Final = ("partition", "offset", "right_partition", "right_offset")


class TopicJoin(NamedTuple):
    """What belongs together: rows of two topics with equal columns `on`, at most `within_us` apart."""

    left: str
    right: str
    on: tuple[str, ...]
    time: str
    within_us: int
    delay_us: int

    def timed(self, rows: DataFrame) -> DataFrame:
        """The rows of both topics with their times."""
        those = rows.filter(functions.col("topic").isin(self.left, self.right))
        return those.withColumn(_TIME, micros(those, self.time))

    @staticmethod
    def is_late(watermark_us: int) -> Column:
        """Of rows with times."""
        return functions.coalesce(functions.col(_TIME) < functions.lit(watermark_us), functions.lit(True))


def pairs(what: TopicJoin, waiting: DataFrame | None, fresh: DataFrame) -> DataFrame:
    """Records of the pairs that have a fresh row, and perhaps one that waits: both have times, and none is late."""
    every = fresh.withColumn(_NEW, functions.lit(True))
    if waiting is not None:
        every = every.unionByName(waiting.withColumn(_NEW, functions.lit(False)), allowMissingColumns=True)
    left = every.filter(functions.col("topic") == what.left).alias("left")
    right = every.filter(functions.col("topic") == what.right).alias("right")

    def of(side: str, name: str) -> Column:
        return functions.col(f"{side}.{name}")

    same = [of("left", name) == of("right", name) for name in what.on]
    near = functions.abs(of("left", _TIME) - of("right", _TIME)) <= functions.lit(what.within_us)
    is_fresh = of("left", _NEW) | of("right", _NEW)
    found = left.join(right, reduce(and_, [*same, near, is_fresh]), "inner")
    names = [name for name in fresh.columns if name not in (*_OF_RECORDS, _TIME)]
    sides = [functions.struct(*[of(side, name) for name in names]).alias(side) for side in ("left", "right")]
    keys = [of("left", name) for name in what.on]
    key = keys[0].cast("string") if len(keys) == 1 else functions.to_json(functions.struct(*keys))
    return found.select(
        key.alias("key"),
        functions.to_json(functions.struct(*sides), {"ignoreNullFields": "false"}).alias("value"),
        functions.greatest(of("left", "timestamp"), of("right", "timestamp")).alias("timestamp"),
        of("left", "partition"),
        of("left", "offset"),
        of("right", "partition").alias("right_partition"),
        of("right", "offset").alias("right_offset"),
    )


class TopicJoinSink:
    """See the head of the module. Threads: one."""

    def __init__(self, table: Table, on_step: OnStep = unwatched, files: Files | None = None) -> None:
        """Raises SettingError."""
        self._files: Final = files or Files()
        self._topic: Final = table.text("topic")
        self._late_topic: Final = table.text("late_topic", f"{self._topic}-late")
        self._partitions: Final = table.number("topic_partitions", -1, least=-1)
        self._what: Final = TopicJoin(
            table.text("left"),
            table.text("right"),
            tuple(table.texts("on")),
            table.text("time"),
            table.duration_ms("within") * 1000,
            table.duration_ms("delay", 0) * 1000,
        )
        if self._what.left == self._what.right or not self._what.on:
            raise table.wrong("on", "two topics and at least one column are needed")
        self._options: Final = options_of(table, self._topic)._replace(order=_ORDER, on_step=on_step)
        self._client: Final = table.table("client").flat()
        self._on_step: Final = on_step
        self._run: RunContext | None = None
        self._most_late_bytes = 0

    def open(self, run: RunContext) -> None:
        """Make the topics that are not there. Raises SinkError."""
        self._run = run
        try:
            settings = {**run.client_settings, **self._client}
            with Admin(common_settings(settings)) as admin:
                for topic in (self._topic, self._late_topic):
                    make_topic(admin, topic, self._partitions, {})
                self._most_late_bytes = most_letter_bytes(admin, self._late_topic, settings)
        except KafkaError as error:
            raise SinkError(f"{run.name}: {error}") from error

    def write(self, batch: DataFrame, batch_id: int) -> None:
        """Send the pairs that a batch makes. Raises SinkError."""
        run = self._run
        assert run is not None, "write comes after open"
        rows = self._what.timed(batch).persist()
        try:
            note = self._noted(run, rows, batch_id)
            settings = {**run.client_settings, **self._client}
            fresh = rows.filter(~self._what.is_late(note.split_us))
            found = pairs(self._what, self._waiting(run, batch_id - 1), fresh)
            written = write(found, batch_id, settings, query=run.query_id, options=self._options)
            if note.late:
                late = rows.filter(self._what.is_late(note.split_us))
                options = self._options._replace(topic=self._late_topic, order=None)
                dead = dead_rows(late, run.job, late_reason(functions.col(_TIME)), self._most_late_bytes)
                write(dead, batch_id, settings, query=f"{run.query_id}-late", options=options)
        except (KafkaError, ValueError) as error:
            raise SinkError(f"{run.name}: {error}") from error
        finally:
            rows.unpersist()
        # What this batch began with: the next one begins with what it left.
        shutil.rmtree(_folder(run, batch_id - 2), ignore_errors=True)
        run.report.add("rows_out", written.sent)
        run.report.add("late_rows", note.late)

    def _noted(self, run: RunContext, rows: DataFrame, batch_id: int) -> Note:
        """What the batch comes to: as it was noted before, or found out now, and what will wait for the next one."""
        states = States(run.directory)
        state = states.load(batch_id)
        if state is not None:
            return state.note
        before = states.before(batch_id)
        note = before.note if before is not None else Note(batch_id - 1, NO_WATERMARK_US, NO_WATERMARK_US)
        is_late = self._what.is_late(note.watermark_us)
        found = rows.agg(
            functions.count("*").alias("read"),
            functions.coalesce(functions.sum(is_late.cast("int")), functions.lit(0)).alias("late"),
            functions.max(_TIME).alias("latest"),
        ).collect()[0]
        following = note.following(found["read"], found["late"], found["latest"], self._what.delay_us)
        fresh = rows.filter(~is_late)
        waiting = self._waiting(run, batch_id - 1)
        every = fresh if waiting is None else fresh.unionByName(waiting, allowMissingColumns=True)
        least_us = following.watermark_us - self._what.within_us
        kept = every.filter(functions.col(_TIME) >= functions.lit(least_us))
        folder = _folder(run, batch_id)
        kept.write.mode("overwrite").parquet(to_write(folder))
        self._fsync(folder)
        self._on_step(WAITING_SAVED)
        states.save(State(following, pyarrow.table({})))
        self._on_step(SAVED)
        return following

    def _fsync(self, folder: Path) -> None:
        """Spark leaves what it wrote to the page cache; a state that outlives a power cut must not name less."""
        for path in folder.iterdir():
            self._files.fsync_file(path)
        self._files.fsync_directory(folder)
        self._files.fsync_directory(folder.parent)

    def _waiting(self, run: RunContext, batch_id: int) -> DataFrame | None:
        """The rows that a batch left. Before the first there are none."""
        return run.spark.read.parquet(to_read(_folder(run, batch_id))) if batch_id >= 0 else None

    def close(self) -> None:
        """Nothing is open between batches."""


def _folder(run: RunContext, batch_id: int) -> Path:
    return run.directory.absolute() / f"waiting-{batch_id:020d}"
