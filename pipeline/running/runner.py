"""Runs a job: Spark, one query a sink, what is told of them, and an end in order.

    Jvm -> embedded broker -> session -> sinks opened, queries started -> events until the end

Stopping is the same backwards. Batches run to their end before anything is stopped.
"""

import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kavka.pipeline.running.causes import cause
from kavka.pipeline.running.checking import NEEDS_NEW, compared
from kavka.pipeline.running.decided_ids import DecidedIds
from kavka.pipeline.running.embedded import embedded_broker
from kavka.pipeline.running.job_file import Job
from kavka.pipeline.running.log_size import keep_small
from kavka.pipeline.running.metrics_page import rendered
from kavka.pipeline.running.parts import Parts, open_python_path
from kavka.pipeline.running.places import Places
from kavka.pipeline.running.positions import Positions
from kavka.pipeline.running.query import Query
from kavka.pipeline.running.query_files import CheckpointError
from kavka.pipeline.running.run_lock import run_lock
from kavka.pipeline.running.run_state import RunState
from kavka.pipeline.running.session import Jvm
from kavka.pipeline.running.shown_tables import open_views, shown_table
from kavka.pipeline.running.source_options import with_brokers
from kavka.pipeline.running.stopping import Stopping

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOK_S: Final = 10.0
"""How often an idle run asks for its lag, and for executors of a cluster."""
_BATCH_S: Final = 10.0
"""How long a batch may go on, when the run is to stop, before it has to stop waiting for a schema registry."""
_STOP_S: Final = 5.0
"""How long Spark may take to note a batch that is done."""
_MOST_EVENTS: Final = 10_000


class RunError(Exception):
    """A job cannot run, or failed: one line."""


class RefusedError(RunError):
    """A job does not go on with its checkpoint as it says now. Nothing was started."""


@dataclass(frozen=True)
class How:
    """How a job is run."""

    every_ms: int | None
    """Between batches; None: what is there now, and no more."""
    is_verbose: bool
    """Spark's own words go to standard error, and not into the log file."""
    tell: Callable[[dict[str, Any]], None]
    """Given each event, on one thread at a time."""


def run_job(job: Job, parts: Parts, how: How, stopping: Stopping) -> None:
    """Until all is read (`every_ms` None) or `stopping` is asked for. The job has a checkpoint.

    Raises RunError; RefusedError, before anything is started; RunningAlreadyError; OSError.
    """
    assert job.checkpoint is not None
    places = Places(job.checkpoint)
    with run_lock(places.lock):
        _check_goes_on(job)
        tables = [*job.sinks, *([job.dead_letters] if job.dead_letters is not None else [])]
        state = RunState(job.name, [table.name for table in tables], places.status, how.tell)
        log = None if how.is_verbose else places.log
        if log is not None:
            keep_small(log)
        try:
            with _started(job, how, log) as (spark, running), _explained(log):
                decided = DecidedIds(places.decided_ids)
                for decoder in (decoder for _, _, decoder in parts.sinks if decoder is not None):
                    decoder.decide_by(decided)
                queries = [Query(running, *each, places, stopping) for each in parts.sinks]
                with _served_metrics(job, state):
                    _Run(spark, queries, state, stopping, how, log).run(Positions(running.source.options))
                if how.every_ms is None and not stopping.is_asked:
                    open_views(spark, job, parts)
                    for show in job.shows:
                        state.tell(shown_table(spark, show))
        except RunError as error:
            state.ended(str(error))
            raise
        state.ended(None)


def _check_goes_on(job: Job) -> None:
    """Raises RefusedError where a change needs a new checkpoint: it would mix two things in one place."""
    try:
        needing = [found for found in compared(job) if found.state == NEEDS_NEW]
    except CheckpointError as error:
        raise RefusedError(str(error)) from error
    if needing:
        raise RefusedError("; ".join(f"{found.part} {found.state}: {found.note}" for found in needing))


@contextmanager
def _explained(log: Path | None) -> Iterator[None]:
    """What fails, as RunError: in here, as Spark's errors have a text only while its process is there."""
    try:
        yield
    except RunError:
        raise
    except Exception as error:
        _keep_trace(error, log)
        raise RunError(cause(error)) from error


