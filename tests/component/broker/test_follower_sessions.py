"""A leader's session with a follower: what has news is read, the rest costs nothing, and no news is missed."""

import itertools
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from kavka.broker.partitions import follower_fetch_session
from kavka.broker.partitions.log_reading import Reading
from kavka.broker.partitions.session_news import REFRESH_MS
from kavka.broker.replication.throttle import ReplicationThrottle
from kavka.protocol.codec import decode, encode
from kavka.protocol.errors import ErrorCode
from kavka.protocol.headers import encode_request_header
from kavka.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from tests.support.broker_core import NOW_MS, BrokerCore
from tests.support.broker_handlers import topic_id_of
from tests.support.function_calls import calls_of
from tests.support.partition_logs import Clock, batch_of

TOPIC, ME, FOLLOWER, VERSION = "visits", 1, 2, 17

NewCore: TypeAlias = Callable[..., BrokerCore]


class Follower:
    """A follower of broker 1's partitions of `visits`, as its frames are."""

    def __init__(self, core: BrokerCore, partitions: int, isr: tuple[int, ...] = (ME, FOLLOWER)) -> None:
        """The leader does not look around by itself, however slow the machine is."""
        self.core = core
        core.replicas.replication.lag_time_max_ms = 1 << 42
        core.create(TOPIC, partitions, isr=isr, replicas=(ME, FOLLOWER))
        self.offsets = dict.fromkeys(range(partitions), 0)
        self.session_id = 0
        self.epoch = 0
        self.leader_epoch = 0
        self._asked = 0
        self._named = set(self.offsets)

    def send(self, *, max_wait_ms: int = 0, forget: tuple[int, ...] = (), full: bool = False) -> FetchResponse | None:
        """Ask for what has changed; None while the leader waits for more."""
        if full:
            self.epoch, self._named = 0, set(self.offsets)
        self._asked += 1
        named, self._named = self._named, set()
        topic = FetchTopic(
            topic_id=topic_id_of(TOPIC),
            partitions=[
                FetchPartition(
                    partition=index,
                    current_leader_epoch=self.leader_epoch,
                    fetch_offset=self.offsets[index],
                    partition_max_bytes=1 << 20,
                )
                for index in sorted(named)
            ],
        )
        request = FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            session_id=self.session_id,
            session_epoch=self.epoch,
            replica_state=ReplicaState(replica_id=FOLLOWER, replica_epoch=1),
            topics=[topic] if named else [],
            forgotten_topics_data=[ForgottenTopic(topic_id=topic_id_of(TOPIC), partitions=list(forget))]
            if forget
            else [],
        )
        frame = encode_request_header(1, VERSION, self._asked, "follower") + encode(request, VERSION)
        return self._take(self.core.ask(frame))

    def waited(self, change: Callable[[], object]) -> FetchResponse | None:
        """What `change` brings a fetch that waits; None if it goes on to wait."""
        before = len(self.core.socket.taken)
        change()
        self.core.stage.settle()
        return self._take(bytes(self.core.socket.taken[before:]))

    def _take(self, taken: bytes) -> FetchResponse | None:
        if not taken:
            return None
        answer: FetchResponse = decode(FetchResponse, VERSION, memoryview(taken)[9:])
        if answer.error_code == 0:
            self.session_id = answer.session_id
            self.epoch += 1
        return answer

    def sync(self) -> None:
        """Open a session, and let it find that there is nothing to tell."""
        for _ in range(3):
            self.send(full=self.epoch == 0)

    def append(self, index: int, *values: bytes) -> None:
        partition = self.core.replicas.partitions[TOPIC, index]
        partition.append(memoryview(batch_of(*values or (b"v",))), 1, 9, NOW_MS)
        partition.appended()

    def got(self, index: int, records: int = 1) -> None:
        """It has these, and will say so."""
        self.offsets[index] += records
        self._named.add(index)


def shown(answer: FetchResponse | None) -> dict[int, int]:
    """Index -> bytes."""
    assert answer is not None
    assert answer.error_code == 0
    return {part.partition_index: len(part.records or b"") for each in answer.responses for part in each.partitions}


@pytest.fixture(autouse=True)
def _undisturbed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower_fetch_session, "REFRESH_MS", 1 << 40)


