"""What a network thread runs itself: prepared requests, small ones, and for how long it rests after a slow run."""

from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest

from kavka.broker.metrics.registry import Metrics
from kavka.broker.requests import request_runner
from kavka.broker.requests.prepared import CLOSES, TAILING, Prepared, Small
from kavka.broker.requests.request_runner import (
    BULK_NS,
    FIRST_REST_NS,
    LONGEST_REST_NS,
    MAX_ALONE_BYTES,
    MAX_INLINE_BYTES,
    MAX_INLINE_REQUESTS,
    SLOW_TURN_NS,
    InlineRequests,
)
from kavka.broker.requests.turns import Turns

FAST_NS = 10_000
PRODUCE, FETCH, HEARTBEAT, OTHER = b"\0\0", b"\0\1", b"\0\x0c", b"\0\x12"


class Echo(Prepared):
    """Answers a produce with its ninth byte; knows no "?", gives "0" no answer, and has "!" close the connection."""

    closing_reason = "it failed"

    def __init__(self, rig: "Rig") -> None:
        self._rig = rig

    def run(self, frame: memoryview, cells: object, may_wait: bool) -> bytes | None:
        assert not may_wait
        what = frame[8:9].tobytes()
        if what == b"?":
            return None
        self._rig.now_ns += self._rig.takes_ns
        return {b"0": b"", b"!": CLOSES}.get(what, b"<%s>" % what)


class FakeConnection:
    def __init__(self, connection_id: int) -> None:
        self.id = connection_id
        self.deferred = None
        self.pending: deque[tuple[memoryview, int, int]] = deque()
        self.answers = SimpleNamespace(slots=[], backlog=[])
        self.session: Any = SimpleNamespace(prepared={})
        self.taken_bytes = 0
        self.congested = self.ended = False
        self.reading = True
        self.has_turn = True
        self.running = SimpleNamespace(release=self.let_go)
        self.flushes = 0
        self.written: list[bytes] = []
        self.last_words: list[bytes] | None = None
        """What had been written when it was to be closed."""

    def let_go(self) -> None:
        self.has_turn = False

    def write(self, answers: list[bytes]) -> None:
        self.written += answers

    def flush(self) -> None:
        self.flushes += 1

    def close_answered(self, reason: str) -> None:
        assert reason == Echo.closing_reason
        self.last_words = list(self.written)


class Rig:
    def __init__(self) -> None:
        self.now_ns = 1_000_000_000_000
        self.takes_ns = FAST_NS
        self.connection: Any = self.connect(1)
        self.turns = Turns()
        self.queued: list[Any] = []
        queue: Any = SimpleNamespace(put=self.queued.append, wake=lambda connection: None)
        self.inline = InlineRequests(queue, self._dispatcher())
        self.executed: list[bytes] = []
        self.holds = False
        self.cells = Metrics().enlist("network")

    def _dispatcher(self) -> Any:
        return SimpleNamespace(execute=self.execute, turns=self.turns)

    def connect(self, connection_id: int) -> Any:
        connection = FakeConnection(connection_id)
        connection.session.prepared = {0: Echo(self)}
        return connection

    def run(self, *frames: bytes) -> int:
        """How many were run."""
        connection = self.connection
        connection.has_turn = True
        connection.pending.clear()
        connection.pending.extend((memoryview(frame), self.now_ns, 0) for frame in frames)
        self.queued.clear()
        self.inline.run(connection, self.now_ns, self.cells)
        return len(frames) - len(connection.pending)

    @property
    def handed_on(self) -> bool:
        """Whether the connection was given to the I/O threads, with what is left."""
        assert not self.queued or self.connection.has_turn
        return self.queued == [self.connection]

    def execute(self, context: Any) -> bool:
        assert context.is_inline
        self.executed.append(bytes(context.frame))
        context.local_done_ns = self.now_ns
        return not self.holds

    def slow_run(self) -> None:
        self.takes_ns = 2 * SLOW_TURN_NS
        assert self.run(frame(b"a")) == 1
        self.takes_ns = FAST_NS


def frame(what: bytes, api_key: bytes = PRODUCE, version: int = 9, length: int = 9) -> bytes:
    return (api_key + bytes([0, version]) + bytes(4) + what).ljust(length, b"x")


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Rig:
    rig = Rig()
    monkeypatch.setattr(request_runner, "now_ns", lambda: rig.now_ns)
    return rig


def test_a_turn_that_has_become_slow_is_handed_on(rig: Rig) -> None:
    rig.takes_ns = SLOW_TURN_NS // 2

    assert rig.run(*[frame(b"a")] * 10) == 3

    assert rig.connection.written == [b"<a>"] * 3
    assert rig.handed_on


def test_prepared_requests_are_run_and_answered_together(rig: Rig) -> None:
    assert rig.run(frame(b"a"), frame(b"b")) == 2

    assert rig.connection.written == [b"<a>", b"<b>"]
    assert rig.cells.requests[0].count == 2
    assert not rig.connection.has_turn


def test_what_follows_an_unknown_request_is_left_with_it(rig: Rig) -> None:
    assert rig.run(frame(b"a"), frame(b"?"), frame(b"b")) == 1
    assert rig.handed_on
    assert rig.run(frame(b"?")) == 0
    assert rig.handed_on
    assert rig.run(frame(b"a", OTHER)) == 0
    assert rig.run(b"\0\0short") == 0

    assert rig.connection.written == [b"<a>"]
    assert rig.executed == []


