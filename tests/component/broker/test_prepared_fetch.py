"""The short way of followers' fetches: the same answers and the same progress as by the ordinary way."""

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kavka.broker.metrics.registry import ThreadCells
from kavka.broker.partitions import follower_fetch_session
from kavka.broker.requests.prepared_fetch import PreparedFetches
from kavka.protocol.codec import encode
from kavka.protocol.errors import ErrorCode
from kavka.protocol.headers import encode_request_header
from kavka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic, ReplicaState
from tests.support.broker_core import NOW_MS, BrokerCore
from tests.support.broker_handlers import topic_id_of
from tests.support.partition_logs import batch_of

TOPICS, PARTITIONS = ("visits", "orders"), 3
ME, FOLLOWER, OTHER = 1, 2, 3
REPLICAS = (ME, FOLLOWER, OTHER)
SESSION_ID = slice(15, 19)
Place = tuple[str, int]


class Side:
    """One leader, and what its follower knows of their session."""

    def __init__(self, core: BrokerCore) -> None:
        self.core = core
        self.session_id = 0
        self.seen = 0

    def new(self) -> list[bytes]:
        """Answers since the last look, without their sessions' ids, which are drawn by chance."""
        taken = bytes(self.core.socket.taken[self.seen :])
        self.seen += len(taken)
        found = []
        while taken:
            size = int.from_bytes(taken[:4], "big") + 4
            answer, taken = bytearray(taken[:size]), taken[size:]
            self.session_id = int.from_bytes(answer[SESSION_ID], "big") or self.session_id
            answer[SESSION_ID] = bytes(4)
            found.append(bytes(answer))
        return found


class Pair:
    """Two leaders that are asked the same by one follower: one that prepares, and one that takes the ordinary way."""

    def __init__(self, directory: Path, version: int) -> None:
        self.version = version
        self.sides = [
            Side(BrokerCore(directory / "short", inline=True)),
            Side(BrokerCore(directory / "ordinary", prepares=False)),
        ]
        self.leader_epoch = dict.fromkeys(TOPICS, -1)
        self.offsets: dict[Place, int] = {(topic, index): 0 for topic in TOPICS for index in range(PARTITIONS)}
        self.changed: dict[Place, None] = dict.fromkeys(self.offsets)
        self.forgotten: list[Place] = []
        self.epoch = self.asked = 0
        self.waits = False
        for side in self.sides:
            side.core.replicas.replication.lag_time_max_ms = 1 << 42
        for topic in TOPICS:
            self.lead(topic)

    def lead(self, topic: str) -> list[bytes]:
        self.leader_epoch[topic] += 1
        epoch = self.leader_epoch[topic]
        self.changed.update({place: None for place in self.offsets if place[0] == topic})
        return self.each(lambda core: core.create(topic, PARTITIONS, leader_epoch=epoch, isr=REPLICAS))

    def each(self, change: Callable[[BrokerCore], object]) -> list[bytes]:
        """What the follower gets when that has happened; the same of both."""
        got = []
        for side in self.sides:
            change(side.core)
            side.core.stage.settle()
            got.append(side.new())
        assert got[0] == got[1]
        if got[0]:
            self.waits = False
        return got[0]

    def fetch(self, max_wait_ms: int = 0) -> list[bytes]:
        self.asked += 1
        topics = [
            FetchTopic(
                topic_id=topic_id_of(topic),
                partitions=[
                    FetchPartition(
                        partition=place[1],
                        current_leader_epoch=self.leader_epoch[topic],
                        fetch_offset=self.offsets[place],
                        last_fetched_epoch=self.last_epoch(place),
                        partition_max_bytes=1 << 20,
                    )
                    for place in self.changed
                    if place[0] == topic
                ],
            )
            for topic in TOPICS
            if any(place[0] == topic for place in self.changed)
        ]
        forgotten = [ForgottenTopic(topic_id=topic_id_of(topic), partitions=[index]) for topic, index in self.forgotten]
        self.changed, self.forgotten = {}, []

        def ask(side: Side) -> list[bytes]:
            request = FetchRequest(
                max_wait_ms=max_wait_ms,
                min_bytes=1,
                session_id=side.session_id if self.epoch else 0,
                session_epoch=self.epoch,
                replica_state=ReplicaState(replica_id=FOLLOWER, replica_epoch=7),
                topics=topics,
                forgotten_topics_data=forgotten,
            )
            side.core.ask(encode_request_header(1, self.version, self.asked, "f") + encode(request, self.version))
            return side.new()

        short, ordinary = map(ask, self.sides)
        assert short == ordinary
        self.epoch += 1
        self.waits = not short
        return short

    def last_epoch(self, place: Place) -> int:
        """As a follower's log says that has what the leader's has."""
        log = self.sides[0].core.log(*place)
        offset = self.offsets[place]
        return log.epoch_for_offset(offset - 1) if 0 < offset <= log.log_end_offset else -1

    def append(self, place: Place, size: int = 10) -> list[bytes]:
        def append(core: BrokerCore) -> None:
            partition = core.replicas.partitions[place]
            partition.append(memoryview(batch_of(bytes(size))), 1, 9, NOW_MS)
            partition.appended()

        return self.each(append)

    def replicate(self, place: Place) -> list[bytes]:
        """The other follower has all."""
        end = self.sides[0].core.log(*place).log_end_offset
        return self.each(lambda core: core.replicate(place[0], OTHER, end, place[1]))

    def delete(self, place: Place) -> list[bytes]:
        """All that is committed goes."""
        committed = self.sides[0].core.log(*place).high_watermark
        return self.each(lambda core: core.log(*place).delete_records_before(committed))

    def has(self, place: Place, offset: int | None = None) -> None:
        """The follower has copied so much, and says so with its next fetch."""
        self.offsets[place] = self.sides[0].core.log(*place).log_end_offset if offset is None else offset
        self.changed[place] = None

    def check(self) -> None:
        for place in self.offsets:
            states = []
            for side in self.sides:
                partition = side.core.replicas.partitions[place]
                progress = partition.followers[FOLLOWER]
                states.append(
                    (partition.high_watermark, progress.end_offset, progress.log_start_offset, partition.role)
                )
            assert states[0] == states[1]
        metrics = [side.core.stage.metrics for side in self.sides]
        assert metrics[0].events() == metrics[1].events()
        counts = [each.topics()[0] for each in metrics]
        for counter in ("fetch_requests", "failed_fetch_requests", "bytes_out"):
            assert getattr(counts[0], counter) == getattr(counts[1], counter), counter


