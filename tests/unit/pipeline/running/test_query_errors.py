"""What ends a query with an error, and what only ends it."""

from pathlib import Path
from typing import Any

import pytest

from kavka.pipeline.running.job_file import read_job
from kavka.pipeline.running.places import Places
from kavka.pipeline.running.query import Query
from kavka.pipeline.running.sink import GaveUpError, RunContext
from kavka.pipeline.running.stopping import Stopping

JOB = """
[job]
name = "visits"
checkpoint = "state"
[source]
bootstrap.servers = "localhost:9092"
subscribe = "page_visits"
[[sinks]]
kind = "archive"
path = "lake"
"""


class FailingSink:
    """Each batch fails by the same."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def open(self, run: RunContext) -> None: ...

    def write(self, batch: object, batch_id: int) -> None:
        raise self.error

    def close(self) -> None: ...


class PatientDecoder:
    """Takes all rows as they are."""

    def decode(self, rows: Any) -> tuple[Any, Any]:
        return rows, rows

    def report_to(self, report: object) -> None: ...

    def decide_by(self, decided: object) -> None: ...

    def release(self) -> None: ...

    def close(self) -> None: ...


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), GaveUpError("schema: stopped")])
def test_a_run_that_stops_hides_nothing_but_that_a_batch_gave_up_waiting(error: Exception, tmp_path: Path) -> None:
    file = tmp_path / "job.toml"
    file.write_text(JOB)
    job = read_job(file)
    query = Query(job, job.sinks[0], FailingSink(error), PatientDecoder(), Places(tmp_path / "state"), Stopping())
    query.stop_waiting()
    plans = tmp_path / "state" / "archive" / "offsets"
    plans.mkdir(parents=True)
    (plans / "3").touch()
    batch: Any = None
    with pytest.raises(type(error)):
        query._batch(batch, 3)
    assert query.error() is (None if isinstance(error, GaveUpError) else error)
