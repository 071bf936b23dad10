"""A partition's queue: answered from its head, whoever comes late; its alarm; who waits in vain."""

import random
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kavka.broker.waiting.offset_queue import AwaitedOffset, OffsetQueue
from kavka.broker.waiting.purgatory import Purgatory
from kavka.broker.waiting.timer import Timer
from kavka.protocol.errors import ErrorCode
from tests.support.isr_stage import ME, OTHER, Hosted
from tests.support.processes import wait_until

NEVER_NS = 1 << 62


class Connection:
    def __init__(self) -> None:
        self.closed = False
        self.pending = ()
        self.reading = True
        self.thread = SimpleNamespace()
        self.flushes = 0

    def flush(self) -> None:
        self.flushes += 1


class Request:
    """One that waits for one offset."""

    def __init__(self, connection: Any = None) -> None:
        self.connection: Any = connection or Connection()
        self.told: list[ErrorCode] = []

    def settle(self, place: int, code: ErrorCode) -> bool:
        self.told.append(code)
        return True


class World:
    """A queue whose high watermark tests move."""

    def __init__(self, timer: Timer | None = None) -> None:
        self.high_watermark = 0
        self.led_since = 0
        self.looked_at = 0
        self.purgatory = Purgatory(timer or Timer(lambda failure: None))
        self.queue = OffsetQueue(self.fate, self.purgatory)

    def fate(self, leader_epoch: int, required_offset: int) -> ErrorCode | None:
        self.looked_at += 1
        if leader_epoch < self.led_since:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.NONE if self.high_watermark >= required_offset else None

    def wait(self, offset: int, *, epoch: int = 0, deadline_ns: int = NEVER_NS, connection: Any = None) -> Request:
        request = Request(connection)
        self.queue.add(AwaitedOffset(request, 0, epoch, offset, deadline_ns))
        return request

    def reach(self, offset: int) -> None:
        self.high_watermark = offset
        self.queue.settle_reached()


@pytest.fixture
def timer() -> Iterator[Timer]:
    made = Timer(lambda failure: None)
    made.start()
    yield made
    made.stop()


def test_the_high_watermark_answers_those_below_it_and_looks_at_one_more() -> None:
    world = World()
    waiting = [world.wait(offset) for offset in range(1, 101)]
    world.looked_at = 0

    world.reach(3)

    assert [each.told for each in waiting] == [[ErrorCode.NONE]] * 3 + [[]] * 97
    assert world.looked_at == 4


def test_entries_that_come_in_another_order_are_answered_by_their_offsets() -> None:
    world = World()
    offsets = list(range(1, 60))
    random.Random(1).shuffle(offsets)
    waiting = {offset: world.wait(offset) for offset in offsets}

    for reached in (7, 30, 59):
        world.reach(reached)
        assert all(bool(request.told) is (offset <= reached) for offset, request in waiting.items())


def test_what_is_committed_by_the_time_it_waits_does_not() -> None:
    world = World()
    world.wait(9)
    world.high_watermark = 5

    assert world.wait(5).told == [ErrorCode.NONE]
    assert len(world.queue.entries) == 1


def test_the_end_of_a_leadership_answers_all_wherever_they_stand() -> None:
    world = World()
    old = [world.wait(offset) for offset in (5, 8)]
    world.led_since = 1
    new = world.wait(3, epoch=1)

    world.queue.settle_ended()

    assert [each.told for each in (*old, new)] == [[ErrorCode.NOT_LEADER_OR_FOLLOWER]] * 2 + [[]]


def test_each_is_answered_at_its_own_deadline_by_one_alarm(timer: Timer) -> None:
    now_ns = 0
    world = World(timer)
    connection = Connection()
    late = world.wait(1, deadline_ns=now_ns, connection=connection)
    patient = world.wait(2)

    wait_until(lambda: bool(late.told), 60, "the alarm does not ring")

    assert late.told == [ErrorCode.REQUEST_TIMED_OUT]
    assert patient.told == []
    wait_until(lambda: timer.pending == 1, 60, "no alarm is set for the other")
    wait_until(lambda: connection.flushes > 0, 60, "the answer was not written")


def test_an_alarm_that_finds_nobody_is_not_set_again(timer: Timer) -> None:
    world = World(timer)
    world.wait(1)
    assert (timer.pending, world.purgatory.size) == (1, 1)
    world.reach(1)
    assert world.purgatory.size == 0

    world.queue._ring()

    assert world.purgatory._queues == {}


def test_who_has_left_is_let_go_by_the_next_alarm() -> None:
    world = World()
    left, stays = world.wait(1), world.wait(2)
    left.connection.closed = True

    world.queue._ring()

    assert [entry.answering for entry in world.queue.entries] == [stays]


def test_a_stop_answers_all(timer: Timer) -> None:
    world = World(timer)
    waiting = [world.wait(offset) for offset in (1, 2)]

    world.purgatory.expire_all()

    assert [each.told for each in waiting] == [[ErrorCode.REQUEST_TIMED_OUT]] * 2


def test_one_that_cannot_be_answered_keeps_no_other_waiting(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    closed: list[str] = []

    class Broken(Request):
        def settle(self, place: int, code: ErrorCode) -> bool:
            raise ValueError

    broken = Broken()
    broken.connection.close = closed.append
    world.queue.add(AwaitedOffset(broken, 0, 0, 1, NEVER_NS))
    other = world.wait(1)

    world.reach(1)

    assert other.told == [ErrorCode.NONE]
    assert len(closed) == 1
    assert "could not be answered" in caplog.text


def test_no_wait_is_lost_and_none_answered_twice_while_the_high_watermark_moves() -> None:
    world = World()
    done = threading.Event()

    def move() -> None:
        while not done.is_set():
            world.reach(world.high_watermark + 1)

    mover = threading.Thread(target=move)
    mover.start()
    try:
        waiting = [world.wait(world.high_watermark + number % 3) for number in range(3000)]
    finally:
        done.set()
        mover.join()
    world.reach(world.high_watermark + 5)

    assert all(each.told == [ErrorCode.NONE] for each in waiting)


def test_a_partitions_leadership_and_copies_decide(tmp_path: Path) -> None:
    hosted = Hosted(tmp_path, min_insync_replicas=2)
    hosted.lead(ME, OTHER)
    hosted.append()
    partition, end_offset = hosted.partition, hosted.log.log_end_offset

    assert partition.fate_of(0, end_offset) is None
    hosted.fetched(OTHER, end_offset)
    assert partition.fate_of(0, end_offset) is ErrorCode.NONE
    partition.role = partition.role._replace(maximal_isr=(ME,))
    assert partition.fate_of(0, end_offset) is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    hosted.follow(1, partition_epoch=1)
    assert partition.fate_of(0, end_offset) is ErrorCode.NOT_LEADER_OR_FOLLOWER
