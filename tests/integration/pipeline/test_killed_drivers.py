"""A driver, or a worker of Spark's, killed at any step of a streaming query: what it writes is there once."""

import sys
from collections import Counter
from pathlib import Path

import pytest

from kavka.pipeline.jobs.aggregate import LATE_SENT, SAVED, SPLIT
from kavka.pipeline.sending.steps import STEPS
from kavka.testing import Broker
from kavka.testing.rows import Row
from tests.support.dying_job import COPIED, COUNTED, SOURCE
from tests.support.processes import Process

pytestmark = [pytest.mark.soak, pytest.mark.timeout(7200)]

LONG_S = 3000.0
ROWS = 24
FIRST_MS = 1_700_000_000_000 - 1_700_000_000_000 % 3_600_000
AGGREGATE_STEPS = tuple(step for step in STEPS if step not in ("planned", "written"))


def given(broker: Broker) -> list[Row]:
    """Four windows of an hour, two sites; one row comes late for its window."""
    times = [FIRST_MS + 600_000 * number for number in range(ROWS)]
    times[20] = FIRST_MS + 1
    rows = [Row(b"v%d" % n, b"ab"[n % 2 : n % 2 + 1], {}, n % 2, times[n]) for n in range(ROWS)]
    broker.create_topics(SOURCE, COPIED, partitions=2)
    broker.produce(SOURCE, rows)
    return rows


def go(broker: Broker, what: str, directory: Path, step: str, times: int) -> int | None:
    arguments = [what, broker.bootstrap_servers, str(directory), step, str(times)]
    with Process([sys.executable, "-m", "tests.support.dying_job", *arguments], directory / "job.log") as job:
        job.wait(LONG_S)
        return job.exit_code


def assert_killed(directory: Path, times: int) -> None:
    """The step was come to. A driver is gone then; of a worker Spark may make another one, and go on."""
    assert (directory / "steps").stat().st_size >= times


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("step", STEPS)
def test_a_copy_is_exact(tmp_path: Path, step: str, times: int) -> None:
    with Broker({"log.retention.ms": "-1"}) as broker:
        given(broker)
        go(broker, "write", tmp_path, step, times)
        assert_killed(tmp_path, times)
        assert go(broker, "write", tmp_path, "none", 1) == 0
        whole = [(each.partition, each.key, each.value, each.timestamp_ms) for each in broker.records(SOURCE)]
        found = broker.records(COPIED, committed=True)
        assert [(each.partition, each.key, each.value, each.timestamp_ms) for each in found] == whole


@pytest.mark.parametrize("step", [SPLIT, SAVED, LATE_SENT, *AGGREGATE_STEPS])
def test_aggregates_are_exact(tmp_path: Path, step: str) -> None:
    with Broker({"num.partitions": "2", "log.retention.ms": "-1"}) as broker:
        rows = given(broker)
        go(broker, "aggregate", tmp_path, step, 1)
        assert_killed(tmp_path, 1)
        assert go(broker, "aggregate", tmp_path, "none", 1) == 0
        last = {each.key: each.json for each in broker.records(COUNTED, committed=True)}
        found = Counter({(each["window_start"], each["site"]): each["count"] for each in last.values()})
        late = broker.records(f"{COUNTED}-late", committed=True)
        assert late.values == [b"v20"]
        assert sum(found.values()) + len(late) == ROWS
        hours = Counter(((row.timestamp_ms or 0) // 3_600_000, row.key) for row in rows if row.value != b"v20")
        assert sorted(found.values()) == sorted(hours.values())
