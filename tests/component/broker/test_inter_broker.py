"""The inter-broker thread: made, started, stopped; what a sender does wrong ends it loudly."""

import contextlib
import threading
from pathlib import Path

import pytest

from kavka.broker.interbroker import InterBroker
from kavka.client import ClientSettings, NetworkClient
from tests.support.processes import wait_until

TIMEOUT_S = 60.0


def descriptors() -> set[tuple[str, str]]:
    """What is open: number and target. A test asks what came, for others' leavings may go at any time."""
    found = set()
    for path in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            found.add((path.name, str(path.readlink())))
    return found


class Faulty:
    def advance(self, _client: NetworkClient, _now_ms: float) -> float:
        raise MemoryError("as an example")


def test_one_that_was_never_started_holds_nothing() -> None:
    before = descriptors()
    inter_broker = InterBroker(ClientSettings(), lambda _: None)
    inter_broker.wake()
    assert descriptors() - before == set()
    inter_broker.stop()


def test_a_stopped_one_leaves_nothing_behind() -> None:
    before, threads = descriptors(), set(threading.enumerate())
    inter_broker = InterBroker(ClientSettings(), lambda _: None)
    inter_broker.start()
    assert descriptors() - before
    inter_broker.stop()
    assert descriptors() - before == set()
    assert not any(thread.name == "inter-broker" for thread in set(threading.enumerate()) - threads)
    inter_broker.wake()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_sender_that_fails_ends_the_thread_and_says_so() -> None:
    before = descriptors()
    deaths: list[BaseException] = []
    inter_broker = InterBroker(ClientSettings(), deaths.append)
    inter_broker.add(Faulty())
    inter_broker.start()
    wait_until(lambda: deaths, TIMEOUT_S, "nobody was told")
    inter_broker.stop()
    assert isinstance(deaths[0], MemoryError)
    assert descriptors() - before == set()
