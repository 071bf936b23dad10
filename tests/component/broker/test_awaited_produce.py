"""acks=all where there are other replicas: the short way gives the answers of the ordinary one, at the same moments."""

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from kavka.broker.requests.prepared_produce import PreparedProduces
from kavka.protocol.codec import decode
from kavka.protocol.errors import ErrorCode
from kavka.protocol.headers import decode_response_header
from kavka.protocol.messages.produce import PartitionProduceResponse, ProduceResponse
from tests.support.broker_core import BrokerCore, produce_frame
from tests.support.partition_logs import batch_of
from tests.support.prepared_ways import watch_short_ways

TOPIC, PARTITIONS, REPLICAS = "visits", 3, (1, 2, 3)
VERSIONS = (5, 8, 9, 11, 13)
ELSEWHERE = ("other.example", 9092)


class Pair:
    """Two leaders that are asked the same: one that prepares, and one that takes the ordinary way."""

    def __init__(self, directory: Path, config: dict[str, str]) -> None:
        topics = {TOPIC: {"min.insync.replicas": "2", **config}}
        self.short = BrokerCore(directory / "short", inline=True, topics=topics)
        self.ordinary = BrokerCore(directory / "ordinary", prepares=False, topics=topics)
        self.both = (self.short, self.ordinary)
        self.epoch = -1
        self.lead()

    def lead(self, isr: tuple[int, ...] = REPLICAS) -> None:
        self.epoch += 1
        for core in self.both:
            core.create(TOPIC, PARTITIONS, leader_epoch=self.epoch, isr=isr, replicas=REPLICAS)

    def shrink(self, isr: tuple[int, ...]) -> bytes:
        return self.each(lambda core: core.shrink_isr(TOPIC, isr))

    def lose(self) -> None:
        self.epoch += 1
        for core in self.both:
            core.lose(TOPIC, 2, ELSEWHERE, leader_epoch=self.epoch)

    def ask(self, *frames: bytes) -> bytes:
        answer = self.short.ask(*frames)
        assert answer == self.ordinary.ask(*frames)
        assert self.short.socket.closed == self.ordinary.socket.closed
        return answer

    def each(self, change: Callable[[BrokerCore], object]) -> bytes:
        """What the client gets when that has happened."""
        got = []
        for core in self.both:
            before = len(core.socket.taken)
            change(core)
            core.stage.settle()
            got.append(bytes(core.socket.taken[before:]))
        assert got[0] == got[1]
        return got[0]

    def replicate(self, *replicas: int, index: int = 0, offset: int | None = None) -> bytes:
        def fetch(core: BrokerCore) -> None:
            end = core.log(TOPIC, index).log_end_offset
            for each in replicas:
                core.replicate(TOPIC, each, end if offset is None else min(offset, end), index)

        return self.each(fetch)

    def check(self) -> None:
        for index in range(PARTITIONS):
            assert self.short.log_bytes(TOPIC, index) == self.ordinary.log_bytes(TOPIC, index)
        short, ordinary = (core.stage.metrics.topics()[0] for core in self.both)
        for counter in ("produce_requests", "failed_produce_requests", "bytes_in", "messages_in"):
            assert getattr(short, counter) == getattr(ordinary, counter), counter
        counted = [core.stage.metrics.requests().get(0, []) for core in self.both]
        assert sum(each.count for each in counted[0]) + len(self.short.stage.answered) == sum(
            each.count for each in counted[1]
        ) + len(self.ordinary.stage.answered)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Pair]]:
    made: list[Pair] = []

    def new(**config: str) -> Pair:
        made.append(Pair(tmp_path, {name.replace("_", "."): value for name, value in config.items()}))
        return made[-1]

    yield new
    for pair in made:
        for core in pair.both:
            core.close()


@pytest.fixture
def pair(make: Callable[..., Pair]) -> Pair:
    return make()


