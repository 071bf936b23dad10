"""The short way of produce requests: the same answers and the same log as by the ordinary way, whatever comes."""

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from kavka.broker.metrics.registry import ThreadCells
from kavka.broker.requests.prepared_produce import LONG_BYTES, PreparedProduces
from kavka.protocol.codec import decode
from kavka.protocol.errors import ErrorCode
from kavka.protocol.headers import decode_response_header
from kavka.protocol.messages.produce import PartitionProduceResponse, ProduceResponse
from kavka.protocol.records.batch import Codec, Record, build_batch
from tests.support.broker_core import BrokerCore, produce_frame
from tests.support.partition_logs import batch_of
from tests.support.prepared_ways import watch_short_ways

VERSIONS = range(5, 14)
TAKEN_ON_THE_NETWORK_THREAD = [
    ("plain", 100, True),
    ("plain", 100_000, True),
    ("compacted", 100, True),
    ("compacted", LONG_BYTES, False),
]
WALKED_TOPICS = {
    "compacted": {"cleanup.policy": "compact"},
    "gzipped": {"compression.type": "gzip"},
    "stamped": {"message.timestamp.type": "LogAppendTime"},
}
UNPACKED_ON_THE_NETWORK_THREAD = [
    ("plain", Codec.ZSTD, True),
    ("stamped", Codec.ZSTD, True),
    ("compacted", Codec.NONE, True),
    ("compacted", Codec.ZSTD, False),
    ("gzipped", Codec.NONE, True),
    ("gzipped", Codec.GZIP, True),
    ("gzipped", Codec.ZSTD, False),
]


class Pair:
    """Two brokers that are asked the same: one that prepares, and one that takes the ordinary way."""

    def __init__(self, directory: Path) -> None:
        self.short = BrokerCore(directory / "short", inline=True)
        self.ordinary = BrokerCore(directory / "ordinary", prepares=False)
        for core in self.both:
            core.create("visits", 3)
            core.create("other")

    @property
    def both(self) -> tuple[BrokerCore, BrokerCore]:
        return self.short, self.ordinary

    def ask(self, frame: bytes) -> bytes:
        """The answer, which is the same of both."""
        answer = self.short.ask(frame)
        assert answer == self.ordinary.ask(frame)
        assert self.short.socket.closed == self.ordinary.socket.closed
        return answer

    def check_logs(self) -> None:
        for topic, index in (("visits", 0), ("visits", 1), ("visits", 2), ("other", 0)):
            assert self.short.log_bytes(topic, index) == self.ordinary.log_bytes(topic, index)
        short, ordinary = (core.stage.metrics.topics()[0] for core in self.both)
        for counter in ("produce_requests", "failed_produce_requests", "bytes_in", "messages_in"):
            assert getattr(short, counter) == getattr(ordinary, counter), counter


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    made = Pair(tmp_path)
    yield made
    for core in made.both:
        core.close()


