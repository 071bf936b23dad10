"""One sink's streaming query: its source, what happens to a batch, its end."""

import json
import uuid
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kavka.pipeline.running.checking import remember
from kavka.pipeline.running.job_file import DEAD_LETTERS_NAME, Job, SinkTable, Transform
from kavka.pipeline.running.places import Places
from kavka.pipeline.running.positions import starting
from kavka.pipeline.running.query_files import QueryFiles, keep_plan, read_query_files
from kavka.pipeline.running.run_state import RunState
from kavka.pipeline.running.sink import Decoder, GaveUpError, Resuming, RunContext, Sink, named
from kavka.pipeline.running.source_options import client_settings, reader_options, starting_at
from kavka.pipeline.running.stopping import Stopping, StopRequested
from kavka.storage.files import Files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

MOST_TRIES: Final = 20
_SLOW_WORKER: Final = "Python worker failed to connect back"
_ROWS: Final = "rows"
"""The view that a transform's SQL reads."""


class SinkReport:
    """What a sink tells, noted under its name. Any thread."""

    def __init__(self, name: str, state: RunState) -> None:
        self._name = name
        self._state = state

    def add(self, counter: str, amount: int) -> None:
        """As `Report.add`."""
        self._state.add(self._name, counter, amount)

    def note(self, text: str) -> None:
        """As `Report.note`."""
        self._state.note(self._name, text)


class Query:
    """A sink and its streaming query. Owned by the run's thread; batches come on a thread of Spark's."""

    def __init__(
        self,
        job: Job,
        table: SinkTable,
        sink: Sink,
        decoder: Decoder | None,
        places: Places,
        stopping: Stopping,
        files: Files | None = None,
    ) -> None:
        self.name: Final = table.name
        self._job: Final = job
        self._sink: Final = sink
        self._decoder: Final = decoder
        self._places: Final = places
        self._stopping: Final = stopping
        self._files: Final = files or Files()
        self._running: StreamingQuery | None = None
        self._begin: Callable[[], StreamingQuery] | None = None
        self._tries = 0
        self.failure: BaseException | None = None
        """What a batch failed by. Written by the thread of batches before the query ends."""

    def start(self, spark: "SparkSession", state: RunState, *, every_ms: int | None) -> None:
        """Open the sink and begin; `every_ms` None: what is there now, and no more.

        Raises what sinks and Spark do, SecretError, CheckpointError, OptionError, KafkaError, OSError.
        """
        folder = self._places.query(self.name)
        before = self._checkpoint()
        directory = self._places.sink(self.name, before.query_id)
        directory.mkdir(parents=True, exist_ok=True)
        report = SinkReport(self.name, state)
        if self._decoder is not None:
            self._decoder.report_to(report)
        self._sink.open(
            RunContext(
                spark=spark,
                job=self._job.name,
                name=self.name,
                query_id=before.query_id,
                checkpoint=folder,
                directory=directory,
                client_settings=client_settings(self._job.source.options),
                source=self._job.source.options,
                report=report,
            )
        )
        options = reader_options(self._job.source)
        if before.planned < 0 and isinstance(self._sink, Resuming):
            known = self._sink.starting_offsets()
            if known is not None:
                options = starting_at(options, starting(self._job.source.options, known))
        state.resumed(self.name, before.committed, before.offsets)
        self._begin = partial(self._started, spark, options, every_ms)
        self._running = self._begin()
        remember(self._job, self._places, self.name)

    def _started(self, spark: "SparkSession", options: Mapping[str, str], every_ms: int | None) -> "StreamingQuery":
        stream = spark.readStream.format(self._job.source.format).options(**options).load()
        writer = stream.writeStream.foreachBatch(self._batch).queryName(self.name)
        writer = writer.option("checkpointLocation", str(self._places.query(self.name)))
        if every_ms is None:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=f"{every_ms} milliseconds")
        return writer.start()

    def began_again(self) -> bool:
        """Begin anew where a worker of Spark's was not up in the ten seconds that Spark gives it, on a busy machine."""
        error = self.error()
        if error is None or self._begin is None or self._tries >= MOST_TRIES or _SLOW_WORKER not in str(error):
            return False
        self._tries += 1
        self.failure = None
        self._running = self._begin()
        return True

    @property
    def id(self) -> str | None:
        """Spark's, once it is started."""
        return None if self._running is None else str(self._running.id)

    def is_active(self) -> bool:
        """Whether it goes on."""
        return self._running is not None and bool(self._running.isActive)

    def is_between_batches(self) -> bool:
        """Whether nothing is to be waited for before it is stopped."""
        return not self.is_active() or not (self._running is not None and self._running.status["isTriggerActive"])

    def progress(self) -> list[dict[str, Any]]:
        """Of its last batches."""
        if self._running is None:
            return []
        return [json.loads(each.json) for each in self._running.recentProgress]

    def error(self) -> BaseException | None:
        """What it failed by; None for one that was stopped or came to its end."""
        if isinstance(self.failure, StopRequested | GaveUpError):
            return None
        if self.failure is not None:
            return self.failure
        return None if self._running is None else self._running.exception()

    def stop_waiting(self) -> None:
        """Have its batch fail that waits for a schema registry: it comes again in the next run."""
        if self._decoder is not None:
            self._decoder.close()

    def stop(self) -> None:
        """End the query; the sink stays open."""
        if self._running is not None:
            self._running.stop()

    def close(self) -> None:
        """Close the sink. May be called without `start`."""
        self._sink.close()

    def _checkpoint(self) -> QueryFiles:
        """How far the query has come. A new one gets its id here, in Spark's form: the sink asks for it first."""
        folder = self._places.query(self.name)
        found = read_query_files(folder)
        if found is not None:
            return found
        folder.mkdir(parents=True, exist_ok=True)
        made = QueryFiles(str(uuid.uuid4()), -1, -1, {})
        self._files.write_atomically(folder / "metadata", json.dumps({"id": made.query_id}).encode())
        return made

    def _batch(self, batch: "DataFrame", batch_id: int) -> None:
        try:
            self._stopping.begin(self.name)
            try:
                keep_plan(self._places.query(self.name), batch_id, self._files)
                self._sink.write(self._rows(batch), batch_id)
            finally:
                if self._decoder is not None:
                    self._decoder.release()
                self._stopping.end(self.name)
        except BaseException as error:
            self.failure = error
            raise

    def _rows(self, batch: "DataFrame") -> "DataFrame":
        if self._decoder is not None:
            good, bad = self._decoder.decode(batch)
            if self.name == DEAD_LETTERS_NAME:
                return bad
            batch = good
        for transform in self._job.transforms:
            batch = _transformed(batch, transform)
        return batch


def _transformed(rows: "DataFrame", transform: Transform) -> "DataFrame":
    """Raises what the function raises, or Spark about the query."""
    if transform.function is not None:
        function: Callable[[DataFrame], DataFrame] = named(transform.function)
        return function(rows)
    rows.createOrReplaceTempView(_ROWS)
    return rows.sparkSession.sql(str(transform.sql))