@contextmanager
def _started(job: Job, how: How, log: Path | None) -> "Iterator[tuple[SparkSession, Job]]":
    """Spark, and the job as it runs: with the address of an embedded broker."""
    with ExitStack() as stack, _explained(log):
        open_python_path(job)
        settings = {"spark.app.name": job.name, **job.conf, "spark.master": job.master}
        how.tell({"event": "starting", "job": job.name, "master": job.master})
        jvm = Jvm(settings, job.python_path, log)
        stack.callback(jvm.close)
        if job.source.embedded is not None:
            bootstrap = stack.enter_context(embedded_broker(job, job.source.embedded))
            job = replace(job, source=replace(job.source, options=with_brokers(job.source.options, bootstrap)))
        spark = jvm.session()
        stack.callback(spark.stop)
        yield spark, job


@contextmanager
def _served_metrics(job: Job, state: RunState) -> Iterator[None]:
    if job.metrics_port is None:
        yield
        return
    from kavka.broker.metrics.http_server import MetricsServer

    server = MetricsServer(
        job.metrics_host,
        job.metrics_port,
        render=partial(rendered, job.name, state),
        failure=lambda: None,
        is_ready=lambda: True,
    )
    port = server.start()
    try:
        state.tell({"event": "metrics", "address": f"{job.metrics_host}:{port}"})
        yield
    finally:
        server.stop()


class _Run:
    """Owned by the thread that runs the job; `_events` is filled by Spark's listener thread."""

    def __init__(
        self,
        spark: "SparkSession",
        queries: list[Query],
        state: RunState,
        stopping: Stopping,
        how: How,
        log: Path | None,
    ) -> None:
        self._spark = spark
        self._queries = queries
        self._state = state
        self._stopping = stopping
        self._how = how
        self._log = log
        self._events: deque[tuple[str, dict[str, Any]]] = deque(maxlen=_MOST_EVENTS)

    def run(self, positions: Positions) -> None:
        """Raises what the first query fails by."""
        from kavka.pipeline.running.listening import listener

        heard = listener(self._heard, self._stopping.wake)
        self._spark.streams.addListener(heard)
        try:
            for query in self._queries:
                query.start(self._spark, self._state, every_ms=self._how.every_ms)
            self._watch(positions)
        finally:
            try:
                self._end()
                self._catch_up(positions)
            finally:
                self._spark.streams.removeListener(heard)
                positions.close()
        for query in self._queries:
            if (error := query.error()) is not None:
                raise error

    def _watch(self, positions: Positions) -> None:
        """Until all queries are done, one fails, or the run is to stop."""
        while not self._stopping.wait(LOOK_S):
            self._note_progress(positions)
            self._look_for_executors()
            if self._log is not None:
                keep_small(self._log)
            failed = [query for query in self._queries if not query.is_active() and query.error() is not None]
            if not all(query.began_again() for query in failed):
                return
            if not any(query.is_active() for query in self._queries):
                return

    def _note_progress(self, positions: Positions) -> None:
        names = {query.id: query.name for query in self._queries}
        while self._events:
            query_id, progress = self._events.popleft()
            if (name := names.get(query_id)) is not None:
                self._state.progressed(name, progress)
        for query in self._queries:
            offsets = self._state.offsets(query.name)
            self._state.set_lag(query.name, positions.lag(offsets))

    def _catch_up(self, positions: Positions) -> None:
        """What the listener's queue may have held back: Spark drops it at the end."""
        for query in self._queries:
            for progress in query.progress():
                self._state.progressed(query.name, progress)
        self._note_progress(positions)

    def _look_for_executors(self) -> None:
        """Spark waits without a word for a cluster that has nobody to work."""
        context = self._spark.sparkContext
        if str(context.master).startswith("local"):
            return
        others = context._jsc.sc().getExecutorMemoryStatus().size() - 1
        text = None if others > 0 else f"no executor of {context.master} works for the job; it goes on when one does"
        for query in self._queries:
            self._state.note(query.name, text)

    def _end(self) -> None:
        """Stop what still runs, between batches; close the sinks, each whatever became of the others."""
        self._stopping.close()
        if not self._stopping.wait_for_batches(_BATCH_S):
            for query in self._queries:
                query.stop_waiting()
            self._stopping.wait_for_batches(None)
        deadline_s = time.monotonic() + _STOP_S
        while time.monotonic() < deadline_s and not all(query.is_between_batches() for query in self._queries):
            time.sleep(0.05)
        with ExitStack() as stack:
            for query in self._queries:
                stack.callback(query.close)
                stack.callback(query.stop)

    def _heard(self, query_id: str, progress: dict[str, Any]) -> None:
        self._events.append((query_id, progress))


def _keep_trace(error: BaseException, log: Path | None) -> None:
    text = "".join(traceback.format_exception(error))
    if log is None:
        print(text, file=sys.stderr)
        return
    with log.open("a") as file:
        file.write(text)
