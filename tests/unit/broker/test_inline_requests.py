"""The network thread runs small known requests itself, and leaves them to others when that takes long."""

from typing import Any

import pytest

from kavka.broker import inline_requests
from kavka.broker.inline_requests import (
    FIRST_REST_NS,
    LONGEST_REST_NS,
    MAX_FRAME_BYTES,
    MAX_FRAMES,
    SLOW_NS,
    InlineRequests,
)
from kavka.broker.metrics import Metrics
from kavka.broker.produce_shapes import CLOSES

FAST_NS = 10_000


class FakeShapes:
    """Knows every frame but those that are "?", and takes as long as it is told."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.takes_ns = FAST_NS

    def produce(self, frame: memoryview, cells: object, *, may_wait: bool) -> bytes | None:
        assert not may_wait
        self.now_ns += self.takes_ns
        text = bytes(frame)
        if text == b"?" or text.startswith(b"\0\1"):
            return None
        if text == b"!":
            return CLOSES
        return b"" if text == b"0" else b"<%s>" % text


class FakeConnection:
    def __init__(self, shapes: FakeShapes | None) -> None:
        self.shapes = shapes
        self.is_tailing = False
        self.flushes = 0
        self.last_words: list[bytes] | None = None
        """What had been written when it was to be closed."""
        self.written: list[bytes] = []

    def write(self, answers: list[bytes]) -> None:
        self.written += answers

    def flush(self) -> None:
        self.flushes += 1

    def close_answered(self, reason: str) -> None:
        self.last_words = list(self.written)


class Rig:
    def __init__(self) -> None:
        self.shapes = FakeShapes()
        self.connection: Any = FakeConnection(self.shapes)
        self.inline = InlineRequests(self.execute)
        self.executed: list[bytes] = []
        self.holds = False
        self.cells = Metrics().enlist("network")

    def run(self, *frames: bytes) -> int:
        views = [memoryview(frame) for frame in frames]
        count, self.has_turn = self.inline.run(self.connection, views, self.shapes.now_ns, self.cells)
        return count

    def execute(self, context: Any) -> bool:
        self.executed.append(bytes(context.frame))
        return not self.holds

    def slow_run(self) -> None:
        self.shapes.takes_ns = 2 * SLOW_NS
        assert self.run(b"a") == 1
        self.shapes.takes_ns = FAST_NS


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Rig:
    rig = Rig()
    monkeypatch.setattr(inline_requests, "now_ns", lambda: rig.shapes.now_ns)
    return rig


def test_known_frames_are_run_and_answered_together(rig: Rig) -> None:
    assert rig.run(b"a", b"b") == 2

    assert rig.connection.written == [b"<a>", b"<b>"]
    assert rig.cells.requests[0].count == 2


def test_what_follows_an_unknown_frame_is_left_with_it(rig: Rig) -> None:
    assert rig.run(b"a", b"?", b"b") == 1
    assert rig.run(b"?") == 0

    assert rig.connection.written == [b"<a>"]


def test_frames_without_an_answer_count_as_run(rig: Rig) -> None:
    assert rig.run(b"0", b"0") == 2

    assert rig.connection.written == []
    assert rig.cells.requests[0].count == 2


def test_nothing_runs_or_is_answered_after_a_request_that_closes_the_connection(rig: Rig) -> None:
    assert (rig.run(b"a", b"!", b"b"), rig.has_turn) == (2, False)

    assert rig.connection.written == rig.connection.last_words == [b"<a>"]


def test_large_and_many_frames_are_left_to_others(rig: Rig) -> None:
    assert rig.run(b"a", b"x" * (MAX_FRAME_BYTES + 1), b"b") == 1
    assert rig.run(*[b"a"] * (MAX_FRAMES + 1)) == 0


def test_a_connection_without_shapes_has_nothing_to_run(rig: Rig) -> None:
    rig.connection.shapes = None

    assert rig.run(b"a") == 0


def test_after_a_slow_run_it_rests_longer_each_time_and_then_starts_anew(rig: Rig) -> None:
    rests = []
    for _ in range(9):
        rig.slow_run()
        began_ns = rig.shapes.now_ns
        while not rig.run(b"a"):
            rig.shapes.now_ns += 10_000_000
        rests.append(rig.shapes.now_ns - began_ns)

    doubled = [min(FIRST_REST_NS << number, LONGEST_REST_NS) for number in range(9)]
    assert all(wanted <= rest <= wanted + 20_000_000 for rest, wanted in zip(rests, doubled, strict=True))

    rig.shapes.now_ns += 2 * LONGEST_REST_NS
    rig.run(b"a")
    rig.slow_run()
    rig.shapes.now_ns += FIRST_REST_NS
    assert rig.run(b"a") == 1


def test_many_quick_frames_are_not_a_slow_run(rig: Rig) -> None:
    rig.shapes.takes_ns = 19_000 + SLOW_NS // MAX_FRAMES
    assert rig.run(*[b"a"] * MAX_FRAMES) == MAX_FRAMES

    assert rig.run(b"a") == 1


def test_a_fetch_at_the_tail_is_run_alone_and_may_keep_the_turn(rig: Rig) -> None:
    fetch = b"\0\1..."
    assert rig.run(fetch) == 0

    rig.connection.is_tailing = True
    assert (rig.run(fetch, b"a"), rig.has_turn) == (1, True)
    rig.holds = True
    assert (rig.run(fetch), rig.has_turn) == (1, False)

    assert rig.executed == [fetch, fetch]
    assert (rig.connection.flushes, rig.connection.written) == (2, [])
    assert (rig.run(b"a"), rig.has_turn) == (1, True)
