"""The thread behind a client: it runs the machine, ends when that is idle or time is up, and is gone after a fork."""

import os
import subprocess
import sys
import threading
from collections.abc import Generator
from concurrent.futures import Future

import pytest

from kavka.client import NetworkClient
from kavka.client.bootstrap import Bootstrap, bootstrap_nodes
from kavka.client.client_thread import ClientThread
from kavka.client.errors import ClientClosedError, ClientDiedError, UsedAfterForkError
from kavka.client.metadata import Metadata, MetadataSettings
from tests.support.client_line import SETTINGS
from tests.support.processes import wait_until

TIMEOUT_S = 60.0


class Machine:
    """Idle when told so; remembers what it was called for, and where."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.rounds = 0
        self.threads: set[str] = set()
        self.idle = False
        self.failing: Exception | None = None
        self.wait_ms = float("inf")

    def work(self, _now_ms: float) -> float:
        self.rounds += 1
        self.threads.add(threading.current_thread().name)
        if self.failing is not None:
            raise self.failing
        return self.wait_ms

    def closing(self, _now_ms: float) -> None:
        self.calls.append("closing")

    def is_idle(self) -> bool:
        return self.idle

    def closed(self) -> None:
        self.calls.append("closed")


class Stage:
    def __init__(self) -> None:
        self.machine = Machine()
        self.network = NetworkClient(SETTINGS)
        bootstrap = Bootstrap(bootstrap_nodes(["first:9092"]), on_found=self.network.wakeup)
        self.metadata = Metadata(bootstrap, MetadataSettings(), wake=self.network.wakeup)
        self.thread = ClientThread("kavka-test-1", self.network, self.machine, metadata=self.metadata)


@pytest.fixture
def stage() -> Generator[Stage, None, None]:
    stage = Stage()
    yield stage
    stage.thread.close(0)


def nothing() -> None:
    """Anything to be done."""


def alive() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("kavka-test")]


def test_nothing_runs_before_it_is_needed(stage: Stage) -> None:
    assert alive() == []
    stage.thread.start()
    stage.thread.start()
    assert alive() == ["kavka-test-1"]
    wait_until(lambda: stage.machine.rounds, TIMEOUT_S, "the machine did not work")


def test_what_is_submitted_runs_on_the_thread_and_the_machine_after_it(stage: Stage) -> None:
    ran: Future[str] = Future()
    stage.thread.submit(lambda: ran.set_result(threading.current_thread().name))
    assert ran.result(TIMEOUT_S) == "kavka-test-1"
    rounds = stage.machine.rounds
    stage.thread.wakeup()
    wait_until(lambda: stage.machine.rounds > rounds, TIMEOUT_S, "it was not woken")
    assert stage.machine.threads == {"kavka-test-1"}


def test_it_ends_as_soon_as_the_machine_is_idle(stage: Stage) -> None:
    stage.thread.start()
    closer = threading.Thread(target=stage.thread.close, args=(600_000,))
    closer.start()
    wait_until(lambda: stage.machine.calls == ["closing"], TIMEOUT_S, "not told")
    stage.machine.idle = True
    stage.thread.wakeup()
    closer.join(TIMEOUT_S)
    assert not closer.is_alive()
    assert stage.machine.calls == ["closing", "closed"]
    assert alive() == []


def test_it_ends_in_time_if_the_machine_is_never_idle(stage: Stage) -> None:
    stage.thread.start()
    assert stage.thread.close(1)
    assert alive() == []
    assert stage.machine.calls[-1] == "closed"


def test_a_busy_machine_is_closed_in_time_too(stage: Stage) -> None:
    stage.machine.wait_ms = 0.0
    stage.thread.start()
    assert stage.thread.close(1)
    assert alive() == []


def test_after_the_end_it_takes_nothing_more(stage: Stage) -> None:
    stage.thread.start()
    version = stage.metadata.want(["t"])
    assert stage.thread.close(0)
    assert stage.thread.close(0), "again is no harm"
    for use in (stage.thread.check, stage.thread.start, lambda: stage.thread.submit(nothing)):
        with pytest.raises(ClientClosedError, match="kavka-test-1 was closed"):
            use()
    with pytest.raises(ClientClosedError):
        stage.metadata.wait_for(version, float("inf"))


def test_one_that_never_ran_is_closed_too(stage: Stage) -> None:
    assert stage.thread.close(1_000)
    assert stage.machine.calls == ["closed"]
    with pytest.raises(ClientClosedError):
        stage.thread.start()


def test_what_was_submitted_before_the_end_is_run(stage: Stage) -> None:
    ran: list[int] = []
    blocked, go_on = threading.Event(), threading.Event()

    def block() -> None:
        blocked.set()
        go_on.wait(TIMEOUT_S)

    stage.thread.submit(block)
    assert blocked.wait(TIMEOUT_S)
    closer = threading.Thread(target=stage.thread.close, args=(0,))
    closer.start()
    stage.thread.submit(lambda: ran.append(1))
    go_on.set()
    closer.join(TIMEOUT_S)
    assert ran == [1]


def test_a_thread_that_dies_says_why_to_all_who_come_later(stage: Stage) -> None:
    stage.machine.failing = KeyError("lost")
    stage.thread.start()
    wait_until(lambda: stage.machine.calls == ["closed"], TIMEOUT_S, "it did not end")
    with pytest.raises(ClientDiedError, match="lost") as raised:
        stage.thread.check()
    assert isinstance(raised.value.__cause__, KeyError)
    with pytest.raises(ClientDiedError):
        stage.thread.submit(nothing)
    assert stage.thread.close(1_000)
    assert alive() == []


def test_a_callback_may_close_its_client(stage: Stage) -> None:
    closed: Future[bool] = Future()
    stage.thread.submit(lambda: closed.set_result(stage.thread.close(600_000)))
    assert closed.result(TIMEOUT_S)
    wait_until(lambda: alive() == [], TIMEOUT_S, "it goes on")


def test_a_forked_child_cannot_use_it_and_the_parent_can(stage: Stage) -> None:
    stage.thread.start()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            try:
                stage.thread.submit(nothing)
            except UsedAfterForkError:
                code = 0 if stage.thread.close(1_000) else 2
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    ran: Future[int] = Future()
    stage.thread.submit(lambda: ran.set_result(1))
    assert ran.result(TIMEOUT_S) == 1


STUCK = """
import threading
from kavka.client import ClientSettings, NetworkClient, client_thread

