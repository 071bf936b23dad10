"""Brokers that stand still (SIGSTOP) and go on: they hear of what they missed, a former controller of its successor."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kavka.protocol.messages.metadata import MetadataRequest
from tests.support.process_cluster import NOBODY, TIMEOUT_S, ProcessCluster
from tests.support.processes import wait_until
from tests.support.wire import codes_of
from tests.support.zookeeper_process import ZooKeeperProcess

pytestmark = [pytest.mark.java, pytest.mark.slow]

IDS = (1, 2, 3)
MISSED = 30
SETTINGS = {"controlled.shutdown.enable": "false"}


@pytest.fixture
def cluster(zookeeper: ZooKeeperProcess, tmp_path: Path) -> Iterator[ProcessCluster]:
    with ProcessCluster(zookeeper, tmp_path, kavkas=IDS, settings=SETTINGS) as made:
        yield made


def test_who_stood_still_hears_of_all_and_a_former_controller_rules_no_more(cluster: ProcessCluster) -> None:
    former = cluster.controller_id
    frozen, other = (each for each in IDS if each != former)
    names = {f"missed-{index}" for index in range(MISSED)}
    with cluster.frozen(frozen):
        for name in sorted(names):
            create(cluster, name)
    wait_until(partial(knows_all, cluster, frozen, names, former), TIMEOUT_S, "it does not hear of all")

    with cluster.without(former):
        wait_until(lambda: told(cluster, other).controller_id not in (former, NOBODY), TIMEOUT_S, "nobody is elected")
        new = told(cluster, other).controller_id
        create(cluster, "under-the-new-one")

    names.add("under-the-new-one")
    for broker_id in IDS:
        wait_until(
            partial(knows_all, cluster, broker_id, names, new),
            TIMEOUT_S,
            f"{broker_id} does not know the cluster as it is",
        )


def create(cluster: ProcessCluster, name: str) -> None:
    new = CreatableTopic(name=name, num_partitions=2, replication_factor=2, assignments=[], configs=[])
    answer = cluster.ask_controller(CreateTopicsRequest(topics=[new], timeout_ms=60_000), 4)
    assert codes_of(answer) == {ErrorCode.NONE}, answer


def told(cluster: ProcessCluster, broker_id: int) -> Any:
    return cluster.ask(broker_id, MetadataRequest(topics=None), 8)


def knows_all(cluster: ProcessCluster, broker_id: int, names: set[str], controller_id: int) -> bool:
    """Whether it tells of these topics and this controller, and of all brokers."""
    answer = told(cluster, broker_id)
    return (
        {each.name for each in answer.topics} == names
        and answer.controller_id == controller_id
        and len(answer.brokers) == len(IDS)
    )
