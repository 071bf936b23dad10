"""A user seeks, pauses and polls while the client's thread fetches: whatever the order of their steps, he is woken."""

import random
import threading
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from kavka.client.consumer import buffer, chunks, fetch_answers, fetcher, positions, subscription
from kavka.client.consumer.errors import RecordDeserializationError
from kavka.client.consumer.positions import Position
from kavka.client.consumer.stretches import Deserializers
from kavka.client.topic_partition import TopicPartition
from tests.component.client.consumer.simulated_cluster import SimulatedCluster
from tests.component.client.consumer.simulated_consumer import SimulatedConsumer
from tests.component.client.consumer.simulated_network import SimulatedNetwork
from tests.support.interleaving import Interleaving, StuckError, TurnLock

BIRDS = [TopicPartition("birds", number) for number in range(2)]
RECORDS = 24
TURNS_AT_MOST = 200_000
"""Far more than a fetch takes."""


class PatientLock(TurnLock):
    """A lock that somebody waits for who has a time limit: it never comes to that, unless nobody wakes him."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        for _ in range(TURNS_AT_MOST):
            if super().acquire(blocking=False):
                return True
            if not blocking:
                return False
            self._turns.pass_on()
        raise StuckError("nobody wakes who waits")


class TurnRLock:
    """As TurnLock, for one thread again and again."""

    def __init__(self, turns: Interleaving) -> None:
        self._lock = TurnLock(turns)
        self._owner: int | None = None
        self._depth = 0

    def __enter__(self) -> None:
        mine = threading.get_ident()
        if self._owner != mine:
            self._lock.acquire()
            self._owner = mine
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if not self._depth:
            self._owner = None
            self._lock.release()


class Race:
    """The two threads of a consumer over a simulated broker."""

    def __init__(self, seed: int, turns: Interleaving) -> None:
        self.dice = random.Random(seed)
        self.turns = turns
        self.cluster = SimulatedCluster(random.Random(seed), {"birds": len(BIRDS)})
        self.cluster.max_batch = 7
        self.network = SimulatedNetwork(self.cluster, 0.0)
        for partition in BIRDS:
            self.cluster.append(partition, RECORDS)
        self.is_woken = False
        self.is_over = False
        self.bad: set[bytes | None] = set()
        self.consumer = SimulatedConsumer(
            self.cluster, self.network, wake=self._wake, deserializers=Deserializers(value=self._deserialized)
        )
        self.consumer.subscription.assign(BIRDS)
        for partition in BIRDS:
            self.consumer.subscription.seek(partition, Position(0))

    def client(self) -> None:
        """The client's thread: it looks at what there is when it is woken, is answered, or its time is up."""
        consumer, network = self.consumer, self.network
        while not self.is_over:
            self.is_woken = False
            now_ms = network.now_ms
            consumer.lookups.work(now_ms)
            wait_ms = min(consumer.finder.work(now_ms), consumer.lookups.work(now_ms), consumer.fetcher.work(now_ms))
            until_ms = now_ms + wait_ms
            while not self.is_woken and not self.is_over:
                self.turns.pass_on()
                # Time is slow: the user comes to do something while it goes by.
                if self.dice.random() < 0.02 and min(until_ms, network.next_ms) < float("inf"):
                    network.run(until_ms)
                    break

    def user(self) -> None:
        try:
            for _ in range(8):
                self._seek_and_read()
        finally:
            self.is_over = True

    def _seek_and_read(self) -> None:
        partition, other = self.dice.sample(BIRDS, 2)
        paused = self.dice.random() < 0.5
        self.consumer.subscription.pause([other], is_paused=paused)
        offset = self.dice.randrange(RECORDS)
        bad = b"0:%d" % min(offset + 1, RECORDS - 1)
        self.bad = {bad} if self.dice.random() < 0.5 else set()
        self.consumer.subscription.seek(partition, Position(offset))
        last = min(offset + self.dice.choice([1, 3, RECORDS]), RECORDS)
        while offset < last:
            try:
                records = self._poll()
            except RecordDeserializationError as failure:
                offset = self._go_behind(failure, partition, offset)
                continue
            mine = [record.offset for record in records if record.topic_partition == partition]
            assert mine == list(range(offset, offset + len(mine)))
            assert not paused or len(mine) == len(records)
            offset += len(mine)
        self.consumer.subscription.pause([other], is_paused=False)

    def _go_behind(self, failure: RecordDeserializationError, partition: TopicPartition, offset: int) -> int:
        """Where the partition goes on that is read."""
        self.consumer.subscription.seek(failure.topic_partition, Position(failure.offset + 1))
        if failure.topic_partition != partition:
            return offset
        assert failure.offset == offset
        return offset + 1

    def _poll(self) -> list[Any]:
        """As `Consumer.poll` with a time limit that never comes."""
        while True:
            records = self.consumer.poll(5)
            if records:
                return records
            self.consumer.news.wait(60_000)

    def _wake(self) -> None:
        self.is_woken = True

    def _deserialized(self, _topic: str, _headers: Any, value: bytes | None) -> bytes | None:
        if value in self.bad:
            raise ValueError(value)
        return value


@pytest.mark.parametrize("seed", range(40))
def test_who_polls_is_woken_whatever_the_order_of_steps(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [buffer, chunks, fetch_answers, fetcher, positions, subscription]
    turns = Interleaving(seed, parts, chance=(0.002, 0.02, 0.1)[seed % 3])
    locks = SimpleNamespace(Lock=partial(PatientLock, turns), TIMEOUT_MAX=threading.TIMEOUT_MAX)
    monkeypatch.setattr(buffer, "threading", locks)
    monkeypatch.setattr(subscription, "threading", SimpleNamespace(RLock=partial(TurnRLock, turns)))
    race = Race(seed, turns)
    turns.run(race.user, race.client)
