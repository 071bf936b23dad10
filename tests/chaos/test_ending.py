"""The chaos program leaves nothing running behind, whatever signal ends it."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes import Process, wait_until
from tests.support.producing import REPOSITORY

pytestmark = [pytest.mark.java, pytest.mark.slow]

ZOOKEEPERS_AND_BROKERS = 6
START_S = 300.0
END_S = 150.0
# As a shell has what it starts in the background.
IGNORING_SIGINT = "trap '' INT; exec \"$@\""


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Process]:
    command = [sys.executable, "-m", "tests.chaos.run", "--directory", str(tmp_path / "stage")]
    process = Process(
        ["sh", "-c", IGNORING_SIGINT, "sh", *command], tmp_path / "driver.log", env={"PYTHONPATH": str(REPOSITORY)}
    )
    yield process
    for pid in children_of(process):
        os.kill(pid, signal.SIGKILL)
    process.kill()


def children_of(process: Process) -> set[int]:
    listed = Path(f"/proc/{process.pid}/task").glob("*/children")
    return {int(pid) for each in listed for pid in each.read_text().split()}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_brokers_and_zookeepers(driver: Process, number: signal.Signals) -> None:
    def all_of_them() -> set[int] | None:
        driver.check_alive()
        found = children_of(driver)
        return found if len(found) == ZOOKEEPERS_AND_BROKERS else None

    # Looked at once: a broker that reaches no ZooKeeper in time ends, and is started again.
    started = wait_until(all_of_them, START_S, lambda: f"only {children_of(driver)} run:\n{driver.log_text()}")

    os.kill(driver.pid, number)

    assert driver.wait(END_S) == 128 + number
    left = [pid for pid in started if Path(f"/proc/{pid}").exists()]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []
