"""What a run leaves for those who ask: its file, its events, its metrics, and the one line that says why it failed."""

import fcntl
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from kavka.cli.main import main
from kavka.pipeline.running.causes import cause
from kavka.pipeline.running.checking import remember
from kavka.pipeline.running.job_file import read_job
from kavka.pipeline.running.metrics_page import rendered
from kavka.pipeline.running.places import Places
from kavka.pipeline.running.run_lock import RunningAlreadyError, is_running, run_lock
from kavka.pipeline.running.run_state import RunState
from kavka.storage.files import Files
from tests.support.json_documents import assert_golden, line_document

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


def batch(number: int, rows: int, offset: int) -> dict[str, Any]:
    """Spark's progress of a batch, as far as it is looked at."""
    source = {"endOffset": {"page_visits": {"0": offset}}, "numInputRows": rows}
    durations = {"addBatch": 150, "triggerExecution": 200}
    return {
        "batchId": number,
        "numInputRows": rows,
        "batchDuration": 200,
        "durationMs": durations,
        "sources": [source],
    }


@pytest.fixture
def events() -> list[dict[str, Any]]:
    return []


@pytest.fixture
def state(tmp_path: Path, events: list[dict[str, Any]]) -> RunState:
    places = Places(tmp_path / "state")
    places.notes.mkdir(parents=True)
    return RunState("visits", ["archive"], places.status, events.append)


@pytest.fixture
def job_file(tmp_path: Path) -> Path:
    file = tmp_path / "job.toml"
    file.write_text(JOB)
    return file


def test_a_batch_counts_once_however_often_spark_tells_of_it(state: RunState, events: list[dict[str, Any]]) -> None:
    state.resumed("archive", 3, {"page_visits": {0: 100}})
    for progress in (batch(3, 50, 100), batch(4, 20, 120), batch(4, 20, 120), batch(5, 1, 121)):
        state.progressed("archive", progress)
    (sink,) = state.document()["sinks"]
    assert (sink["batch_id"], sink["rows"], sink["offsets"]) == (5, 21, {"page_visits": {"0": 121}})
    assert [event["batch_id"] for event in events] == [4, 5]


def test_a_batch_that_a_sink_reads_twice_has_its_rows_once(state: RunState) -> None:
    progress = batch(0, 40, 120)
    progress["sources"][0]["startOffset"] = {"page_visits": {"0": 100}}
    state.progressed("archive", progress)
    assert state.document()["sinks"][0]["rows"] == 20


def test_a_look_for_new_records_is_no_batch(state: RunState, events: list[dict[str, Any]]) -> None:
    idle = batch(0, 0, 0)
    del idle["durationMs"]["addBatch"]
    state.progressed("archive", idle)
    assert state.document()["sinks"][0]["batch_id"] == -1
    assert events == []


def test_what_a_sink_waits_for_is_said_once(state: RunState, events: list[dict[str, Any]]) -> None:
    for _ in range(3):
        state.note("archive", "waits for the registry")
    assert events == [{"event": "note", "sink": "archive", "note": "waits for the registry"}]
    state.note("archive", None)
    assert state.document()["sinks"][0]["note"] is None


def test_events_are_as_programs_know_them(state: RunState, events: list[dict[str, Any]]) -> None:
    state.tell({"event": "starting", "job": "visits", "master": "local[2]"})
    state.progressed("archive", batch(0, 20, 20))
    state.tell({"event": "table", "title": "t", "columns": ["site"], "rows": [["a"]]})
    state.ended("no more")
    for event in events:
        line_document("pipeline-run", json.dumps(event))
    assert [event["event"] for event in events] == ["starting", "batch", "table", "failed"]


