"""What a run keeps where: notes of one query alone, and a log that does not grow for ever."""

import argparse
import shutil
from pathlib import Path
from typing import Any

import pytest

from kavka.cli.pipelines.running import interval_ms
from kavka.pipeline.running.job_file import read_job
from kavka.pipeline.running.log_size import aside, keep_small
from kavka.pipeline.running.places import Places
from kavka.pipeline.running.query import Query
from kavka.pipeline.running.run_state import RunState
from kavka.pipeline.running.sink import RunContext, SinkError
from kavka.pipeline.running.stopping import Stopping

JOB = """
[job]
name = "visits"
checkpoint = "state"
every = "7s"
[source]
bootstrap.servers = "localhost:9092"
subscribe = "page_visits"
[[sinks]]
kind = "archive"
path = "lake"
"""


class NotingSink:
    """Goes no further than to its folder."""

    def __init__(self) -> None:
        self.runs: list[RunContext] = []

    def open(self, run: RunContext) -> None:
        self.runs.append(run)
        assert run.directory.is_dir()
        raise SinkError("no further")

    def write(self, batch: object, batch_id: int) -> None: ...

    def close(self) -> None: ...


def test_a_query_that_begins_anew_finds_no_notes_of_the_one_before(tmp_path: Path) -> None:
    file = tmp_path / "job.toml"
    file.write_text(JOB)
    job, places, sink = read_job(file), Places(tmp_path / "state"), NotingSink()
    state = RunState(job.name, ["archive"], tmp_path / "status.json", lambda event: None)
    no_spark: Any = None

    def start() -> Path:
        with pytest.raises(SinkError, match="no further"):
            Query(job, job.sinks[0], sink, None, places, Stopping()).start(no_spark, state, every_ms=None)
        return sink.runs[-1].directory

    first = start()
    (first / "state-0.parquet").touch()
    assert start() == first
    assert sink.runs[0].query_id == sink.runs[1].query_id

    shutil.rmtree(places.query("archive"))
    anew = start()
    assert list(anew.iterdir()) == []
    assert sink.runs[2].query_id != sink.runs[0].query_id


def test_a_log_is_emptied_before_it_is_too_long_and_goes_on(tmp_path: Path) -> None:
    log = tmp_path / "spark.log"
    keep_small(log, 10)
    with log.open("ab", buffering=0) as file:
        for number in range(100):
            file.write(b"line %d\n" % number)
            keep_small(log, 50)
    assert log.stat().st_size <= 50
    assert aside(log).stat().st_size <= 60
    assert (aside(log).read_bytes() + log.read_bytes()).endswith(b"line 97\nline 98\nline 99\n")
    assert b"\0" not in log.read_bytes()


def test_a_log_that_cannot_be_copied_is_emptied(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = tmp_path / "spark.log"
    log.write_bytes(b"x" * 100)
    aside(log).mkdir()
    keep_small(log, 50)
    assert log.stat().st_size == 0
    assert "is not kept" in caplog.text


@pytest.mark.parametrize(("every", "found"), [(None, 7000), (0, 0), (500, 500)])
def test_a_job_runs_as_often_as_it_is_told(every: int | None, found: int, tmp_path: Path) -> None:
    file = tmp_path / "job.toml"
    file.write_text(JOB)
    job = read_job(file)
    assert interval_ms(argparse.Namespace(once=False, every=every), job) == found
    assert interval_ms(argparse.Namespace(once=True, every=every), job) is None
