"""What a log refuses is refused alike by the short way and by the ordinary one, and leaves the same log behind.

Random producers that repeat themselves, leave gaps, come with old epochs or transactions that nobody verified, on
topics that stamp, compact and flush, over disks that are full or fail to sync now and then.
"""

import errno
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kavka.broker.requests.prepared_produce import PreparedProduces
from kavka.protocol.codec import decode
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.headers import decode_response_header
from kavka.protocol.messages.produce import ProduceResponse
from kavka.protocol.records.builder import ControlType, build_control_batch
from kavka.storage.append_result import Origin
from tests.component.broker.test_transactional_produce import FakeTransactions
from tests.support.broker_core import NOW_MS, BrokerCore, produce_frame
from tests.support.log_managers import FailingFiles
from tests.support.network_stage import SIZE
from tests.support.partition_logs import batch_of
from tests.support.prepared_ways import watch_short_ways

TOPICS = {
    "plain": {},
    "stamped": {"message.timestamp.type": "LogAppendTime"},
    "compacted": {"cleanup.policy": "compact"},
    "packed": {"compression.type": "gzip"},
    "rolling": {"segment.bytes": "1000", "message.timestamp.type": "LogAppendTime"},
    "forced": {"flush.messages": "1"},
    "forced and stamped": {"flush.messages": "3", "message.timestamp.type": "LogAppendTime"},
}


PARTITIONS = 3


class Side:
    """One broker, its disk and its coordinator."""

    def __init__(self, directory: Path, *, prepares: bool) -> None:
        self.now_ms = NOW_MS
        self.files = FailingFiles()
        self.core = BrokerCore(directory, inline=prepares, prepares=prepares, files=self.files, topics=TOPICS)
        self.transactions = FakeTransactions()
        services: Any = self.core.services
        services.transactions = self.transactions
        services.now_ms = lambda: self.now_ms
        for topic in TOPICS:
            self.core.create(topic, PARTITIONS)

    def ask(self, *frames: bytes) -> bytes:
        if self.core.socket.closed:
            self.core.connect()
        return self.core.ask(*frames)

    def mark(self, topic: str, producer_id: int, epoch: int) -> object:
        marker = build_control_batch(
            ControlType.COMMIT, timestamp_ms=NOW_MS, producer_id=producer_id, producer_epoch=epoch, coordinator_epoch=0
        )
        try:
            return self.core.replicas.partitions[topic, 0].append(
                memoryview(bytearray(marker)), -1, 12, self.now_ms, Origin.COORDINATOR
            )
        except BrokerError as failure:
            return failure.code

    def state(self) -> dict[str, object]:
        counted = self.core.stage.metrics.topics()[1]
        state: dict[str, object] = {}
        for topic in TOPICS:
            cells = counted.get(topic)
            state[topic] = cells and {name: getattr(cells, name) for name in cells.__slots__}
            for index in range(PARTITIONS):
                log = self.core.log(topic, index)
                segments = [segment.base_offset for segment in log.published[2]]
                data = b"".join(
                    [log.read(start, 1 << 30, min_one=True, end_offset=1 << 60).read_bytes() for start in segments]
                )
                active = log.active_producers()
                state[f"{topic}-{index}"] = (segments, data, log.high_watermark, log.recovery_point, active)
        return state


class Sides:
    """Both, asked the same."""

    def __init__(self, directory: Path) -> None:
        self.short = Side(directory / "short", prepares=True)
        self.ordinary = Side(directory / "ordinary", prepares=False)
        self.both = (self.short, self.ordinary)

    def ask(self, *frames: bytes) -> bytes:
        answer, other = [side.ask(*frames) for side in self.both]
        assert answer == other
        assert self.short.core.socket.closed == self.ordinary.core.socket.closed
        return answer

    def check(self) -> None:
        assert self.short.state() == self.ordinary.state()

    def fill_disk(self) -> None:
        for side in self.both:
            side.files.fail("pwrite", "00.log", errno.ENOSPC)

    def fail_flushes(self) -> None:
        """By something that passes: a failed fsync is a log's last."""
        for side in self.both:
            side.files.fail("stat", "index", errno.ENOMEM)

    def heal(self) -> None:
        for side in self.both:
            side.files.heal()


