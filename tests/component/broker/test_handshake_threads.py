"""The threads of TLS handshakes, where the system has no more for a while."""

import threading
from collections.abc import Callable

import pytest

from kavka.broker.network.handshakes import Handshakes


def test_threads_that_could_not_be_started_are_started_by_the_next_try(monkeypatch: pytest.MonkeyPatch) -> None:
    deaths: list[BaseException] = []
    handshakes = Handshakes(3, deaths.append)
    start, left = threading.Thread.start, [1]

    def start_some(thread: threading.Thread) -> None:
        if not left:
            raise RuntimeError("can't start new thread")
        left.pop()
        start(thread)

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start_some)
        with pytest.raises(RuntimeError):
            handshakes.start()
    handshakes.start()
    try:
        # Each takes one, or nobody gets on.
        steps = threading.Barrier(4)
        for _ in range(3):
            handshakes.take("SSL", lambda: steps.wait(60))
        steps.wait(60)
    finally:
        handshakes.stop()
    assert not deaths


def test_a_flood_at_one_listener_does_not_keep_another_waiting() -> None:
    deaths: list[BaseException] = []
    handshakes = Handshakes(1, deaths.append)
    taken: list[str] = []
    done = threading.Event()

    def step(name: str) -> Callable[[], None]:
        return lambda: taken.append(name)

    for number in range(1_000):
        handshakes.take("CLIENTS", step(f"client {number}"))
    for number in range(3):
        handshakes.take("BROKERS", step(f"broker {number}"))
    handshakes.take("CLIENTS", done.set)
    handshakes.start()
    assert done.wait(60)
    handshakes.stop()

    assert taken[:7] == ["client 0", "broker 0", "client 1", "broker 1", "client 2", "broker 2", "client 3"]
    assert [each for each in taken if each.startswith("client")] == [f"client {number}" for number in range(1_000)]
    assert not deaths
