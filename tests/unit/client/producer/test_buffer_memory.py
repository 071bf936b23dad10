"""Memory that is bounded, used again, and given to who came first."""

import threading
from collections.abc import Callable
from io import BytesIO

import pytest

from kavka.client.api_errors import ClientClosedError
from kavka.client.producer.buffer_memory import BufferMemory
from kavka.client.producer.errors import BufferExhaustedError
from tests.support.processes import wait_until

SOON_MS = 30_000.0


class Clock:
    def __init__(self) -> None:
        self.now_ms = 0.0

    def __call__(self) -> float:
        return self.now_ms


def memory(total: int, piece: int = 100) -> BufferMemory:
    return BufferMemory(total, piece, Clock())


def asking(
    memory: BufferMemory, size: int, note: Callable[[str], None], name: str, deadline_ms: float = SOON_MS
) -> threading.Thread:
    """A thread that asks, once it waits."""

    def ask() -> None:
        try:
            memory.allocate(size, deadline_ms)
            note(name)
        except (BufferExhaustedError, ClientClosedError) as error:
            note(f"{name} {type(error).__name__}")

    before = memory.waiting
    thread = threading.Thread(target=ask)
    thread.start()
    wait_until(lambda: memory.waiting > before or not thread.is_alive(), 60, "it does not wait")
    return thread


def test_pieces_are_used_again() -> None:
    pool = memory(250)
    first = pool.allocate(100, 0)
    pool.release(first, 100)
    assert pool.allocate(100, 0) is first
    assert pool.available_bytes == 150


def test_idle_pieces_are_given_up_for_a_large_one() -> None:
    pool = memory(250)
    for stream in [pool.allocate(100, 0) for _ in range(2)]:
        pool.release(stream, 100)
    large = pool.allocate(250, 0)
    assert (pool.available_bytes, len(large.getbuffer())) == (0, 250)
    pool.release(large, 250)
    assert pool.available_bytes == 250


def test_nobody_waits_beyond_the_deadline() -> None:
    pool = memory(100)
    pool.allocate(100, 0)
    with pytest.raises(BufferExhaustedError):
        pool.allocate(1, 0)
    assert (pool.exhausted, pool.waiting) == (1, 0)


def test_who_waits_has_what_lingers_sent() -> None:
    asked: list[str] = []
    pool = BufferMemory(100, 100, Clock(), lambda: asked.append("send"))
    pool.allocate(100, 0)
    assert asked == []
    with pytest.raises(BufferExhaustedError):
        pool.allocate(1, 0)
    assert asked == ["send"]


def test_more_than_there_is_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match=r"buffer\.memory"):
        memory(100).allocate(101, SOON_MS)


def test_first_come_is_first_served_though_the_second_would_fit() -> None:
    pool = memory(300)
    held = [pool.allocate(100, 0) for _ in range(3)]
    served: list[str] = []
    threads = [asking(pool, 200, served.append, "large"), asking(pool, 100, served.append, "small")]
    pool.release(held[0], 100)
    assert pool.waiting == 2
    pool.release(held[1], 100)
    threads[0].join(60)
    assert served == ["large"]
    pool.release(held[2], 100)
    threads[1].join(60)
    assert served == ["large", "small"]


def test_who_comes_while_others_wait_waits_too() -> None:
    pool = memory(200)
    held = pool.allocate(150, 0)
    served: list[str] = []
    first = asking(pool, 100, served.append, "first")
    second = asking(pool, 50, served.append, "second")
    pool.release(held, 150)
    first.join(60)
    second.join(60)
    assert sorted(served) == ["first", "second"]


def test_who_gives_up_lets_those_behind_go_on() -> None:
    clock = Clock()
    pool = BufferMemory(200, 100, clock)
    pool.allocate(150, 0)
    served: list[str] = []
    first = asking(pool, 200, served.append, "large", 50.0)
    second = asking(pool, 50, served.append, "small")
    clock.now_ms = 51.0
    first.join(60)
    second.join(60)
    assert sorted(served) == ["large BufferExhaustedError", "small"]
    assert pool.available_bytes == 0


def test_close_lets_all_go() -> None:
    pool = memory(100)
    held = pool.allocate(100, 0)
    ended: list[str] = []
    threads = [asking(pool, 100, ended.append, "one"), asking(pool, 100, ended.append, "two")]
    pool.close()
    for thread in threads:
        thread.join(60)
    assert sorted(ended) == ["one ClientClosedError", "two ClientClosedError"]
    pool.release(held, 100)
    assert pool.available_bytes == 100
    with pytest.raises(ClientClosedError):
        pool.allocate(1, SOON_MS)


def test_a_buffer_has_the_room_that_was_asked_for() -> None:
    stream = memory(1000).allocate(500, 0)
    assert isinstance(stream, BytesIO)
    assert len(stream.getbuffer()) == 500
