"""How long `kavka topics list` takes beside Kafka's own tool, from the command to its end, of the same broker.

    python -m benchmarks.listing [--runs 10] [--tool-runs 3] [--kavka .venv-wheel/bin/kavka]

Both print the same names. The clock counts, as people wait; processor time is given besides, as others on the machine
cannot change it much.
"""

import argparse
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.contestants import Kavka
from kavka.client import Admin, NewTopic
from tests.support import maven
from tests.support.kavka_process import KAVKA

TOOL: Final = "org.apache.kafka.tools.TopicCommand"
BUNDLE: Final = "kafka-4.3"
AIM: Final = 1 / 5
TIMEOUT_S: Final = 300
TOPICS: Final = 100


class Took(NamedTuple):
    """One run."""

    wall_s: float
    cpu_s: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--tool-runs", type=int, default=3)
    parser.add_argument("--kavka", type=Path, default=KAVKA, help="the command; the checkout's own by default")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kavka-listing-") as folder, Kavka(Path(folder)).running() as server:
        with Admin(bootstrap_servers=server.bootstrap) as admin:
            admin.create_topics([NewTopic(f"topic-{number:03}", 1, 1) for number in range(TOPICS)])
        words = ["--bootstrap-server", server.bootstrap]
        # The heap that Kafka's scripts give their tools, and the options of kafka-run-class.sh that shorten a start.
        java = ["java", "-Xmx256M", "-XX:+UseG1GC", "-Djava.awt.headless=true", "-cp", maven.classpath(BUNDLE)]
        ours = [_timed([str(given.kavka), "topics", "list", *words]) for _ in range(given.runs)]
        theirs = [_timed([*java, TOOL, "--list", *words]) for _ in range(given.tool_runs)]
    ratios = []
    for field in Took._fields:
        mine, other = (statistics.median(getattr(each, field) for each in runs) for runs in (ours, theirs))
        ratios.append(mine / other)
        print(f"{field:7} kavka {mine:6.3f} s, Kafka's tool {other:6.3f} s: {mine / other:.3f} x (aim {AIM} x)")
    print("met" if ratios[0] <= AIM else "MISSED")


def _timed(command: Sequence[str]) -> Took:
    """Raises CalledProcessError; RuntimeError where other topics are listed."""
    before, began_s = os.times(), time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
    wall_s, after = time.perf_counter() - began_s, os.times()
    if len(done.stdout.split()) != TOPICS:
        raise RuntimeError(f"{command[0]} lists {done.stdout!r}")
    cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
    return Took(wall_s, cpu_s)


if __name__ == "__main__":
    main()
