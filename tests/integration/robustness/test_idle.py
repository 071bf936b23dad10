"""A broker that has nothing to do does next to nothing."""

import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.kavka_process import KavkaProcess
from tests.support.processes import let_pass, wait_until
from tests.support.wire import FETCH_VERSION, Wire, create_topic, fetch_request

pytestmark = pytest.mark.serial
WATCHED_S = 3.0
SETTLING_TIMEOUT_S = 60.0
"""What is begun with may still go on while it is first watched."""
MAX_WAKES_PER_SECOND = 20
MAX_CALLS_PER_SECOND = 60


def test_an_idle_broker_wakes_fewer_than_twenty_times_a_second(tmp_path: Path) -> None:
    with KavkaProcess(tmp_path) as broker, Wire(broker.host, broker.port) as client:
        create_topic(client, "quiet", 100)
        # A consumer at the end of its partition, and a connection that says nothing.
        client.send(fetch_request("quiet", 0, max_wait_ms=60_000), FETCH_VERSION)
        with Wire(broker.host, broker.port):
            wait_until(
                lambda: _wakes_per_second(broker) < MAX_WAKES_PER_SECOND, SETTLING_TIMEOUT_S, "it does not come to rest"
            )


def test_an_idle_broker_hardly_calls_the_kernel(tmp_path: Path) -> None:
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed (Debian: apt-get install strace)")
    with KavkaProcess(tmp_path) as broker, Wire(broker.host, broker.port) as client:
        create_topic(client, "quiet", 10)
        counts = tmp_path / "counts"
        wait_until(
            lambda: _calls_per_second(broker, counts) < MAX_CALLS_PER_SECOND,
            SETTLING_TIMEOUT_S,
            lambda: f"it does not come to rest:\n{counts.read_text()}",
        )


def _wakes_per_second(broker: KavkaProcess) -> float:
    before = broker.process.voluntary_switches()
    let_pass(WATCHED_S)
    return (broker.process.voluntary_switches() - before) / WATCHED_S


def _calls_per_second(broker: KavkaProcess, counts: Path) -> float:
    """By strace, whose table stays in `counts`. Skips where it may not attach."""
    command = ["strace", "-f", "-c", "-o", str(counts), "-p", str(broker.process.pid)]
    tracer = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    let_pass(WATCHED_S)
    # SIGTERM would end it without its table.
    tracer.send_signal(signal.SIGINT)
    complaints = tracer.communicate(timeout=60)[1]
    if "Operation not permitted" in complaints:
        pytest.skip("strace may not attach here")
    assert "detached" in complaints
    # No table at all: no call came to its end.
    total = re.search(r"(\d+)\s+(?:\d+\s+)?total", counts.read_text())
    return int(total[1]) / WATCHED_S if total is not None else 0.0