def test_status_shows_a_run_that_goes_on_one_that_ended_and_one_that_was_killed(
    state: RunState, job_file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(10**6))
    monkeypatch.setattr("kavka.pipeline.running.run_state._now_ms", lambda: 1_767_225_600_000 + next(clock))
    state.progressed("archive", batch(0, 20, 20))
    state.add("archive", "late_rows", 2)
    state.set_lag("archive", 7)
    command = ["pipeline", "status", str(job_file)]
    with run_lock(Places(job_file.parent / "state").lock):
        assert main(command) == 0
        assert "visits: running" in capsys.readouterr().out
    assert main([*command, "--output", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown[0]["pid"] == os.getpid()
    shown[0].update(pid=4711, began_at_ms=1_767_225_600_000)
    assert shown[0]["state"] == "killed"
    assert_golden("pipeline-status", json.dumps(shown, indent=2) + "\n")
    state.ended("the lake is full")
    assert main(command) == 1
    out = capsys.readouterr().out
    assert "failed by: the lake is full" in out
    assert "archive goes on in page_visits at 0: 20" in out


@pytest.mark.parametrize("garbage", ["", "[]", "{}", '{"sinks": 1, "state": "ended"}', "\x00"])
def test_a_status_file_that_cannot_be_read_is_named(
    garbage: str, job_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pipeline", "status", str(job_file)]) == 1
    assert "the job has not run yet" in capsys.readouterr().err
    places = Places(job_file.parent / "state")
    places.notes.mkdir(parents=True)
    places.status.write_text(garbage)
    assert main(["pipeline", "status", str(job_file)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert str(places.status) in line


def test_a_job_runs_once_at_a_time(tmp_path: Path) -> None:
    file = tmp_path / "notes" / "lock"
    assert not is_running(file)
    with run_lock(file):
        assert is_running(file)
        with pytest.raises(RunningAlreadyError, match=f"as process {os.getpid()} "), run_lock(file):
            raise AssertionError("two of them run")
    assert not is_running(file)
    with run_lock(file):
        assert is_running(file)


def test_a_look_at_the_lock_at_that_instant_keeps_no_run_from_beginning(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    file.touch()
    with file.open("rb") as looked_at:
        fcntl.flock(looked_at, fcntl.LOCK_SH)
        done = threading.Timer(0.05, fcntl.flock, (looked_at, fcntl.LOCK_UN))
        done.start()
        with run_lock(file):
            assert is_running(file)
        done.join()


def test_what_a_run_notes_is_on_disk_before_it_has_its_name(
    state: RunState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    fsync, rename = os.fsync, os.replace

    def synced(fd: int) -> None:
        done.append("fsync")
        fsync(fd)

    def renamed(source: str, target: Path) -> None:
        done.append(target.name)
        rename(source, target)

    monkeypatch.setattr(Files, "fsync", staticmethod(synced))
    monkeypatch.setattr(Files, "rename", staticmethod(renamed))
    state.note("archive", "waits")
    file = tmp_path / "job.toml"
    file.write_text(JOB)
    remember(read_job(file), Places(tmp_path / "state"), "archive")
    assert [each for each in done if each != "fsync"] == ["status.json", "job.json"]
    assert done[0] == "fsync"
    assert done[done.index("job.json") - 1] == "fsync"


def test_metrics_are_by_job_and_sink(state: RunState) -> None:
    state.progressed("archive", batch(0, 20, 20))
    state.set_lag("archive", 7)
    state.add("archive", "dead_letters", 3)
    page = rendered("visits", state).decode().splitlines()
    labels = '{job="visits",sink="archive"}'
    for name, value in {
        "rows_total": 20.0,
        "batches_total": 1.0,
        "batch_seconds_total": 0.2,
        "last_batch_seconds": 0.2,
        "lag": 7.0,
        "dead_letters_total": 3.0,
    }.items():
        assert f"kavka_pipeline_{name}{labels} {value}" in page


FOREACH = """An error occurred while calling o87.start.
: org.apache.spark.SparkException: [STREAM_FAILED] Query [id = 5] terminated with exception: An exception was raised
Traceback (most recent call last):
  File "py4j/clientserver.py", line 1, in call
    return f()
kavka.pipeline.lake.errors.LakeError: /lake is locked by process 7

	at py4j.Protocol.getReturnValue(Protocol.java:476)
"""
WORKER = """Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "steps.py", line 3, in tidy
    return 1 / row
ZeroDivisionError: division by zero

	at org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:1)
"""
JAVA = """Job aborted due to stage failure: Lost task 0.0
java.lang.RuntimeException: failed
	at org.apache.Thing.run(Thing.java:1)
Caused by: java.io.IOException: No space left on device
	at java.base/sun.nio.ch.FileDispatcherImpl.write0(Native Method)
"""
ANALYSIS = """[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `sit` cannot be resolved. Did you mean: [`site`].
SQLSTATE: 42703; line 1 pos 7;
'Project ['sit]
"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (FOREACH, "/lake is locked by process 7"),
        (WORKER, "ZeroDivisionError: division by zero"),
        (JAVA, "IOException: No space left on device"),
        (
            ANALYSIS,
            "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `sit` cannot be resolved. Did you",
        ),
        ("", "RuntimeError"),
        ("x" * 10_000, "x" * 400),
    ],
)
def test_the_cause_is_one_line_without_a_stack_trace(text: str, line: str) -> None:
    found = cause(RuntimeError(text))
    assert found.startswith(line)
    assert "\n" not in found
    assert len(found) <= 500


def test_a_job_is_read_with_its_tables(tmp_path: Path) -> None:
    file = tmp_path / "job.toml"
    file.write_text(JOB + '[[show]]\nsql = "SELECT 1"\n[metrics]\nport = 9100\n[spark]\nmaster = "spark://h:7077"\n')
    job = read_job(file)
    assert (job.shows[0].title, job.metrics_port, job.master) == ("result", 9100, "spark://h:7077")
