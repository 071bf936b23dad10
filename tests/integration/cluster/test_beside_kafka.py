"""A Kavka broker and one of Apache Kafka 3.9 in one cluster: either is the controller of both."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from kavka.protocol.messages.init_producer_id import InitProducerIdRequest
from kavka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.kafka_process import JoiningKafka
from tests.support.processes import wait_until
from tests.support.registries import new_root
from tests.support.running_cluster import RunningCluster
from tests.support.wire import RawClient
from tests.support.zookeeper_process import ZooKeeperProcess

KAFKA, KAVKA = 1, 7
TIMEOUT_S = 120.0
# Else who controls gives leaderships back to the other one when that is there again, sooner or later.
SETTINGS = {"auto.leader.rebalance.enable": "false"}
Address = tuple[str, int]


@pytest.fixture
def kafka(zookeeper: ZooKeeperProcess, tmp_path: Path) -> Iterator[JoiningKafka]:
    with JoiningKafka(tmp_path / "kafka", KAFKA, zookeeper, new_root(), SETTINGS) as made:
        yield made


@pytest.fixture
def cluster(kafka: JoiningKafka, zookeeper: ZooKeeperProcess, tmp_path: Path) -> Iterator[RunningCluster]:
    """With Kafka's broker, which came first and is the controller."""
    settings = {
        **SETTINGS,
        "zookeeper.connect": kafka.settings()["zookeeper.connect"],
        "offsets.topic.replication.factor": "1",
    }
    with RunningCluster(zookeeper.bootstrap, tmp_path, [KAVKA], settings, others=[KAFKA]) as made:
        yield made


def ask(address: Address, request: Any, version: int) -> Any:
    with RawClient(*address, timeout_s=TIMEOUT_S) as client:
        return client.ask(request, version)


def create(address: Address, name: str) -> int:
    """A topic of two partitions, each of which one of the brokers prefers to lead."""
    replicas = [
        CreatableReplicaAssignment(partition_index=index, broker_ids=ids)
        for index, ids in enumerate(([KAFKA, KAVKA], [KAVKA, KAFKA]))
    ]
    topic = CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, assignments=replicas, configs=[])
    (answer,) = ask(address, CreateTopicsRequest(topics=[topic], timeout_ms=int(TIMEOUT_S * 1000)), 7).topics
    return int(answer.error_code)


def wait_for(address: Address, topic: str, leaders: list[int], isr: set[int], *, creates: bool = False) -> None:
    """Until a broker tells clients of these leaders of the topic's partitions, and this ISR of each."""
    seen: list[Any] = []

    def is_told() -> bool:
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=creates)
        (answer,) = ask(address, asked, 12).topics
        parts = sorted(answer.partitions, key=lambda each: each.partition_index)
        seen[:] = [(each.leader_id, each.isr_nodes) for each in parts]
        return [each.leader_id for each in parts] == leaders and all(set(each.isr_nodes) == isr for each in parts)

    wait_until(is_told, TIMEOUT_S, lambda: f"{address} tells of {seen}")


def wait_for_producer_id(address: Address) -> int:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
    given: list[int] = []

    def is_given() -> bool:
        answer = ask(address, request, 4)
        given.append(answer.producer_id)
        return bool(answer.error_code == ErrorCode.NONE)

    wait_until(is_given, TIMEOUT_S, "no producer id")
    return given[-1]


def test_each_takes_the_others_orders_and_hands_over_to_it(kafka: JoiningKafka, cluster: RunningCluster) -> None:
    own = cluster.brokers[KAVKA]
    theirs = (kafka.host, kafka.port)
    host, _, port = cluster.settings[KAVKA]["listeners"].partition("//")[2].partition(":")
    ours = (host, int(port))
    both = {KAFKA, KAVKA}

    # Kafka is the controller.
    assert own.services.metadata.current.controller_id == KAFKA
    assert create(ours, "visits") == ErrorCode.NOT_CONTROLLER
    assert create(theirs, "visits") == ErrorCode.NONE
    wait_for(ours, "visits", [KAFKA, KAVKA], both)
    roles = {index: part.role for (name, index), part in own.services.replicas.partitions.items() if name == "visits"}
    assert [(roles[index].is_leader, roles[index].leader_id) for index in (0, 1)] == [(False, KAFKA), (True, KAVKA)]
    ids = {wait_for_producer_id(ours), wait_for_producer_id(theirs)}
    asked = MetadataRequest(topics=[MetadataRequestTopic(name="wanted")], allow_auto_topic_creation=True)

    def is_made() -> bool:
        ask(ours, asked, 12)
        return "wanted" in own.services.metadata.current.topics

    wait_until(is_made, TIMEOUT_S, "Kafka creates no topic for us")

    # It hands over as it stops, and Kavka is the controller.
    kafka.stop()
    wait_until(lambda: own.services.controller.is_active, TIMEOUT_S, "no controller")
    wait_for(ours, "visits", [KAVKA, KAVKA], {KAVKA})
    kafka.start()
    wait_for(theirs, "visits", [KAVKA, KAVKA], both)
    assert create(theirs, "clicks") == ErrorCode.NOT_CONTROLLER
    assert create(ours, "clicks") == ErrorCode.NONE
    wait_for(theirs, "clicks", [KAFKA, KAVKA], both)
    ids |= {wait_for_producer_id(ours), wait_for_producer_id(theirs)}
    assert len(ids) == 4

    # And back.
    cluster.stop(KAVKA)
    wait_for(theirs, "visits", [KAFKA, KAFKA], {KAFKA})
    wait_for(theirs, "clicks", [KAFKA, KAFKA], {KAFKA})
