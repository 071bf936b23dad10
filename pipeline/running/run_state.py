"""What is known of a run: for `kavka pipeline status`, for Prometheus, and for whoever watches."""

import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from kavka.storage.files import Files

RUNNING: Final = "running"
ENDED: Final = "ended"
FAILED: Final = "failed"


@dataclass
class QueryState:
    """A sink's query. Owned by RunState, under its lock."""

    name: str
    batch_id: int = -1
    """The last one that was done; -1: none."""
    batch_at_ms: int | None = None
    batch_ms: int = 0
    rows: int = 0
    """Read in this run."""
    rows_per_s: float = 0.0
    """Of the last batch with rows."""
    offsets: dict[str, dict[str, int]] = field(default_factory=dict)
    """By topic and partition, where the next batch begins."""
    lag: int | None = None
    """Records between there and the ends of the partitions, when they were last asked for."""
    note: str | None = None
    """What it waits for."""
    counters: dict[str, int] = field(default_factory=dict)


class RunState:
    """Any thread. What changes is written to the file at once: whoever reads it sees a whole document."""

    def __init__(self, job: str, names: list[str], file: Path, tell: Callable[[dict[str, Any]], None]) -> None:
        """`tell` is called with each event, from the thread that brings it, one at a time."""
        self._lock: Final = threading.Lock()
        self._queries: Final = {name: QueryState(name) for name in names}
        self._file: Final = file
        self._tell: Final = tell
        self._job: Final = job
        self._began_ms: Final = _now_ms()
        self._state = RUNNING
        self._failure: str | None = None
        self._batches: Final[dict[str, int]] = dict.fromkeys(names, 0)
        self._seconds: Final[dict[str, float]] = dict.fromkeys(names, 0.0)
        with self._lock:
            self._write()

    def resumed(self, name: str, batch_id: int, offsets: Mapping[str, Mapping[int, int]]) -> None:
        """Where a query goes on from."""
        with self._lock:
            query = self._queries[name]
            query.batch_id = batch_id
            query.offsets = {topic: {str(n): each for n, each in found.items()} for topic, found in offsets.items()}
            self._write()

    def progressed(self, name: str, progress: Mapping[str, Any]) -> None:
        """Spark's progress of a batch; one that was told of before is not counted again."""
        batch_id = int(progress["batchId"])
        with self._lock:
            query = self._queries[name]
            rows = _rows(progress)
            if batch_id <= query.batch_id or not progress.get("sources") or "addBatch" not in progress["durationMs"]:
                # Nothing was done: Spark only looked for new records.
                return
            query.batch_id, query.batch_at_ms, query.note = batch_id, _now_ms(), None
            query.batch_ms = int(progress.get("batchDuration") or 0)
            query.rows += rows
            if rows:
                query.rows_per_s = round(rows * 1000 / max(query.batch_ms, 1), 1)
            query.offsets = _offsets(progress)
            self._batches[name] += 1
            self._seconds[name] += query.batch_ms / 1000
            self._write()
            event = {
                "event": "batch",
                "sink": name,
                "batch_id": batch_id,
                "rows": rows,
                "rows_per_s": query.rows_per_s if rows else 0.0,
                "batch_ms": query.batch_ms,
            }
            self._tell(event)

    def offsets(self, name: str) -> dict[str, dict[str, int]]:
        """How far a query has come."""
        with self._lock:
            return self._queries[name].offsets

    def set_lag(self, name: str, lag: int | None) -> None:
        """How far it is behind; None: nobody could tell."""
        with self._lock:
            if self._queries[name].lag != lag:
                self._queries[name].lag = lag
                self._write()

    def add(self, name: str, counter: str, amount: int) -> None:
        """Count what a sink did."""
        with self._lock:
            counters = self._queries[name].counters
            counters[counter] = counters.get(counter, 0) + amount

    def note(self, name: str, text: str | None) -> None:
        """What a query waits for; None: nothing any more. Said once."""
        with self._lock:
            if self._queries[name].note == text:
                return
            self._queries[name].note = text
            self._write()
            if text is not None:
                self._tell({"event": "note", "sink": name, "note": text})

    def ended(self, failure: str | None) -> None:
        """The run is over; `failure` says why, if it is not as it should be."""
        with self._lock:
            self._state, self._failure = (ENDED, None) if failure is None else (FAILED, failure)
            self._write()
            self._tell({"event": self._state, "failure": failure})

    def tell(self, event: dict[str, Any]) -> None:
        """Another event."""
        with self._lock:
            self._tell(event)

    def document(self) -> dict[str, Any]:
        """What the file holds."""
        with self._lock:
            return self._document()

    def samples(self) -> list[tuple[str, str, str, dict[str, float]]]:
        """For Prometheus: name, kind, text, and values by sink."""
        with self._lock:
            states = self._queries
            batches = {name: float(count) for name, count in self._batches.items()}
            rows = [
                (
                    "batches",
                    "counter",
                    "Batches that were done.",
                    batches,
                ),
                ("batch_seconds", "counter", "Time that batches took.", dict(self._seconds)),
                ("rows", "counter", "Rows that were read.", {name: float(each.rows) for name, each in states.items()}),
                (
                    "last_batch_seconds",
                    "gauge",
                    "How long the last batch took.",
                    {name: each.batch_ms / 1000 for name, each in states.items()},
                ),
                (
                    "lag",
                    "gauge",
                    "Records that are not read yet.",
                    {name: float(each.lag) for name, each in states.items() if each.lag is not None},
                ),
            ]
            counters = sorted({counter for each in states.values() for counter in each.counters} | {"dead_letters"})
            for counter in counters:
                counted = {name: float(each.counters.get(counter, 0)) for name, each in states.items()}
                rows.append((counter, "counter", f"What sinks counted as {counter}.", counted))
            return rows

    def _document(self) -> dict[str, Any]:
        return {
            "job": self._job,
            "state": self._state,
            "pid": os.getpid(),
            "began_at_ms": self._began_ms,
            "written_at_ms": _now_ms(),
            "failure": self._failure,
            "sinks": [asdict(each) for each in self._queries.values()],
        }

    def _write(self) -> None:
        Files().write_atomically(self._file, json.dumps(self._document(), indent=1).encode())


def _rows(progress: Mapping[str, Any]) -> int:
    """Spark counts rows as often as a sink reads its batch; offsets also count what is no record: the less holds."""
    counted = int(progress.get("numInputRows") or 0)
    if not progress.get("sources"):
        return counted
    begins, ends = _offsets(progress, "startOffset"), _offsets(progress)
    if not begins.keys() >= ends.keys() or not ends:
        return counted
    return min(counted, sum(n - begins[topic].get(each, 0) for topic in ends for each, n in ends[topic].items()))


def _offsets(progress: Mapping[str, Any], which: str = "endOffset") -> dict[str, dict[str, int]]:
    """Of the job's one source. A format that has no such offsets shows none."""
    found: Any = progress["sources"][0].get(which)
    if isinstance(found, str):
        try:
            found = json.loads(found)
        except ValueError:
            return {}
    if not isinstance(found, dict) or not all(isinstance(each, dict) for each in found.values()):
        return {}
    return {str(topic): {str(n): int(offset) for n, offset in found[topic].items()} for topic in found}


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