def test_requests_without_an_answer_count_as_run(rig: Rig) -> None:
    assert rig.run(frame(b"0"), frame(b"0")) == 2

    assert rig.connection.written == []
    assert rig.cells.requests[0].count == 2


def test_nothing_runs_or_is_answered_after_a_request_that_closes_the_connection(rig: Rig) -> None:
    assert rig.run(frame(b"a"), frame(b"!"), frame(b"b")) == 2

    assert rig.connection.has_turn
    assert not rig.handed_on
    assert rig.connection.written == rig.connection.last_words == [b"<a>"]


def test_large_and_many_requests_are_left_to_others(rig: Rig) -> None:
    assert rig.run(frame(b"a"), frame(b"b", length=MAX_INLINE_BYTES + 1), frame(b"c")) == 1
    assert rig.run(*[frame(b"a")] * (MAX_INLINE_REQUESTS + 1)) == MAX_INLINE_REQUESTS
    assert rig.handed_on


def test_large_requests_of_one_connection_alone_are_run(rig: Rig) -> None:
    assert rig.run(frame(b"a", length=MAX_ALONE_BYTES - 1), frame(b"b"), frame(b"c")) == 2
    assert rig.handed_on
    assert rig.run(frame(b"d", length=MAX_ALONE_BYTES)) == 1
    assert rig.run(frame(b"e", length=MAX_ALONE_BYTES + 1)) == 0
    assert rig.handed_on

    assert rig.connection.written == [b"<a>", b"<b>", b"<d>"]


def test_large_requests_of_several_connections_are_left_to_others_until_one_is_alone_again(rig: Rig) -> None:
    large = frame(b"a", length=MAX_INLINE_BYTES + 1)
    one, other = rig.connection, rig.connect(2)
    assert rig.run(large) == 1
    for connection in (other, one, other):
        rig.connection = connection
        assert rig.run(large) == 0
        assert rig.handed_on
        assert rig.run(frame(b"s")) == 1
        rig.now_ns += BULK_NS // 2
    assert rig.run(large) == 0
    rig.now_ns += BULK_NS // 2
    assert rig.run(large) == 1


def test_large_requests_never_go_the_ordinary_way(rig: Rig) -> None:
    rig.connection.session.prepared[12] = Small()
    assert rig.run(frame(b"h", HEARTBEAT, length=MAX_INLINE_BYTES + 1)) == 0
    assert rig.handed_on
    assert rig.executed == []


def test_small_requests_go_the_ordinary_way_one_at_a_time(rig: Rig) -> None:
    rig.connection.session.prepared[12] = Small()
    assert rig.run(frame(b"h", HEARTBEAT), frame(b"h", HEARTBEAT)) == 1
    assert rig.handed_on
    assert rig.run(frame(b"a"), frame(b"h", HEARTBEAT)) == 2

    assert rig.connection.written == [b"<a>"]
    assert rig.executed == [frame(b"h", HEARTBEAT)] * 2


def test_after_a_slow_run_it_rests_longer_each_time_and_then_starts_anew(rig: Rig) -> None:
    rests = []
    for _ in range(9):
        rig.slow_run()
        began_ns = rig.now_ns
        while not rig.run(frame(b"a")):
            assert rig.handed_on
            rig.now_ns += 10_000_000
        rests.append(rig.now_ns - began_ns)

    doubled = [min(FIRST_REST_NS << number, LONGEST_REST_NS) for number in range(9)]
    assert all(wanted <= rest <= wanted + 20_000_000 for rest, wanted in zip(rests, doubled, strict=True))

    rig.now_ns += 2 * LONGEST_REST_NS
    rig.run(frame(b"a"))
    rig.slow_run()
    rig.now_ns += FIRST_REST_NS
    assert rig.run(frame(b"a")) == 1


def test_many_quick_requests_are_not_a_slow_run(rig: Rig) -> None:
    rig.takes_ns = 19_000 + SLOW_TURN_NS // MAX_INLINE_REQUESTS
    assert rig.run(*[frame(b"a")] * MAX_INLINE_REQUESTS) == MAX_INLINE_REQUESTS

    assert rig.run(frame(b"a")) == 1


def test_a_fetch_at_the_tail_is_run_and_may_keep_the_turn(rig: Rig) -> None:
    fetch = frame(b"f", FETCH)
    assert rig.run(fetch) == 0

    rig.connection.session.prepared[1] = TAILING
    assert rig.run(frame(b"f", FETCH, version=3)) == 0
    assert rig.run(fetch) == 1
    assert not rig.connection.has_turn
    rig.holds = True
    assert rig.run(fetch) == 1
    assert rig.connection.has_turn
    assert not rig.handed_on

    assert rig.executed == [fetch, fetch]
    assert rig.connection.written == []


def test_a_turn_that_fails_is_over(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: FakeConnection, answers: list[bytes]) -> None:
        raise MemoryError

    monkeypatch.setattr(FakeConnection, "write", fail)
    told: list[str] = []
    run = Echo.run

    def revoked_meanwhile(self: Echo, *arguments: Any) -> bytes | None:
        rig.turns.when_over(lambda: told.append("over"))
        return run(self, *arguments)

    monkeypatch.setattr(Echo, "run", revoked_meanwhile)
    with pytest.raises(MemoryError):
        rig.run(frame(b"a"))
    assert told == ["over"]
    rig.turns.when_over(lambda: told.append("nothing goes on"))
    assert told == ["over", "nothing goes on"]