@pytest.fixture
def short_ways(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    return watch_short_ways(monkeypatch, PreparedProduces)


def one(number: int, *, key: bytes | None = b"k") -> bytes:
    return bytes(batch_of(b"value %d" % number, key=key))


def partition_answer(version: int, answer: bytes) -> PartitionProduceResponse:
    _, position = decode_response_header(0, version, answer[4:])
    response = decode(ProduceResponse, version, memoryview(answer)[4 + position :])
    return response.responses[0].partition_responses[0]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("acks", [1, -1, 0])
def test_repeated_requests_take_the_short_way_and_read_the_same(
    pair: Pair, short_ways: list[bool], version: int, acks: int
) -> None:
    for number in range(6):
        answer = pair.ask(produce_frame(version, 100 + number, {("visits", number % 2): one(number)}, acks=acks))
        if acks:
            assert answer[4:8] == (100 + number).to_bytes(4, "big")
            assert partition_answer(version, answer).base_offset == number // 2
        else:
            assert answer == b""

    assert short_ways.count(True) == 4
    pair.check_logs()


@pytest.mark.parametrize(("topic", "size_bytes", "is_short"), TAKEN_ON_THE_NETWORK_THREAD)
def test_what_walks_many_records_is_left_by_the_network_thread(
    tmp_path: Path, short_ways: list[bool], topic: str, size_bytes: int, is_short: bool
) -> None:
    core = BrokerCore(tmp_path, inline=True, topics={"compacted": {"cleanup.policy": "compact"}})
    try:
        core.create(topic)
        for number in range(3):
            records = bytes(batch_of(bytes(size_bytes), key=b"k"))
            answer = core.ask(produce_frame(9, number, {(topic, 0): records}))
            assert partition_answer(9, answer).base_offset == number
        assert short_ways[0] is is_short
    finally:
        core.close()


@pytest.mark.parametrize(("length", "is_short"), [(500, True), (1024, False), (30_000, False)])
@pytest.mark.parametrize("indexes", [[0], [0, 1]])
def test_what_a_connection_remembers_is_short(
    pair: Pair, short_ways: list[bool], length: int, is_short: bool, indexes: list[int]
) -> None:
    batches: dict[tuple[str, int], bytes | None] = {("visits", index): one(index) for index in indexes}
    for number in range(3):
        pair.ask(produce_frame(9, number, batches, client_id="c" * length))

    assert short_ways.count(True) == (2 if is_short else 0)
    pair.check_logs()


@pytest.mark.parametrize(("topic", "codec", "is_short"), UNPACKED_ON_THE_NETWORK_THREAD)
@pytest.mark.parametrize("indexes", [[0], [0, 1]])
def test_what_is_unpacked_is_left_by_the_network_thread_however_short_it_is(
    tmp_path: Path, short_ways: list[bool], topic: str, codec: Codec, is_short: bool, indexes: list[int]
) -> None:
    core = BrokerCore(tmp_path, inline=True, topics=WALKED_TOPICS)
    try:
        core.create(topic, 2)
        for number, packed in enumerate([Codec.NONE, codec, codec]):
            bomb = bytes(build_batch([Record(key=b"k", headers=(("", None),) * 50)], codec=packed))
            answer = core.ask(produce_frame(9, number, {(topic, index): bomb for index in indexes}))
            assert partition_answer(9, answer).base_offset == number
        # What the network thread leaves comes to the prepared way again, on an I/O thread.
        assert short_ways == ([True, True] if is_short else [False, True, False, True])
    finally:
        core.close()


@pytest.mark.parametrize("indexes", [[0], [0, 1]])
def test_a_log_that_moves_to_another_directory_is_left_by_the_network_thread(
    tmp_path: Path, short_ways: list[bool], indexes: list[int]
) -> None:
    """Its lock may be held over fsyncs."""
    core = BrokerCore(tmp_path, inline=True)
    try:
        core.create("visits", 2)
        for number in range(3):
            core.log("visits", indexes[-1]).is_moving = number == 1
            core.ask(produce_frame(9, number, {("visits", index): one(number) for index in indexes}))
        assert short_ways == [False, True, True]
        assert core.log("visits").log_end_offset == 3
    finally:
        core.close()


@pytest.mark.parametrize("version", [5, 8, 9, 12, 13])
@pytest.mark.parametrize(
    "frame",
    [
        lambda v: produce_frame(v, 1, {("visits", 0): one(1), ("visits", 99): one(2)}),
        lambda v: produce_frame(v, 1, {("visits", 0): one(1), ("visits", 1): b""}),
        lambda v: produce_frame(v, 1, {("visits", 0): one(1), ("visits", 1): one(2)}) + b"more",
        lambda v: produce_frame(v, 1, {("visits", 0): one(1), ("other", 0): one(2)}),
        lambda v: produce_frame(v, 1, {("visits", 0): None}),
        lambda v: produce_frame(v, 1, {("visits", 0): b""}),
        lambda v: produce_frame(v, 1, {("visits", 99): one(1)}),
        lambda v: produce_frame(v, 1, {("nowhere", 0): one(1)}),
        lambda v: produce_frame(v, 1, {("visits", 0): one(1)}, acks=2),
        lambda v: produce_frame(v, 1, {("nowhere", 0): one(1)}, acks=0),
        lambda v: produce_frame(v, 1, {("visits", 0): one(1)}) + b"more",
        lambda v: produce_frame(v, 1, {("visits", 0): one(1)})[:-1],
    ],
    ids=[
        "partitions, one missing",
        "partitions, one empty",
        "partitions, more bytes",
        "topics",
        "null",
        "empty",
        "no partition",
        "no topic",
        "wrong acks",
        "acks 0 fails",
        "more bytes",
        "cut",
    ],
)
def test_what_does_not_fit_takes_the_ordinary_way(
    pair: Pair, short_ways: list[bool], version: int, frame: Callable[[int], bytes]
) -> None:
    pair.ask(produce_frame(version, 0, {("visits", 0): one(0)}))
    for _ in range(2):
        pair.ask(frame(version))

    assert True not in short_ways
    pair.check_logs()


def some(version: int, number: int, indexes: Sequence[int], *, acks: int = 1) -> bytes:
    """A request for several partitions of one topic."""
    return produce_frame(version, number, {("visits", index): one(number) for index in indexes}, acks=acks)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("acks", [1, -1, 0])
def test_any_partitions_of_a_topic_take_the_short_way_together(
    pair: Pair, short_ways: list[bool], version: int, acks: int
) -> None:
    for number, indexes in enumerate([(0, 1), (1, 0), (2, 0, 1), (1, 2)]):
        answer = pair.ask(some(version, number, indexes, acks=acks))
        assert (answer[4:8] if acks else number.to_bytes(4, "big")) == number.to_bytes(4, "big")

    assert short_ways.count(True) == 3
    pair.check_logs()


@pytest.mark.parametrize("version", [5, 8, 9, 13])
def test_where_one_batch_is_refused_the_others_are_appended_once(
    pair: Pair, short_ways: list[bool], version: int
) -> None:
    for number in range(2):
        pair.ask(some(version, number, (0, 1, 2)))
    broken = bytearray(one(2))
    broken[-1] ^= 1
    places = [("visits", 2), ("visits", 0), ("visits", 1)]
    batches = [one(2), bytes(broken), one(2)]
    answer = pair.ask(produce_frame(version, 2, dict(zip(places, batches, strict=True))))

    assert short_ways[-1] is False
    _, position = decode_response_header(0, version, answer[4:])
    response = decode(ProduceResponse, version, memoryview(answer)[4 + position :])
    found = [(part.error_code, part.base_offset) for part in response.responses[0].partition_responses]
    assert found == [(ErrorCode.NONE, 2), (ErrorCode.CORRUPT_MESSAGE, -1), (ErrorCode.NONE, 2)]
    pair.ask(some(version, 3, (0, 1, 2)))
    assert short_ways[-1] is True
    pair.check_logs()


def test_a_connection_that_is_closed_while_a_batch_is_refused_has_the_others_judged_once(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(2):
        pair.ask(some(9, number, (0, 1)))
    broken = bytearray(one(2))
    broken[-1] ^= 1
    run = PreparedProduces.run

    def closed_behind(self: PreparedProduces, frame: memoryview, cells: ThreadCells, may_wait: bool) -> Any:
        answer = run(self, frame, cells, may_wait)
        if may_wait:
            pair.short.stage.thread.close_connection(pair.short.connection)
        return answer

    monkeypatch.setattr(PreparedProduces, "run", closed_behind)
    pair.short.ask(produce_frame(9, 2, {("visits", 0): one(2), ("visits", 1): bytes(broken)}))

    assert pair.short.socket.closed
    assert pair.short.log("visits").log_end_offset == 3
    assert pair.short.stage.metrics.topics()[1]["visits"].failed_produce_requests == 1


def test_a_closed_connection_knows_no_shapes(pair: Pair, short_ways: list[bool]) -> None:
    frames = [some(9, 0, (0, 1)), some(9, 1, (0,))]
    for frame in frames * 2:
        pair.ask(frame)
    assert short_ways[-2:] == [True, True]
    prepared = pair.short.connection.session.prepared[0]

    pair.short.stage.thread.close_connection(pair.short.connection)

    for frame in frames:
        assert prepared.run(memoryview(bytearray(frame)), pair.short.stage.cells, True) is None


@pytest.mark.parametrize("version", [8, 9, 13])
def test_broken_records_are_refused_as_by_the_ordinary_way(pair: Pair, short_ways: list[bool], version: int) -> None:
    pair.ask(produce_frame(version, 0, {("visits", 0): one(0)}))
    broken = bytearray(one(1))
    broken[-1] ^= 1
    answer = pair.ask(produce_frame(version, 1, {("visits", 0): bytes(broken)}))
    assert partition_answer(version, answer).error_code == ErrorCode.CORRUPT_MESSAGE

    answer = pair.ask(produce_frame(version, 2, {("visits", 0): one(2)}))

    assert partition_answer(version, answer).base_offset == 1
    assert (short_ways.count(True), short_ways[-1]) == (1, True)


def test_a_size_written_longer_than_it_must_be_is_read_alike(pair: Pair) -> None:
    """Where the records' size, 0x80|n 0x00 instead of n, begins must not be guessed from its shortest form."""
    batch = bytes(batch_of(b"", key=None))
    plain = produce_frame(9, 0, {("visits", 0): batch})
    position = plain.index(batch) - 1
    assert plain[position] == len(batch) + 1 < 0x80
    front, size, rest = plain[:position], plain[position], plain[position + 1 :]
    padded = front + bytes([0x80 | size, 0]) + rest
    lying = front + bytes([0x80 | size, size]) + rest
    for frame in (padded, padded, lying, padded, plain):
        pair.ask(frame)

    pair.check_logs()


def test_shapes_outlive_other_partitions_and_no_partition_of_their_own(pair: Pair, short_ways: list[bool]) -> None:
    frame = produce_frame(9, 0, {("visits", 0): one(0)})
    pair.ask(frame)
    for core in pair.both:
        core.create("late")
    pair.ask(frame)
    assert short_ways == [True]

    for core in pair.both:
        core.replace("visits")
    for _ in range(2):
        pair.ask(frame)

    assert short_ways == [True, False, False, True], "by neither thread until it is learnt again"
    pair.check_logs()


def test_where_there_are_more_replicas_acks_all_waits_on_the_short_way(pair: Pair, short_ways: list[bool]) -> None:
    frame = produce_frame(9, 0, {("visits", 0): one(0)}, acks=-1)
    for _ in range(2):
        assert pair.ask(frame)
    for core in pair.both:
        core.create("visits", 3, leader_epoch=1, isr=(1, 2))

    assert pair.ask(frame) == b""

    assert short_ways.count(True) == 2
    assert len(pair.short.connection.answers.slots) == 1


@pytest.mark.parametrize("version", VERSIONS)
def test_frames_changed_at_random_get_the_same_answers(pair: Pair, version: int) -> None:
    rng = random.Random(version)
    for number in range(120):
        good = produce_frame(
            version, number, {("visits", rng.randrange(3)): one(number)}, acks=rng.choice([1, 1, -1, 0])
        )
        pair.ask(good)
        changed = bytearray(good)
        front = len(good) - len(one(number))
        for _ in range(rng.choice([1, 1, 2, 5])):
            match rng.randrange(4):
                case 0:
                    changed[rng.randrange(4, front)] = rng.randrange(256)
                case 1:
                    changed[rng.randrange(front, len(changed))] ^= 1 << rng.randrange(8)
                case 2:
                    del changed[-rng.randrange(1, 8) :]
                case 3:
                    changed.insert(rng.randrange(front - 8, len(changed)), rng.randrange(256))
        pair.ask(bytes(changed))
        if number % 10 == 0:
            pair.check_logs()
    pair.check_logs()


@pytest.mark.parametrize("version", VERSIONS)
def test_frames_of_several_partitions_changed_at_random_get_the_same_answers(pair: Pair, version: int) -> None:
    rng = random.Random(version)
    for number in range(120):
        indexes = rng.sample(range(3), rng.choice([2, 3]))
        good = some(version, number, indexes, acks=rng.choice([1, 1, -1, 0]))
        pair.ask(good)
        changed = bytearray(good)
        for _ in range(rng.choice([1, 1, 2])):
            position = rng.randrange(4, len(changed))
            match rng.randrange(3):
                case 0:
                    changed[position] = rng.randrange(256)
                case 1:
                    del changed[position]
                case 2:
                    changed.insert(position, rng.randrange(256))
        pair.ask(bytes(changed))
    pair.check_logs()
