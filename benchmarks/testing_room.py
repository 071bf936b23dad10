"""What brokers inside tests cost: starts and stops, a cluster, memory, and a hundred tests.

    python -m benchmarks.testing_room [--cycles 50] [--clusters 20] [--tests 100]

Each figure is a median, of processes of their own where what is loaded first counts. Processor time tells on a busy
machine what the clock does not.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

FIRST_STARTS: Final = 5
FURTHER_BROKERS: Final = 8
TIMEOUT_S: Final = 900

FIRST: Final = """
import json, os, time
import pytest, kavka.testing.plugin
def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
before, began, began_cpu = resident(), time.perf_counter(), time.process_time()
from kavka.testing import Broker
brokers = [Broker().__enter__()]
took = [time.perf_counter() - began, time.process_time() - began_cpu]
first = resident()
brokers += [Broker().__enter__() for _ in range(int(os.environ["FURTHER"]))]
further = resident()
for broker in brokers:
    broker.close()
print(json.dumps([*took, first - before, (further - first) / (len(brokers) - 1)]))
"""

TESTS: Final = """
import pytest
from kavka.client import Consumer, Producer

@pytest.mark.parametrize("number", range({count}))
def test_it(kavka_broker, number):
    kavka_broker.create_topic("orders")
    bootstrap = kavka_broker.bootstrap_servers
    with Producer(bootstrap_servers=bootstrap) as producer:
        producer.send("orders", b"x").result(60)
    settings = {{"bootstrap.servers": bootstrap, "auto.offset.reset": "earliest"}}
    with Consumer(settings{group}) as consumer:
        {how}
        (record,) = consumer.poll(timeout_ms=60_000)
    assert record.value == b"x"
"""
ASSIGNED: Final = ("", 'consumer.assign([("orders", 0)])')
GROUPED: Final = (', group_id="billing"', 'consumer.subscribe(["orders"])')


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=50)
    parser.add_argument("--clusters", type=int, default=20)
    parser.add_argument("--tests", type=int, default=100)
    args = parser.parse_args()
    firsts = [_first() for _ in range(FIRST_STARTS)]
    for name, index, unit, factor, aim in (
        ("first start, with imports", 0, "ms", 1000.0, "600"),
        ("  its processor time", 1, "ms", 1000.0, "600"),
        ("first broker", 2, "MB", 1e-6, "25"),
        ("each further broker", 3, "MB", 1e-6, "3"),
    ):
        _show(name, statistics.median(first[index] for first in firsts) * factor, unit, aim)
    starts, stops = _cycles(args.cycles)
    _show_timed("start", starts, "50 ms")
    _show_timed("stop, after use", stops, "20 ms")
    opened, closed = _clusters(args.clusters)
    _show_timed("start of a cluster of three", opened, "250 ms")
    _show_timed("stop of a cluster of three", closed, "-")
    for name, kind, aim in (("assign", ASSIGNED, "8 s"), ("fresh groups", GROUPED, "20 s")):
        _show_timed(f"{args.tests} tests by {name}", [_timed(partial(_run_tests, args.tests, *kind))], aim)


class Took(NamedTuple):
    """What a step took; processor time is this process's and its children's."""

    wall_ms: float
    cpu_ms: float


def _show(name: str, value: float, unit: str, aim: str) -> None:
    print(f"{name:30} {value:8.1f} {unit} (aim {aim} {unit})", flush=True)


def _show_timed(name: str, took: Sequence[Took], aim: str) -> None:
    wall_ms, cpu_ms = (statistics.median(each[index] for each in took) for index in range(2))
    print(f"{name:30} {wall_ms:8.1f} ms, {cpu_ms:.1f} ms of processor time (aim {aim})", flush=True)


def _timed(step: Callable[[], object]) -> Took:
    began_s, began_cpu_s = time.perf_counter(), _cpu_s()
    step()
    return Took(1000 * (time.perf_counter() - began_s), 1000 * (_cpu_s() - began_cpu_s))


def _cpu_s() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _first() -> list[float]:
    """Seconds until the first broker serves, seconds of processor time; bytes that it takes, and each further one."""
    done = subprocess.run(
        [sys.executable, "-c", FIRST],
        env={**os.environ, "FURTHER": str(FURTHER_BROKERS)},
        stdout=subprocess.PIPE,
        text=True,
        timeout=TIMEOUT_S,
        check=True,
    )
    found: list[float] = json.loads(done.stdout)
    return found


def _cycles(count: int) -> tuple[list[Took], list[Took]]:
    from kavka.testing import Broker

    starts, stops = [], []
    for _ in range(count):
        broker = Broker()
        starts.append(_timed(broker.start))
        broker.create_topic("orders")
        broker.produce("orders", ["x"] * 100)
        broker._close_clients()
        stops.append(_timed(broker.close))
    return starts, stops


def _clusters(count: int) -> tuple[list[Took], list[Took]]:
    from kavka.testing import Cluster

    opened, closed = [], []
    for _ in range(count):
        cluster = Cluster(3)
        opened.append(_timed(cluster.__enter__))
        closed.append(_timed(cluster.close))
    return opened, closed


def _run_tests(count: int, group: str, how: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "test_it.py").write_text(TESTS.format(count=count, group=group, how=how))
        command = [sys.executable, "-m", "pytest", "-q", "-p", "kavka.testing.plugin", "-p", "no:cacheprovider", "."]
        environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, timeout=TIMEOUT_S, check=True)


if __name__ == "__main__":
    main()