@pytest.fixture
def new_core(tmp_path: Path) -> Iterator[NewCore]:
    """Makes a broker's core in a directory of its own, and ends it behind the test."""
    with ExitStack() as cores:

        def new(**options: Any) -> BrokerCore:
            core = BrokerCore(tmp_path / str(next(numbers)), **options)
            cores.callback(core.close)
            return core

        numbers = itertools.count()
        yield new


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Indexes of the partitions that were read."""
    read: list[int] = []
    ordinary = Reading.read

    def counting(self: Reading, *arguments: Any, **options: Any) -> None:
        read.append(self.asked.partition)
        ordinary(self, *arguments, **options)

    monkeypatch.setattr(Reading, "read", counting)
    return read


def test_only_partitions_with_news_are_read(new_core: NewCore, reads: list[int]) -> None:
    follower = Follower(new_core(), 5)
    follower.sync()
    reads.clear()

    assert shown(follower.send()) == {}
    assert reads == []
    follower.append(3)
    answer = shown(follower.send())

    assert set(answer) == {3}
    assert answer[3] > 0
    assert reads == [3]


def test_data_that_the_follower_has_not_taken_comes_again(new_core: NewCore) -> None:
    follower = Follower(new_core(), 2)
    follower.sync()
    follower.append(1)

    first, second = shown(follower.send()), shown(follower.send())

    assert first == second
    assert set(first) == {1}


def test_what_is_committed_is_told_once(new_core: NewCore, reads: list[int]) -> None:
    follower = Follower(new_core(), 2)
    follower.sync()
    follower.append(1)
    follower.send()
    follower.got(1)

    assert set(shown(follower.send())) <= {1}
    answers = [shown(follower.send()) for _ in range(2)]

    assert follower.core.log(TOPIC, 1).high_watermark == 1
    assert answers[-1] == {}
    reads.clear()
    follower.send()
    assert reads == []


def test_a_waiting_fetch_ends_with_data_and_with_a_new_role_but_not_with_a_high_watermark(new_core: NewCore) -> None:
    follower = Follower(new_core(), 3)
    follower.append(0)
    follower.sync()
    follower.got(0)
    follower.send()
    follower.sync()
    partition = follower.core.replicas.partitions[TOPIC, 2]

    assert follower.send(max_wait_ms=60_000) is None
    assert follower.waited(partition.wake_all) is None
    assert set(shown(follower.waited(lambda: follower.append(2)))) == {2}
    follower.got(2)
    follower.send()
    follower.sync()
    assert follower.send(max_wait_ms=60_000) is None
    answer = follower.waited(lambda: follower.core.lose(TOPIC, FOLLOWER, ("follower.example", 1), leader_epoch=1))
    assert answer is not None
    codes = {part.partition_index: part.error_code for each in answer.responses for part in each.partitions}
    assert codes == {0: ErrorCode.FENCED_LEADER_EPOCH} or codes == {0: ErrorCode.NOT_LEADER_OR_FOLLOWER}


def test_a_waiting_fetch_is_answered_when_its_time_is_up_with_what_was_committed_meanwhile(new_core: NewCore) -> None:
    follower = Follower(new_core(), 2)
    follower.sync()
    follower.core.log(TOPIC, 1)
    follower.append(1)
    follower.send()
    follower.got(1)
    assert follower.send(max_wait_ms=60_000) is None or follower.core.log(TOPIC, 1).high_watermark == 1

    answer = follower.waited(follower.core.purgatory.expire_all) or follower.send()

    assert answer is not None
    assert follower.core.log(TOPIC, 1).high_watermark == 1


def test_a_forgotten_partition_is_watched_no_more(new_core: NewCore) -> None:
    follower = Follower(new_core(), 2)
    follower.sync()

    follower.send(forget=(1,))
    follower.append(1)

    assert shown(follower.send()) == {}
    assert not follower.core.replicas.partitions[TOPIC, 1].sessions


def test_a_new_session_takes_the_lost_ones_place(new_core: NewCore) -> None:
    core = new_core()
    lost, found = Follower(core, 2), Follower(core, 2)
    lost.sync()
    found.sync()
    found.append(1)

    assert len(core.replicas.partitions[TOPIC, 1].sessions) == 1
    assert set(shown(found.send())) == {1}
    # However late, it hears of all.
    assert set(shown(lost.send())) == {1}


def test_a_session_that_ends_watches_nothing(new_core: NewCore) -> None:
    follower = Follower(new_core(), 2)
    follower.sync()

    follower.send(forget=(0, 1))

    partitions = follower.core.replicas.partitions
    assert [len(partitions[TOPIC, index].sessions) for index in range(2)] == [0, 0]
    assert follower.core.services.fetch_sessions.size == 0


def test_what_nobody_tells_of_is_found_every_now_and_then(new_core: NewCore, monkeypatch: pytest.MonkeyPatch) -> None:
    follower = Follower(new_core(), 3)
    now_ms = [1 << 60]
    monkeypatch.setattr(follower_fetch_session, "REFRESH_MS", REFRESH_MS)
    monkeypatch.setattr(follower.core.replicas.replication, "monotonic_ms", lambda: now_ms[0])
    for index in range(3):
        follower.append(index)
    follower.send(full=True)
    for index in range(3):
        follower.got(index)
    follower.send()
    follower.sync()
    partition = follower.core.replicas.partitions[TOPIC, 1]
    assert follower.core.log(TOPIC, 1).high_watermark == 1
    follower.core.log(TOPIC, 1).delete_records_before(1)

    assert shown(follower.send()) == {}
    now_ms[0] += REFRESH_MS
    before_ms = partition.followers[FOLLOWER].caught_up_ms
    follower.send()

    assert set(shown(follower.send())) == {1}
    idle = follower.core.replicas.partitions[TOPIC, 2]
    assert idle.followers[FOLLOWER].caught_up_ms == now_ms[0] > before_ms


def test_who_could_not_join_the_isr_at_once_joins_later(new_core: NewCore, monkeypatch: pytest.MonkeyPatch) -> None:
    follower = Follower(new_core(), 1, isr=(ME,))
    now_ms, proposed, may_join = [1 << 60], [], [False]
    replication = follower.core.replicas.replication
    monkeypatch.setattr(follower_fetch_session, "REFRESH_MS", REFRESH_MS)
    monkeypatch.setattr(replication, "monotonic_ms", lambda: now_ms[0])
    monkeypatch.setattr(replication, "is_eligible", lambda *_: may_join[0])
    monkeypatch.setattr(replication, "propose", lambda _, pending: proposed.append(pending.isr))
    follower.sync()
    may_join[0] = True
    for _ in range(3):
        follower.send(max_wait_ms=60_000)
        follower.waited(follower.core.purgatory.expire_all)
        now_ms[0] += REFRESH_MS
    assert proposed == [(ME, FOLLOWER)]


def test_idle_partitions_cost_a_fetch_nothing(new_core: NewCore) -> None:
    costs = []
    for partitions in (5, 120):
        follower = Follower(new_core(), partitions)
        follower.sync()
        follower.send()
        follower.append(1)
        costs.append(calls_of(follower.send))
    assert costs[0] == costs[1]


@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_missed_whatever_comes_between(new_core: NewCore, seed: int) -> None:
    chance = random.Random(seed)
    follower = Follower(new_core(), 4)
    appended = dict.fromkeys(range(4), 0)
    for _ in range(150):
        what = chance.random()
        index = chance.randrange(4)
        if what < 0.5:
            follower.append(index)
            appended[index] += 1
        elif what < 0.55:
            follower.send(full=True)
        else:
            for got in shown(follower.send(full=follower.epoch == 0)):
                if chance.random() < 0.8:
                    follower.offsets[got] = follower.core.log(TOPIC, got).log_end_offset
                    follower._named.add(got)
    for _ in range(4):
        for got, size_bytes in shown(follower.send(full=follower.epoch == 0)).items():
            if size_bytes:
                follower.offsets[got] = follower.core.log(TOPIC, got).log_end_offset
                follower._named.add(got)

    assert follower.offsets == appended
    assert all(follower.core.log(TOPIC, index).high_watermark == appended[index] for index in range(4))
    assert shown(follower.send()) == {}


def test_a_throttled_follower_that_is_behind_waits_until_the_rate_is_low_again(new_core: NewCore) -> None:
    clock = Clock()
    core = new_core(topics={TOPIC: {"leader.replication.throttled.replicas": f"0:{ME}"}})
    follower = Follower(core, 2)
    core.replicas.leader_throttle = throttle = ReplicationThrottle(
        ME,
        lambda: 100,
        lambda config: config.leader_replication_throttled_replicas,
        window_num=2,
        window_size_ms=1000,
        now_ms=clock,
    )
    core.create(TOPIC, 2, isr=(ME,), replicas=(ME, FOLLOWER), leader_epoch=1)
    follower.leader_epoch = 1
    follower.send(full=True)
    follower.sync()
    for index in range(2):
        follower.append(index, b"v" * 300)

    first = shown(follower.send())
    assert all(first[index] > 300 for index in range(2))
    assert throttle.is_exceeded()
    assert {index: size > 0 for index, size in shown(follower.send()).items() if size} == {1: True}
    follower.got(1)
    follower.send()
    assert follower.send(max_wait_ms=60_000) is None
    assert follower.waited(lambda: follower.append(0)) is None
    clock.ms += 2000
    assert shown(follower.waited(lambda: follower.append(0)))[0] > 300
