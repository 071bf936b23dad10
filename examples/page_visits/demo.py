"""The long form of `make pipeline`: visits come while a job archives and counts them; then history is sent again.

    .venv/bin/python -m examples.page_visits.demo --keep /tmp/visits

`/tmp/visits` keeps the lake, the job file and `visits.html`, the picture. Without --keep all is removed again.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from examples.page_visits.picture import Picture, page
from examples.page_visits.produce import PARTITIONS, TOPIC, create_topic, produce_visits
from examples.page_visits.visits import SITES, PageVisit
from kavka.client import Admin, Consumer, NewTopic, TopicPartition
from kavka.testing import Broker

KAVKA = [sys.executable, "-m", "kavka", "pipeline"]
WAVES = 6
WAVE = 20_000
HOURS = 12
LATE_SHARE = 0.01
LATE_MS = 3 * 3_600_000
COUNTS = "visits_by_hour"
AGAIN = "page_visits_again"
JOB = """
[job]
name = "page_visits"
checkpoint = "checkpoint"
every = "1s"

[source]
bootstrap.servers = "{bootstrap}"
subscribe = "page_visits"
startingOffsets = "earliest"

[[transforms]]
sql = \"\"\"
SELECT topic, partition, offset, timestamp, key, value, timestamp_millis(visit.time_ms) AS time, visit.site, visit.ip
FROM (SELECT *, from_json(CAST(value AS STRING), 'time_ms BIGINT, site STRING, ip STRING') AS visit FROM rows)
\"\"\"

[[sinks]]
kind = "archive"
path = "lake"

[[sinks]]
kind = "aggregate"
topic = "visits_by_hour"
time = "time"
window = "1h"
delay = "30m"
by = ["site"]
measures = {{ visits = "count" }}
late_topic = "visits_late"
"""


def waves() -> Iterator[list[PageVisit]]:
    """Visits of the last twelve hours, in their order but for one in a hundred that comes three hours late."""
    source = random.Random(1)
    now_ms = time.time_ns() // 1_000_000
    total = WAVES * WAVE
    for wave in range(WAVES):
        visits = []
        for number in range(wave * WAVE, (wave + 1) * WAVE):
            time_ms = now_ms - HOURS * 3_600_000 * (total - number) // total
            if number > total // 3 and source.random() < LATE_SHARE:
                time_ms -= LATE_MS
            site = SITES[min(int(source.expovariate(1)), len(SITES) - 1)]
            visits.append(PageVisit(time_ms, site, f"192.168.14.{source.randint(1, 254)}"))
        yield visits


def run_job(file: Path, bootstrap: str) -> list[tuple[float, int, int]]:
    """Run it while visits come, until all are read: seconds, lag and late rows as time went by. Raises SystemExit."""
    samples: list[tuple[float, int, int]] = []
    began_s = time.monotonic()
    with subprocess.Popen([*KAVKA, "run", str(file)], stderr=subprocess.DEVNULL) as run:
        try:
            sent = 0
            for visits in waves():
                produce_visits(bootstrap, visits, acks="all")
                sent += len(visits)
                _follow(run, file, samples, began_s, until_rows=sent - WAVE if sent < WAVES * WAVE else sent)
        finally:
            run.send_signal(signal.SIGTERM)
        if run.wait():
            raise SystemExit(f"the job ended with {run.returncode}")
    return samples


def _follow(
    run: "subprocess.Popen[bytes]",
    file: Path,
    samples: list[tuple[float, int, int]],
    began_s: float,
    until_rows: int,
) -> None:
    """Look at the job until each sink has read so many rows."""
    while True:
        if run.poll() is not None:
            raise SystemExit(f"the job ended with {run.returncode}: {file.parent}/checkpoint/_kavka/spark.log says why")
        if (sinks := _sinks(file)) is not None:
            lag = max(each["lag"] or 0 for each in sinks)
            late = sum(each["counters"].get("late_rows", 0) for each in sinks)
            samples.append((time.monotonic() - began_s, lag, late))
            if min(each["rows"] for each in sinks) >= until_rows:
                return
        time.sleep(0.25)


def _sinks(file: Path) -> list[dict[str, Any]] | None:
    try:
        found = json.loads((file.parent / "checkpoint" / "_kavka" / "status.json").read_text())
    except FileNotFoundError:
        return None
    return list(found["sinks"])


def last_values(bootstrap: str, topic: str) -> dict[str, dict[str, Any]]:
    """A compacted topic's values by key: the aggregate as it is now."""
    found: dict[str, dict[str, Any]] = {}
    with Consumer({"bootstrap.servers": bootstrap, "isolation.level": "read_committed"}) as consumer:
        places = [TopicPartition(topic, number) for number in consumer.partitions_for(topic)]
        consumer.assign(places)
        consumer.seek_to_beginning()
        ends = consumer.end_offsets(places)
        while any(consumer.position(place) < ends[place] for place in places):
            for record in consumer.poll(1000):
                found[record.key.decode()] = json.loads(record.value)
    return found


def command(*words: str) -> None:
    """Run one of `kavka pipeline`'s commands, and let it say what it does. Raises SystemExit."""
    print(f"\n$ kavka pipeline {' '.join(words)}", flush=True)
    if done := subprocess.run([*KAVKA, *words], check=False).returncode:
        raise SystemExit(done)


@contextmanager
def folder_of(keep: Path | None) -> Iterator[Path]:
    if keep is None:
        with TemporaryDirectory(prefix="kavka-demo-") as made:
            yield Path(made)
        return
    keep.mkdir(parents=True, exist_ok=True)
    if any(keep.iterdir()):
        raise SystemExit(f"{keep}: there is something in it")
    yield keep


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=Path, metavar="DIR", help="an empty folder for what else is removed")
    options = parser.parse_args(arguments)
    with folder_of(options.keep) as folder, Broker({"auto.create.topics.enable": "false"}) as broker:
        os.environ["PYTHONUNBUFFERED"] = "1"
        bootstrap = broker.bootstrap_servers
        create_topic(bootstrap)
        with Admin(bootstrap_servers=bootstrap) as admin:
            admin.create_topics([NewTopic(AGAIN, num_partitions=PARTITIONS, replication_factor=1)])
        file = folder / "job.toml"
        file.write_text(JOB.format(bootstrap=bootstrap))
        print(f"{WAVES * WAVE:,} visits of {HOURS} hours go to {TOPIC} while a job reads them", flush=True)
        samples = run_job(file, bootstrap)
        command("status", str(file))
        command("replay", str(file), "--to-topic", AGAIN)
        command("audit", str(file))
        counts = [{**json.loads(key), **value} for key, value in last_values(bootstrap, COUNTS).items()]
        html = folder / "visits.html"
        html.write_text(page(Picture(counts, samples)))
        print(f"\n{sum(each['visits'] for each in counts):,} visits counted, {samples[-1][2]:,} came too late")
        if options.keep is not None:
            print(f"the picture: {html}")


if __name__ == "__main__":
    main()
