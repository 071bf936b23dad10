"""`kavka pipeline run`: the first command of the README, and a job that is watched, stopped and gone on with.

Each run has a Spark of its own, as a user's has.
"""

import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from examples.page_visits.produce import create_topic, produce_visits
from examples.page_visits.visits import generate_visits
from kavka.pipeline.lake.lake import Lake
from kavka.testing import Broker
from tests.support.json_documents import document, line_document
from tests.support.processes import Process, wait_until

REPOSITORY = Path(__file__).parents[3]
EXAMPLE = REPOSITORY / "examples" / "page_visits" / "pipeline.toml"
KAVKA = [sys.executable, "-m", "kavka", "pipeline"]
LIMIT_S = 540
SECRET = "squirrel-in-the-attic"
JOB = """
[job]
name = "visits"
checkpoint = "state"
every = "500ms"

[source]
bootstrap.servers = "{bootstrap}"
client.id = "${{env:PIPELINE_SECRET}}"
subscribe = "page_visits"
startingOffsets = "earliest"

[[sinks]]
kind = "archive"
path = "lake"

[metrics]
port = 0
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.java,
    pytest.mark.skipif(shutil.which("java") is None, reason="there is no Java here"),
]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as made:
        create_topic(made.bootstrap_servers)
        yield made


def events(text: str) -> list[dict[str, Any]]:
    """The run's lines that are events."""
    return [line_document("pipeline-run", line) for line in text.splitlines() if line.startswith('{"event"')]


def test_page_visits_are_archived_and_counted_by_one_command() -> None:
    done = subprocess.run(
        [*KAVKA, "run", str(EXAMPLE), "--output", "json"], capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    happened = events(done.stdout)
    assert [event["event"] for event in happened if event["event"] not in ("batch", "note")] == [
        "starting",
        "table",
        "ended",
    ]
    (table,) = [event for event in happened if event["event"] == "table"]
    assert table["columns"] == ["site", "hour", "visits", "addresses"]
    assert sum(row[2] for row in table["rows"]) == 10_000
    assert sum(event["rows"] for event in happened if event["event"] == "batch") == 10_000


def test_a_job_is_watched_while_it_runs_stops_by_a_signal_and_goes_on(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIPELINE_SECRET", SECRET)
    file = tmp_path / "job.toml"
    file.write_text(JOB.format(bootstrap=broker.bootstrap_servers))
    produce_visits(broker.bootstrap_servers, list(generate_visits(1000, seed=1)), acks="all")
    log = tmp_path / "run.out"
    with Process([*KAVKA, "run", str(file), "--output", "json"], log) as run:
        address = run.wait_for_log(r'"metrics", "address": "([^"]+)"', LIMIT_S)[1]
        wait_until(lambda: lag_and_rows(file) == (0, 1000), LIMIT_S, log.read_text)
        produce_visits(broker.bootstrap_servers, list(generate_visits(500, seed=2)), acks="all")
        wait_until(lambda: lag_and_rows(file) == (0, 1500), LIMIT_S, log.read_text)
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=60) as page:
            metrics = page.read().decode()
        assert 'kavka_pipeline_rows_total{job="visits",sink="archive"} 1500.0' in metrics
        second = subprocess.run([*KAVKA, "run", str(file), "--once"], capture_output=True, text=True, check=False)
        assert second.returncode == 1
        assert "the job runs already, as process" in second.stderr
        assert run.stop(LIMIT_S) == 0
    happened = events(log.read_text())
    assert happened[-1] == {"event": "ended", "failure": None}
    batches = [event["batch_id"] for event in happened if event["event"] == "batch"]
    assert batches == list(range(len(batches)))
    assert status(file)["state"] == "ended"

    produce_visits(broker.bootstrap_servers, list(generate_visits(250, seed=3)), acks="all")
    again = subprocess.run([*KAVKA, "run", str(file), "--once"], capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert status(file)["sinks"][0]["rows"] == 250
    assert Lake(tmp_path / "lake").to_arrow(["offset"]).num_rows == 1750
    assert files_with(SECRET, tmp_path) == [], "a secret was written down"
    assert files_with("${env:PIPELINE_SECRET}", tmp_path / "state"), "the test would not find it either"


def test_a_failure_is_one_line_and_its_trace_is_in_the_log(broker: Broker, tmp_path: Path) -> None:
    file = tmp_path / "job.toml"
    text = JOB.format(bootstrap=broker.bootstrap_servers).replace('client.id = "${env:PIPELINE_SECRET}"', "")
    file.write_text(text.replace("[[sinks]]", '[[transforms]]\nsql = "SELECT nothing FROM rows"\n[[sinks]]'))
    produce_visits(broker.bootstrap_servers, list(generate_visits(10)), acks="all")
    done = subprocess.run([*KAVKA, "run", str(file), "--once"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("kavka pipeline run: ")]
    assert "`nothing` cannot be resolved" in line
    assert "spark.log has more" in line
    assert "Traceback" not in done.stderr
    assert "Traceback" in (tmp_path / "state" / "_kavka" / "spark.log").read_text()
    assert status(file)["state"] == "failed"


def status(file: Path) -> dict[str, Any]:
    """What `kavka pipeline status` says, whatever its exit code."""
    done = subprocess.run(
        [*KAVKA, "status", str(file), "--output", "json"], capture_output=True, text=True, check=False
    )
    return document("pipeline-status", done.stdout)[0]


def lag_and_rows(file: Path) -> tuple[int | None, int]:
    """Of the only sink, while the job runs."""
    found = status(file)
    assert found["state"] == "running", found
    return found["sinks"][0]["lag"], found["sinks"][0]["rows"]


def files_with(text: str, folder: Path) -> list[Path]:
    """Where it was written: logs, checkpoints, manifests, plans."""
    return [path for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]