@pytest.fixture
def sides(tmp_path: Path) -> Iterator[Sides]:
    made = Sides(tmp_path)
    yield made
    made.heal()
    for side in made.both:
        side.core.close()


@pytest.fixture
def short_ways(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    return watch_short_ways(monkeypatch, PreparedProduces)


class Producer:
    """Makes requests, mostly right ones."""

    def __init__(self, producer_id: int, *, name: str | None, rng: random.Random) -> None:
        self.id = producer_id
        self.name = name
        self.epoch = 1 if producer_id >= 0 else -1
        self.version = rng.choice([5, 7, 8, 9, 11, 12, 13])
        self.acks = rng.choice([1, -1, 0]) if producer_id < 0 else rng.choice([1, -1])
        self._rng = rng
        self._next: dict[tuple[str, int], int] = {}
        self._sent: list[bytes] = []
        self._number = 0

    def frame(self, topic: str) -> bytes:
        rng = self._rng
        kind = rng.random()
        self._number += 1
        if kind < 0.15 and self._sent:
            return rng.choice(self._sent[-8:])
        indexes = rng.sample(range(PARTITIONS), rng.choice([1, 1, 2, 3]))
        batches = {(topic, index): self._batch((topic, index)) for index in indexes}
        frame = produce_frame(self.version, self._number, batches, acks=self.acks, transactional_id=self.name)
        self._sent.append(frame)
        return frame

    def _batch(self, place: tuple[str, int]) -> bytes:
        rng = self._rng
        kind = rng.random()
        values = [b"%d" % rng.randrange(10**6) for _ in range(rng.randrange(1, 4))]
        fields: dict[str, Any] = {}
        if self.id >= 0:
            if kind > 0.98:
                self.epoch += 1
                self._next.clear()
            sequence = self._next.get(place, 0)
            epoch = self.epoch
            if kind > 0.95:
                epoch -= 1
            elif kind > 0.90:
                sequence += rng.randrange(1, 5)
            else:
                self._next[place] = sequence + len(values)
            fields = {"producer_id": self.id, "producer_epoch": epoch, "base_sequence": sequence}
            fields["transactional"] = self.name is not None and kind < 0.88
        batch = batch_of(*values, timestamp_ms=NOW_MS, key=None if kind > 0.985 else b"k", **fields)
        if 0.88 < kind < 0.90:
            batch[-1] ^= 1
        return bytes(batch)


@pytest.mark.parametrize("seed", range(12))
def test_both_ways_answer_alike_whatever_is_refused(sides: Sides, short_ways: list[bool], seed: int) -> None:
    rng = random.Random(seed)
    producers = [Producer(-1, name=None, rng=rng), Producer(5, name=None, rng=rng), Producer(6, name="t", rng=rng)]
    topics = rng.sample(sorted(TOPICS), 3)
    codes = [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.INVALID_PRODUCER_ID_MAPPING]
    for number in range(150):
        for side in sides.both:
            side.now_ms += 1
        code = rng.choice(codes)
        for side in sides.both:
            side.transactions.code = code
        match rng.random():
            case chance if chance < 0.08:
                rng.choice([sides.fill_disk, sides.fail_flushes])()
            case chance if chance < 0.30:
                sides.heal()
            case chance if chance < 0.36:
                topic, epoch = rng.choice(topics), producers[2].epoch
                marked, other = [side.mark(topic, 6, epoch) for side in sides.both]
                assert marked == other
        producer, topic = rng.choice(producers), rng.choice(topics)
        sides.ask(*[producer.frame(topic) for _ in range(rng.choice([1, 1, 1, 2, 5]))])
        if number % 25 == 0:
            sides.check()
    sides.check()
    assert short_ways.count(True) > 20


def codes_of(version: int, answers: bytes) -> list[ErrorCode]:
    codes = []
    while answers:
        (size,) = SIZE.unpack_from(answers)
        frame, answers = answers[4 : 4 + size], answers[4 + size :]
        _, position = decode_response_header(0, version, frame)
        response = decode(ProduceResponse, version, memoryview(frame)[position:])
        codes += [ErrorCode(part.error_code) for topic in response.responses for part in topic.partition_responses]
    return codes


def sequenced(topic: str, sequence: int, *, acks: int = 1, version: int = 9, **fields: Any) -> bytes:
    batch = batch_of(b"v", producer_id=5, producer_epoch=1, base_sequence=sequence, **fields)
    name = "t" if fields else None
    return produce_frame(version, sequence, {(topic, 0): bytes(batch)}, acks=acks, transactional_id=name)


def test_a_gap_in_stamped_batches_is_out_of_order_by_the_short_way_too(sides: Sides, short_ways: list[bool]) -> None:
    for sequence in (0, 1):
        assert codes_of(9, sides.ask(sequenced("stamped", sequence))) == [ErrorCode.NONE]
    assert short_ways[-1]

    assert codes_of(9, sides.ask(sequenced("stamped", 7))) == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]
    assert codes_of(9, sides.ask(sequenced("stamped", 2))) == [ErrorCode.NONE]


