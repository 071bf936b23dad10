"""Brokers that stand still (SIGSTOP) and go on: they hear of what they missed, a former controller of its successor."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kavka.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kavka.protocol.messages.metadata import MetadataRequest
from tests.support.kavka_process import KavkaProcess
from tests.support.processes import wait_until
from tests.support.wire import Wire
from tests.support.zookeeper_process import ZooKeeperProcess

pytestmark = [pytest.mark.java, pytest.mark.slow]

IDS = (1, 2, 3)
TIMEOUT_S = 90.0
SESSION_MS = 6000
MISSED = 30


class Cluster:
    """Three brokers, each a process."""

    def __init__(self, brokers: dict[int, KavkaProcess]) -> None:
        self.brokers = brokers

    def freeze(self, broker_id: int) -> None:
        os.kill(self.brokers[broker_id].process.pid, signal.SIGSTOP)

    def thaw(self, broker_id: int) -> None:
        os.kill(self.brokers[broker_id].process.pid, signal.SIGCONT)

    def told(self, broker_id: int) -> Any:
        with self._wire(broker_id) as wire:
            return wire.ask(MetadataRequest(topics=None), 8)

    def create(self, broker_id: int, names: list[str]) -> None:
        topics = [
            CreatableTopic(name=name, num_partitions=2, replication_factor=2, assignments=[], configs=[])
            for name in names
        ]
        with self._wire(broker_id) as wire:
            for topic in topics:
                (answer,) = wire.ask(CreateTopicsRequest(topics=[topic], timeout_ms=60_000), 4).topics
                assert answer.error_code == 0, answer

    def until(self, what: str, condition: Callable[[], bool]) -> None:
        wait_until(condition, TIMEOUT_S, what)

    def _wire(self, broker_id: int) -> Wire:
        broker = self.brokers[broker_id]
        return Wire(broker.host, broker.port)


@pytest.fixture
def cluster(zookeeper: ZooKeeperProcess, tmp_path: Path) -> Iterator[Cluster]:
    with ExitStack() as stack:
        brokers = {
            broker_id: stack.enter_context(
                KavkaProcess(
                    tmp_path / str(broker_id),
                    {
                        "broker.id": str(broker_id),
                        "zookeeper.connect": f"{zookeeper.bootstrap}/frozen",
                        "zookeeper.session.timeout.ms": str(SESSION_MS),
                        "controlled.shutdown.enable": "false",
                    },
                )
            )
            for broker_id in IDS
        }
        made = Cluster(brokers)
        made.until("all know each other", lambda: all(len(made.told(each).brokers) == len(IDS) for each in IDS))
        try:
            yield made
        finally:
            for broker_id in IDS:
                made.thaw(broker_id)


def test_who_stood_still_hears_of_all_and_a_former_controller_rules_no_more(cluster: Cluster) -> None:
    former = cluster.told(1).controller_id
    frozen, other = (each for each in IDS if each != former)
    names = {f"missed-{index}" for index in range(MISSED)}
    cluster.freeze(frozen)
    cluster.create(former, sorted(names))
    cluster.thaw(frozen)
    cluster.until("it hears of all", lambda: {each.name for each in cluster.told(frozen).topics} == names)

    cluster.freeze(former)
    cluster.until("another is elected", lambda: cluster.told(other).controller_id not in (former, -1))
    cluster.until("the former one is gone", lambda: len(cluster.told(other).brokers) == len(IDS) - 1)
    new = cluster.told(other).controller_id
    cluster.create(new, ["under-the-new-one"])
    cluster.thaw(former)

    names.add("under-the-new-one")
    for broker_id in IDS:
        cluster.until(f"{broker_id} knows the cluster as it is", partial(knows_all, cluster, broker_id, names, new))


def knows_all(cluster: Cluster, broker_id: int, names: set[str], controller_id: int) -> bool:
    told = cluster.told(broker_id)
    return (
        {each.name for each in told.topics} == names
        and told.controller_id == controller_id
        and len(told.brokers) == len(IDS)
    )