@pytest.fixture(params=[15, 17])
def pair(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pair]:
    monkeypatch.setattr(follower_fetch_session, "REFRESH_MS", 1 << 40)
    made = Pair(tmp_path, request.param)
    sockets = {number: socket for side in made.sides for number, socket in side.core.stage.loop.sockets.items()}

    def sendfile(out: int, source: int, position: int, size: int) -> int:
        return sockets[out].take(os.pread(source, size, position))

    monkeypatch.setattr(os, "sendfile", sendfile)
    yield made
    for side in made.sides:
        side.core.close()


@pytest.fixture
def short_ways(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    taken: list[bool] = []
    run = PreparedFetches.run

    def watched(self: PreparedFetches, frame: memoryview, cells: ThreadCells, may_wait: bool) -> object:
        answer = run(self, frame, cells, may_wait)
        taken.append(answer is not None)
        return answer

    monkeypatch.setattr(PreparedFetches, "run", watched)
    return taken


@pytest.fixture
def settled(pair: Pair, short_ways: list[bool]) -> Pair:
    """With a session, and a first fetch that waited."""
    for _ in range(3):
        pair.fetch()
    assert pair.fetch(500) == []
    assert pair.append(("visits", 0))
    del short_ways[:]
    return pair


def test_a_fetch_waits_and_gets_what_comes(settled: Pair, short_ways: list[bool]) -> None:
    for number in range(5):
        settled.has(("visits", number % 2))
        assert settled.fetch(500) == []
        (answer,) = settled.append(("visits", (number + 1) % 2), 10 + number)
        assert bytes(10 + number) in answer
        settled.check()

    assert short_ways == [True] * 5


def test_what_is_behind_is_answered_at_once(settled: Pair, short_ways: list[bool]) -> None:
    settled.append(("visits", 1))
    settled.append(("orders", 2))
    (answer,) = settled.fetch(500)

    assert answer.count(bytes(10)) >= 2
    assert short_ways == [True]


def test_large_answers_are_pieces_of_files(settled: Pair, short_ways: list[bool]) -> None:
    settled.has(("visits", 0))
    settled.fetch(500)
    (answer,) = settled.append(("visits", 0), 200_000)

    assert len(answer) > 200_000
    assert short_ways == [True]


def test_the_end_of_the_time_is_answered(settled: Pair, short_ways: list[bool]) -> None:
    settled.has(("visits", 0))
    assert settled.fetch(500) == []

    assert len(settled.each(lambda core: core.purgatory.expire_all())) == 1
    assert settled.fetch(500) == []
    assert short_ways == [True, True]


def test_a_high_watermark_is_told_with_the_next_answer_and_is_no_answer_by_itself(
    settled: Pair, short_ways: list[bool]
) -> None:
    settled.has(("visits", 0))
    assert settled.fetch(500) == []
    assert settled.each(lambda core: core.replicate("visits", OTHER, 1)) == []
    (answer,) = settled.append(("orders", 0))

    assert answer.count(topic_id_of("visits")) == answer.count(topic_id_of("orders")) == 1
    assert short_ways == [True]
    settled.check()


def test_other_epochs_offsets_and_topics_take_the_ordinary_way_or_the_same_answer(
    settled: Pair, short_ways: list[bool]
) -> None:
    settled.has(("visits", 0), 99)
    (answer,) = settled.fetch(500)
    assert ErrorCode.OFFSET_OUT_OF_RANGE.to_bytes(2, "big") in answer
    settled.has(("visits", 0))
    settled.leader_epoch["visits"] += 5
    assert len(settled.fetch(500)) == 1
    settled.leader_epoch["visits"] -= 5
    settled.has(("visits", 0))
    assert settled.fetch(500) == []
    settled.each(lambda core: core.purgatory.expire_all())
    settled.epoch += 1
    assert len(settled.fetch(500)) == 1
    assert short_ways == [True, True, True, False]


def test_a_client_that_leaves_a_waiting_fetch_leaves_nothing(settled: Pair) -> None:
    settled.has(("visits", 0))
    settled.fetch(500)
    core = settled.sides[0].core
    core.stage.thread.close_connection(core.connection)

    assert core.purgatory.size == 0
    session = next(iter(core.services.fetch_sessions._sessions.values()))
    assert not session.fresh_news.waiting  # type: ignore[attr-defined]  # a follower's


@pytest.mark.parametrize("seed", range(6))
def test_whatever_happens_both_ways_answer_the_same(settled: Pair, seed: int, short_ways: list[bool]) -> None:
    rng = random.Random(seed)
    places = list(settled.offsets)
    for _ in range(400):
        place = rng.choice(places)
        match rng.choice(["append", "append", "fetch", "fetch", "fetch", "other", "rare"]):
            case "append":
                settled.append(place, rng.choice([1, 100, 70_000]))
            case "fetch" if not settled.waits:
                for each in rng.sample(places, rng.choice([0, 1, 6, 6])):
                    end = settled.sides[0].core.log(*each).log_end_offset
                    settled.has(each, rng.choice([*[end] * 30, max(end - 1, 0), end + 1]))
                settled.fetch(rng.choice([0, *[500] * 9]))
            case "other":
                settled.replicate(place)
            case "rare":
                match rng.randrange(6):
                    case 0:
                        settled.lead(place[0])
                    case 1:
                        settled.each(lambda core: core.purgatory.expire_all())
                    case 2 if not settled.waits:
                        settled.forgotten.append(place)
                        settled.fetch()
                        settled.has(place)
                    case 3 if not settled.waits:
                        settled.epoch = 0
                        settled.changed = dict.fromkeys(places)
                        settled.fetch()
                    case 4:
                        settled.delete(place)
                    case _:
                        settled.each(lambda core: core.create("late"))
        settled.check()
    assert short_ways.count(True) > 50