def test_the_second_transaction_of_a_stamped_topic_begins_like_the_first(sides: Sides) -> None:
    for sequence in range(6):
        frame = sequenced("stamped", sequence, transactional=True)
        assert codes_of(9, sides.ask(frame)) == [ErrorCode.NONE]
        if sequence % 3 == 2:
            for side in sides.both:
                side.mark("stamped", 5, 1)
    sides.check()


def test_a_full_disk_passes_for_stamped_batches_too(sides: Sides) -> None:
    frames = [sequenced("stamped", sequence) for sequence in range(3)]
    sides.ask(*frames[:2])
    sides.fill_disk()
    assert codes_of(9, sides.ask(frames[2])) == [ErrorCode.KAFKA_STORAGE_ERROR]
    sides.heal()

    assert codes_of(9, sides.ask(frames[2])) == [ErrorCode.NONE]


def test_a_repeated_batch_waits_for_the_flush_that_failed(sides: Sides, short_ways: list[bool]) -> None:
    frames = [sequenced("forced", sequence) for sequence in range(4)]
    sides.ask(*frames[:2])
    sides.fail_flushes()
    assert codes_of(9, sides.ask(frames[2])) == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert codes_of(9, sides.ask(frames[2], frames[1])) == [ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE]
    assert all(short_ways[-2:])
    sides.heal()

    assert codes_of(9, sides.ask(frames[2], frames[3])) == [ErrorCode.NONE] * 2

    sides.check()
    assert sides.short.core.log("forced").high_watermark == 4


def test_no_network_thread_waits_for_the_flush(sides: Sides, short_ways: list[bool]) -> None:
    """It leaves what has to be flushed to the I/O threads, which take the short way."""
    sides.ask(sequenced("forced", 0))
    stage = sides.short.core.stage
    frame = sequenced("forced", 1)
    sides.short.core.socket.input += SIZE.pack(len(frame)) + frame
    stage.loop.settle()
    assert (short_ways, sides.short.core.log("forced").log_end_offset) == ([False], 1)

    stage.settle()

    assert (short_ways, sides.short.core.log("forced").log_end_offset) == ([False, True], 2)


def test_nothing_is_answered_after_a_request_that_could_not_be(sides: Sides, short_ways: list[bool]) -> None:
    """acks=0 beside acks=1 on one connection: the failure closes it, and no later answer goes out before."""
    for sequence in range(2):
        sides.ask(sequenced("plain", sequence))
        sides.ask(sequenced("forced", sequence, acks=0))
    sides.fail_flushes()

    answer = sides.ask(sequenced("plain", 2), sequenced("forced", 2, acks=0), sequenced("plain", 3))

    assert codes_of(9, answer) == [ErrorCode.NONE]
    assert sides.short.core.socket.closed
    assert short_ways[-3:] == [True, False, True]
    sides.check()


def test_a_log_that_could_not_be_synced_refuses_what_comes_then(sides: Sides) -> None:
    for sequence in range(2):
        sides.ask(sequenced("forced", sequence))
    for side in sides.both:
        side.files.fail("fsync", "00.log", errno.EIO)

    answers = sides.ask(*[sequenced("forced", sequence) for sequence in (2, 2, 3)])

    assert codes_of(9, answers) == [ErrorCode.KAFKA_STORAGE_ERROR] * 3
