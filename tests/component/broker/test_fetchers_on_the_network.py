"""Fetchers with their threads and connections: a follower's core beside a whole broker that leads."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kavka.broker.replication.following import Following
from kavka.broker.services import Services
from kavka.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from tests.support.broker_core import NOW_MS, BrokerCore
from tests.support.broker_handlers import topic_id_of, update_metadata
from tests.support.partition_logs import batch_of
from tests.support.processes import free_port, wait_until
from tests.support.running_broker import HOST, RunningBroker

TOPIC, PARTITIONS = "visits", 4
LEADER, FOLLOWER = 5, 9
WAIT_S = 60.0


def orders(leader_epoch: int, leader: int = LEADER) -> LeaderAndIsrRequest:
    states = [
        LeaderAndIsrPartitionState(
            partition_index=index,
            controller_epoch=9,
            leader=leader,
            leader_epoch=leader_epoch,
            isr=[LEADER, FOLLOWER],
            partition_epoch=leader_epoch,
            replicas=[LEADER, FOLLOWER],
        )
        for index in range(PARTITIONS)
    ]
    topic = LeaderAndIsrTopicState(topic_name=TOPIC, topic_id=topic_id_of(TOPIC), partition_states=states)
    return LeaderAndIsrRequest(
        controller_id=LEADER, controller_epoch=9, broker_epoch=1, topic_states=[topic], live_leaders=[]
    )


class Pair:
    """A leader with a network, and a follower with fetchers."""

    def __init__(self, directory: Path, **settings: str) -> None:
        self.running = RunningBroker(directory / "leader")
        self.deaths: list[BaseException] = []
        self._directory = directory
        self._settings = [f"{name.replace('_', '.')}={value}" for name, value in settings.items()]
        self.following: Following
        self.core: BrokerCore

    def __enter__(self) -> "Pair":
        self.running.__enter__()
        self.core = BrokerCore(
            self._directory / "follower",
            "replica.fetch.backoff.ms=50",
            *self._settings,
            broker_id=FOLLOWER,
            followers=self._follow,
        )
        return self

    def __exit__(self, *raised: Any) -> None:
        self.following.stop()
        self.core.close()
        self.running.__exit__(*raised)
        assert self.deaths == []

    def _follow(self, services: Services) -> Any:
        self.following = Following(services, lambda: 7, self.deaths.append)
        return self.following.fetchers

    def elect(self, leader_epoch: int) -> None:
        self.running.broker.services.replicas.leader_and_isr(orders(leader_epoch))
        self.know_leader_at(self.running.port)
        self.core.replicas.leader_and_isr(orders(leader_epoch))

    def know_leader_at(self, port: int) -> None:
        brokers = {LEADER: (HOST, port), FOLLOWER: ("follower.example", 1)}
        for metadata in (self.core.services.metadata, self.running.broker.services.metadata):
            metadata.apply(update_metadata({TOPIC: [LEADER] * PARTITIONS}, brokers=brokers, epoch=9))

    def produce(self, index: int, *values: bytes) -> None:
        partition = self.running.broker.services.replicas.partitions[TOPIC, index]
        partition.append(memoryview(batch_of(*values)), 1, 9, NOW_MS)
        partition.appended()

    def are_equal(self) -> bool:
        leaders = self.running.broker.services.replicas.partitions
        return all(
            (log := leaders[TOPIC, index].log) is not None
            and log.log_end_offset == log.high_watermark == self.core.log(TOPIC, index).log_end_offset
            for index in range(PARTITIONS)
        )


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    with Pair(tmp_path) as pair:
        yield pair


def test_followers_copy_over_the_network_what_is_produced_while_they_wait(pair: Pair) -> None:
    pair.elect(10)
    for number in range(40):
        pair.produce(number % PARTITIONS, b"%d" % number * 1000, b"more")
        if number % 10 == 9:
            wait_until(pair.are_equal, WAIT_S, "the follower has all")

    assert pair.core.log_bytes(TOPIC) == b"".join(
        path.read_bytes() for path in sorted((pair._directory / "leader" / f"{TOPIC}-0").glob("*.log"))
    )


def test_a_leader_that_moves_is_followed_to_its_new_address(pair: Pair) -> None:
    pair.elect(10)
    pair.produce(0, b"before")
    wait_until(pair.are_equal, WAIT_S, "the follower has all")

    pair.know_leader_at(free_port())
    wait_until(lambda: pair.following.fetchers.fetchers[0].counts.failed_fetches > 0, WAIT_S, "a fetch has failed")
    pair.produce(0, b"after")
    pair.know_leader_at(pair.running.port)

    wait_until(pair.are_equal, WAIT_S, "the follower has all again")


def test_fetchers_end_with_their_last_partition_and_while_they_wait_for_an_answer(pair: Pair) -> None:
    pair.elect(10)
    pair.produce(0, b"a")
    wait_until(pair.are_equal, WAIT_S, "the follower has all")

    pair.core.replicas.leader_and_isr(orders(11, leader=FOLLOWER))

    assert pair.following.fetchers.fetchers == []
    wait_until(lambda: not _fetcher_threads(), WAIT_S, "its thread has ended")


def test_a_leader_that_nobody_knows_is_followed_once_it_is_known(pair: Pair) -> None:
    pair.running.broker.services.replicas.leader_and_isr(orders(10))
    pair.core.replicas.leader_and_isr(orders(10))
    wait_until(lambda: pair.following.fetchers.fetchers[0].counts.failed_fetches > 0, WAIT_S, "a fetch has failed")

    pair.elect(10)
    pair.produce(0, b"a")

    wait_until(pair.are_equal, WAIT_S, "the follower has all")


def _fetcher_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("ReplicaFetcherThread")]
