"""A job on a machine whose zone is not UTC: dates, windows and times are UTC's all the same."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow
import pytest

from kavka.pipeline.lake.lake import Lake
from kavka.testing import Broker
from kavka.testing.rows import Row

KAVKA = [sys.executable, "-m", "kavka", "pipeline"]
LIMIT_S = 540
MIDNIGHT_MS = 1_699_920_000_000
"""2023-11-14T00:00:00Z: half past five in the morning in Kolkata."""
JOB = """
[job]
name = "visits"
checkpoint = "state"

[source]
bootstrap.servers = "{bootstrap}"
subscribe = "visits"
startingOffsets = "earliest"

[schema]
format = "json"
fields = "at timestamp"

[dead_letters]
topic = "dead"

[[transforms]]
sql = "SELECT *, CAST(at AS timestamp_ntz) AS wall FROM rows"

[[sinks]]
kind = "archive"
path = "lake"
partition_by = ["day(timestamp)", "hour(at)"]

[[sinks]]
kind = "aggregate"
topic = "counted"
time = "at"
window = "1h"
by = ["wall"]

[[show]]
sql = "SELECT MIN(timestamp) AS first, MAX(wall) AS last, timestamp_micros({far_us}) AS far FROM archive"
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.java,
    pytest.mark.skipif(shutil.which("java") is None, reason="there is no Java here"),
]


def test_dates_windows_and_times_are_those_of_utc(tmp_path: Path) -> None:
    times_ms = [MIDNIGHT_MS - 1, MIDNIGHT_MS, MIDNIGHT_MS + 3_599_999]
    texts = ["2023-11-13T23:59:59.999", "2023-11-14T00:00:00Z", "2023-11-14T06:29:59+05:30"]
    file = tmp_path / "job.toml"
    with Broker({"log.retention.ms": "-1"}) as broker:
        broker.create_topic("visits", 1)
        broker.produce("visits", [Row({"at": at}, timestamp_ms=ms) for at, ms in zip(texts, times_ms, strict=True)])
        file.write_text(JOB.format(bootstrap=broker.bootstrap_servers, far_us=2**62))
        done = subprocess.run(
            [*KAVKA, "run", str(file), "--once"],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
            env={**os.environ, "TZ": "Asia/Kolkata"},
        )
        assert done.returncode == 0, done.stderr
        counted = [json.loads(each.value or b"") for each in broker.records("counted", committed=True)]
        assert not broker.records("dead")
    for shown in ("2023-11-13 23:59:59.999000", "2023-11-14 00:59:59", "148108-07-06T14:00:27.387904Z"):
        assert shown in done.stdout
    lake = Lake(tmp_path / "lake")
    rows = lake.to_arrow().sort_by("offset")
    assert rows["timestamp"].cast(pyarrow.int64()).to_pylist() == [each * 1000 for each in times_ms]
    assert sorted(tuple(each.partition.values()) for each in lake.files()) == [
        ("2023-11-13", "2023-11-13-23"),
        ("2023-11-14", "2023-11-14-00"),
    ]
    assert sorted((each["window_start"], each["wall"], each["count"]) for each in counted) == [
        ("2023-11-13T23:00:00Z", "2023-11-13T23:59:59.999000Z", 1),
        ("2023-11-14T00:00:00Z", "2023-11-14T00:00:00Z", 1),
        ("2023-11-14T00:00:00Z", "2023-11-14T00:59:59Z", 1),
    ]