client_thread.EXIT_TIMEOUT_MS, client_thread.JOIN_GRACE_MS = 300.0, 300.0
waited = []
join = threading.Thread.join

class Machine:
    def __init__(self): self.calls = 0
    def work(self, now_ms):
        begun.release()
        threading.Event().wait()
    def closing(self, now_ms): pass
    def is_idle(self): return False
    def closed(self): pass

def joined(self, timeout=None):
    if self.name.startswith("kavka"):
        waited.append(timeout)
    join(self, timeout)

begun = threading.Semaphore(0)
threading.Thread.join = joined
import atexit
atexit.unregister(client_thread._close_all)
atexit.register(lambda: print(*waited))
atexit.register(client_thread._close_all)
threads = [client_thread.ClientThread(f"kavka-{n}", NetworkClient(ClientSettings()), Machine()) for n in range(5)]
for thread in threads:
    thread.start()
    begun.acquire()
"""


def test_however_many_clients_are_stuck_the_interpreter_ends() -> None:
    done = subprocess.run([sys.executable, "-c", STUCK], capture_output=True, text=True, check=True, timeout=120)
    limits = [float(word) for word in done.stdout.split()]
    assert len(limits) == 5
    assert limits[0] <= 0.6
    assert sum(limits[1:]) < 0.3, "the first one took all the time there is"


UNCLOSED = """
from kavka.client import ClientSettings, NetworkClient
from kavka.client.client_thread import ClientThread

class Machine:
    def __init__(self): self.left = 3
    def work(self, now_ms): return 5.0
    def closing(self, now_ms): print("closing")
    def is_idle(self):
        self.left -= 1
        return self.left == 0
    def closed(self): print("closed")

thread = ClientThread("kavka-test-1", NetworkClient(ClientSettings()), Machine())
thread.start()
"""


def test_what_nobody_closed_may_finish_when_the_interpreter_ends() -> None:
    done = subprocess.run([sys.executable, "-c", UNCLOSED], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.split() == ["closing", "closed"]
    assert done.stderr == ""
