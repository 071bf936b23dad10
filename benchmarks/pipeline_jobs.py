"""The pipeline's jobs: rows a second, and a core's second, of archive, aggregate and replay, and their memory.

    .venv/bin/python -m benchmarks.pipeline_jobs --records 5000000 --records 50000000

For each number: records of 100 bytes by librdkafka into a Kavka broker, then `kavka pipeline run --once` of a job with
the archive alone, the same with the aggregate alone, and `kavka pipeline replay` of the lake. CPU seconds are those of
driver, JVM and Python workers, without the broker's; memory is the most that JVM and Python processes had
resident, shared pages shared out.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from benchmarks import librdkafka
from benchmarks.process_trees import cpu_s, memory_bytes
from kavka.client import Admin, NewTopic
from tests.support.kavka_process import KavkaProcess

TOPIC: Final = "events"
AGAIN: Final = "again"
MIB: Final = 1 << 20
SAMPLED_S: Final = 0.25
JOB: Final = """
[job]
name = "{name}"
checkpoint = "{name}"

[source]
bootstrap.servers = "{bootstrap}"
subscribe = "events"
startingOffsets = "earliest"
maxOffsetsPerTrigger = "{batch}"

[[sinks]]
{sink}
"""
ARCHIVE: Final = 'kind = "archive"\npath = "lake"'
AGGREGATE: Final = """kind = "aggregate"
topic = "counts"
time = "timestamp"
window = "1m"
delay = "1h"
by = ["partition"]
measures = { rows = "count" }
late_topic = "late"
"""


def run(name: str, records: int, arguments: list[str], log: Path) -> None:
    """Run the command and print what it cost. Raises SystemExit where it fails."""
    began_s = time.monotonic()
    used_s, java, others = 0.0, 0, 0
    with log.open("wb") as output, subprocess.Popen(arguments, stdout=output, stderr=output) as process:
        while process.poll() is None:
            used_s = max(used_s, cpu_s(process.pid))
            now_java, now_others = memory_bytes(process.pid)
            java, others = max(java, now_java), max(others, now_others)
            time.sleep(SAMPLED_S)
    taken_s = time.monotonic() - began_s
    if process.returncode:
        raise SystemExit(f"{name} ended with {process.returncode}:\n{log.read_text()[-2000:]}")
    rates = f"{records / taken_s / 1e6:5.2f} M/s {records / used_s / 1e6:5.2f} M per CPU second"
    memory = f"JVM {java // MIB:5} MiB, Python {others // MIB:5} MiB"
    print(f"{name:10} {records:>11,} rows {taken_s:7.1f} s {rates}  {memory}", flush=True)


def measured(folder: Path, records: int, partitions: int, batch: int) -> None:
    """All three, on a broker of their own."""
    kavka = [sys.executable, "-m", "kavka", "pipeline"]
    with KavkaProcess(folder / "broker") as broker:
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            admin.create_topics([NewTopic(TOPIC, partitions), NewTopic(AGAIN, partitions)])
        librdkafka.produce(broker, TOPIC, librdkafka.Produce(records, properties={"linger.ms": "20"}))
        files = {}
        for name, sink in (("archive", ARCHIVE), ("aggregate", AGGREGATE)):
            files[name] = folder / f"{name}.toml"
            text = JOB.format(name=name, bootstrap=broker.bootstrap, batch=batch, sink=sink)
            files[name].write_text(text)
            run(name, records, [*kavka, "run", str(files[name]), "--once"], folder / f"{name}.log")
        replay = [*kavka, "replay", str(files["archive"]), "--to-topic", AGAIN]
        run("replay", records, replay, folder / "replay.log")


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, action="append")
    parser.add_argument("--partitions", type=int, default=6)
    parser.add_argument("--batch", type=int, default=2_000_000, help="records a micro-batch at most")
    chosen = parser.parse_args()
    librdkafka.build()
    for records in chosen.records or [5_000_000]:
        with tempfile.TemporaryDirectory() as name:
            measured(Path(name), records, chosen.partitions, chosen.batch)


if __name__ == "__main__":
    main()