@pytest.fixture
def short_ways(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    return watch_short_ways(monkeypatch, PreparedProduces)


def one(number: int) -> bytes:
    return bytes(batch_of(b"value %d" % number, key=b"k"))


def some(version: int, number: int, indexes: Sequence[int] = (0,), acks: int = -1) -> bytes:
    return produce_frame(version, number, {(TOPIC, index): one(number) for index in indexes}, acks=acks)


def answers(version: int, taken: bytes) -> list[tuple[int, list[PartitionProduceResponse]]]:
    """(correlation id, partitions) of each answer."""
    found = []
    while taken:
        size = int.from_bytes(taken[:4], "big")
        frame, taken = taken[4 : 4 + size], taken[4 + size :]
        correlation_id, position = decode_response_header(0, version, frame)
        response = decode(ProduceResponse, version, memoryview(frame)[position:])
        found.append((correlation_id, response.responses[0].partition_responses))
    return found


def codes(version: int, taken: bytes) -> list[int]:
    return [part.error_code for _, parts in answers(version, taken) for part in parts]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("indexes", [(0,), (0, 2)])
def test_requests_wait_on_the_short_way_and_the_high_watermark_answers_from_the_head(
    pair: Pair, short_ways: list[bool], version: int, indexes: tuple[int, ...]
) -> None:
    for number in range(4):
        assert pair.ask(some(version, number, indexes)) == b""
    assert short_ways.count(True) == 3, "the first is learnt from while it waits"

    for index in indexes:
        assert pair.replicate(2, index=index) == b""
        first = pair.replicate(3, index=index, offset=2)
    assert [found for found, _ in answers(version, first)] == [0, 1]
    for index in indexes:
        rest = pair.replicate(3, index=index)

    assert [(found, parts[0].base_offset) for found, parts in answers(version, rest)] == [(2, 2), (3, 3)]
    assert [core.purgatory.size for core in pair.both] == [0, 0]
    pair.check()


def test_an_answer_keeps_its_turn_behind_those_that_wait(pair: Pair, short_ways: list[bool]) -> None:
    for number, acks in enumerate([1, -1, 1, 0, -1, 1]):
        pair.ask(some(9, number, acks=acks))
    assert short_ways[-2:] == [True, True]

    assert [found for found, _ in answers(9, pair.replicate(2, 3))] == [1, 2, 4, 5]
    pair.check()


def test_answers_of_one_connection_are_written_at_once(pair: Pair) -> None:
    for number in range(5):
        pair.ask(some(9, number))
    writes = len(pair.short.socket.calls)

    pair.replicate(2, 3)

    # The first one took the ordinary way, and waited by itself.
    assert len(pair.short.socket.calls) - writes <= 2


def test_what_is_late_gets_an_error_and_the_rest_is_answered(pair: Pair, short_ways: list[bool]) -> None:
    for number in range(3):
        pair.ask(some(9, number))
    late = pair.each(lambda core: core.purgatory.expire_all())
    assert codes(9, late) == [ErrorCode.REQUEST_TIMED_OUT] * 3
    pair.ask(some(9, 3))

    assert codes(9, pair.replicate(2, 3)) == [ErrorCode.NONE]
    assert short_ways.count(True) == 3
    pair.check()


def test_a_leader_that_is_deposed_answers_all_at_once(pair: Pair, short_ways: list[bool]) -> None:
    for number in range(3):
        pair.ask(some(9, number))
    pair.epoch += 1

    told = pair.each(lambda core: core.lose(TOPIC, 2, ELSEWHERE, leader_epoch=pair.epoch))

    assert codes(9, told) == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 3
    assert codes(9, pair.ask(some(9, 3))) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    pair.lead()
    pair.ask(some(9, 4))
    pair.ask(some(9, 5))
    assert short_ways[-1]
    pair.check()


def test_a_leader_that_stays_under_another_epoch_goes_on_waiting(pair: Pair) -> None:
    for number in range(3):
        pair.ask(some(9, number))
    assert pair.each(lambda core: core.create(TOPIC, PARTITIONS, leader_epoch=1, isr=(1, 2), replicas=REPLICAS)) == b""

    assert codes(9, pair.replicate(2)) == [ErrorCode.NONE] * 3
    pair.check()


def test_too_few_replicas_are_told_of_before_the_append(pair: Pair, short_ways: list[bool]) -> None:
    for number in range(3):
        pair.ask(some(9, number))
    pair.replicate(2)
    pair.shrink((1, 2))
    pair.ask(some(9, 3))
    assert codes(9, pair.replicate(2)) == [ErrorCode.NONE] * 4
    pair.shrink((1,))

    assert codes(9, pair.ask(some(9, 4))) == [ErrorCode.NOT_ENOUGH_REPLICAS]
    assert short_ways[-1] is False
    pair.check()


def test_copies_that_were_too_few_in_the_end_are_told_of(pair: Pair) -> None:
    for number in range(2):
        pair.ask(some(9, number))

    def commit(core: BrokerCore) -> None:
        partition = core.replicas.partitions[TOPIC, 0]
        partition.role = partition.role._replace(isr=(1,), maximal_isr=(1,))
        core.log(TOPIC).advance_high_watermark(2)
        partition.wake_all()

    assert codes(9, pair.each(commit)) == [ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND] * 2


def test_a_deleted_topic_answers_who_waits(pair: Pair) -> None:
    for number in range(3):
        pair.ask(some(9, number))

    assert codes(9, pair.each(lambda core: core.replace(TOPIC))) == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 3


def test_the_time_of_the_append_is_answered_where_topics_ask_for_it(make: Callable[..., Pair]) -> None:
    pair = make(message_timestamp_type="LogAppendTime")
    for number in range(3):
        pair.ask(some(9, number))

    times = {parts[0].log_append_time_ms for _, parts in answers(9, pair.replicate(2, 3))}
    assert len(times) == 1
    assert -1 not in times
    pair.check()


def test_a_client_that_leaves_is_answered_no_more(pair: Pair) -> None:
    for number in range(3):
        pair.ask(some(9, number))
    for core in pair.both:
        core.stage.thread.close_connection(core.connection)

    assert pair.replicate(2, 3) == b""
    assert pair.short.purgatory.size == 0


def test_orders_for_other_partitions_leave_the_shapes_as_they_are(pair: Pair, short_ways: list[bool]) -> None:
    for index in (0, 1, 0, 1):
        pair.ask(some(9, 0, (index,)))
    for number in range(3):
        pair.lose()
        for core in pair.both:
            core.create(f"late-{number}")
        pair.ask(some(9, 1, (0,)))
        del short_ways[:]
        pair.ask(some(9, 1, (1,)))
        assert short_ways == [True]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("seed", range(4))
def test_whatever_happens_both_ways_answer_the_same(pair: Pair, version: int, seed: int) -> None:
    rng = random.Random(100 * version + seed)
    leads = True
    for number in range(250):
        match rng.choice(["one", "one", "one", "some", "some", "burst", "broken", "fetch", "fetch", "fetch", "rare"]):
            case "one":
                pair.ask(some(version, number, (rng.randrange(3),), rng.choice([-1, -1, -1, 1, 0])))
            case "some":
                pair.ask(some(version, number, rng.sample(range(3), 2), rng.choice([-1, -1, 1, 0])))
            case "burst":
                pair.ask(*[some(version, number + each, (rng.randrange(3),)) for each in range(rng.randrange(2, 30))])
            case "broken":
                frame = bytearray(some(version, number, rng.sample(range(3), rng.choice([1, 2]))))
                frame[-5] ^= 1
                pair.ask(bytes(frame))
            case "fetch":
                index = rng.randrange(3)
                if leads or index:
                    committed = pair.short.log(TOPIC, index).high_watermark
                    pair.replicate(rng.choice([2, 3]), index=index, offset=committed + rng.randrange(8))
            case _:
                match rng.randrange(6):
                    case 0:
                        pair.each(lambda core: core.purgatory.expire_all())
                    case 1 if leads:
                        isr = rng.choice([(1,), (1, 2), (1, 3), REPLICAS])
                        pair.shrink(isr)
                    case 2 if leads:
                        pair.lose()
                        leads = False
                    case 3:
                        pair.each(lambda core: core.create("late", leader_epoch=pair.epoch))
                    case 4 if rng.random() < 0.2:
                        pair.each(lambda core: core.replace(TOPIC))
                        pair.epoch, leads = 0, True
                        pair.lead()
                    case _:
                        pair.lead(rng.choice([(1, 2), REPLICAS]))
                        leads = True
        assert pair.short.socket.taken == pair.ordinary.socket.taken
    pair.check()
