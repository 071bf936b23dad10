"""On real brokers and a real ZooKeeper: partitions move while they are written to, and leaders and features change."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from kavka.broker.metadata.metadata_cache import PartitionMetadata
from kavka.broker.server import Broker
from kavka.cluster.features import ADVERTISED
from kavka.cluster.znodes.topic import TopicAssignment
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kavka.protocol.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from kavka.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from kavka.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from kavka.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.support.processes import wait_until
from tests.support.running_cluster import RunningCluster
from tests.support.wire import RawClient
from tests.support.zookeeper_process import ZooKeeperProcess

TOPIC, TIMEOUT_S = "visits", 120.0


@pytest.fixture
def cluster(zookeeper: ZooKeeperProcess, tmp_path: Path) -> Iterator[RunningCluster]:
    settings = {"replica.fetch.backoff.ms": "100", "auto.leader.rebalance.enable": "false"}
    with RunningCluster(zookeeper.bootstrap, tmp_path, (1, 2, 3), settings) as made:
        yield made


def ask(broker: Broker, request: Any, version: int) -> Any:
    host, _, port = broker.endpoints_text().rpartition("//")[2].rpartition(":")
    with RawClient(host, int(port)) as client:
        return client.ask(request, version)


def create(cluster: RunningCluster, *replicas: int) -> None:
    assignments = [CreatableReplicaAssignment(partition_index=0, broker_ids=list(replicas))]
    topic = CreatableTopic(name=TOPIC, num_partitions=-1, replication_factor=-1, assignments=assignments, configs=[])
    (answer,) = ask(cluster.controller, CreateTopicsRequest(topics=[topic], timeout_ms=60_000), 7).topics
    assert answer.error_code == ErrorCode.NONE
    cluster.wait_for_topic(TOPIC, len(replicas))


def move(cluster: RunningCluster, *target: int) -> None:
    partition = ReassignablePartition(partition_index=0, replicas=list(target))
    request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name=TOPIC, partitions=[partition])])
    (answer,) = ask(cluster.controller, request, 0).responses
    assert answer.partitions[0].error_code == ErrorCode.NONE


def wait_until_settled(cluster: RunningCluster) -> None:
    wait_until(
        lambda: ask(cluster.controller, ListPartitionReassignmentsRequest(), 0).topics == [],
        TIMEOUT_S,
        "the partition is still on the move",
    )


def hosts(cluster: RunningCluster) -> set[int]:
    return {broker_id for broker_id, each in cluster.brokers.items() if (TOPIC, 0) in each.services.replicas.partitions}


def leader(cluster: RunningCluster) -> int:
    return known(cluster).leader


def known(cluster: RunningCluster) -> PartitionMetadata:
    """The partition as the controller's broker tells clients."""
    return next(iter(cluster.controller.services.metadata.current.topics[TOPIC]))


def addresses(cluster: RunningCluster) -> list[str]:
    return [settings["listeners"].partition("//")[2] for settings in cluster.settings.values()]


def send(cluster: RunningCluster, first: int, end: int) -> None:
    producer = KafkaProducer(bootstrap_servers=addresses(cluster), acks="all")
    sent = [producer.send(TOPIC, b"%d" % number, partition=0) for number in range(first, end)]
    for each in sent:
        each.get(TIMEOUT_S)
    producer.close()


def consume(cluster: RunningCluster, count: int) -> list[int]:
    """All that there is, once there are so many: who has just begun to lead does not show all at once."""
    consumer = KafkaConsumer(bootstrap_servers=addresses(cluster), auto_offset_reset="earliest")
    partition = TopicPartition(TOPIC, 0)
    consumer.assign([partition])
    found: list[int] = []
    while len(found) < count or consumer.position(partition) < consumer.end_offsets([partition])[partition]:
        found += [int(record.value) for batch in consumer.poll(1000).values() for record in batch]
    consumer.close()
    return found


def test_a_partition_moves_while_it_is_written_to_and_nothing_is_lost(cluster: RunningCluster) -> None:
    create(cluster, 1)
    producer = KafkaProducer(bootstrap_servers=addresses(cluster), acks="all")
    acknowledged: list[int] = []
    is_enough = threading.Event()

    def write() -> None:
        number = 0
        while not is_enough.is_set():
            producer.send(TOPIC, b"%d" % number, partition=0).get(TIMEOUT_S)
            acknowledged.append(number)
            number += 1

    def move_meanwhile(*target: int) -> None:
        seen = len(acknowledged)
        wait_until(lambda: len(acknowledged) > seen + 20, TIMEOUT_S, "nothing is acknowledged")
        move(cluster, *target)
        wait_until_settled(cluster)
        wait_until(lambda: hosts(cluster) == set(target), TIMEOUT_S, "replicas are left behind")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for target in ((2, 3), (3, 1), (1,)):
            move_meanwhile(*target)
    finally:
        is_enough.set()
        writer.join()
        producer.close()
    wait_until(lambda: leader(cluster) == 1, TIMEOUT_S, "not led by who has it")
    assert sorted(set(consume(cluster, len(acknowledged)))) == acknowledged


def test_a_partition_comes_back_to_a_broker_that_was_down_when_it_left(cluster: RunningCluster) -> None:
    create(cluster, 1, 2)
    send(cluster, 0, 50)
    cluster.stop(2)
    cluster.wait_for_one_controller()
    move(cluster, 1, 3)
    wait_until_settled(cluster)
    wait_until(lambda: hosts(cluster) == {1, 3}, TIMEOUT_S, "not moved to the third")
    send(cluster, 50, 100)
    cluster.start(2)
    cluster.wait_for_brokers()
    move(cluster, 2)
    wait_until_settled(cluster)
    wait_until(lambda: hosts(cluster) == {2} and leader(cluster) == 2, TIMEOUT_S, "not moved")
    assert consume(cluster, 100) == list(range(100))


def test_leadership_returns_to_the_preferred_broker_on_request(cluster: RunningCluster) -> None:
    create(cluster, 1, 2, 3)
    cluster.stop(1)
    cluster.wait_for_one_controller()
    wait_until(lambda: leader(cluster) == 2, TIMEOUT_S, "not handed over")
    cluster.start(1)
    cluster.wait_for_brokers()
    wait_until(lambda: 1 in known(cluster).isr, TIMEOUT_S, "not in sync")
    request = ElectLeadersRequest(topic_partitions=[TopicPartitions(topic=TOPIC, partitions=[0])], timeout_ms=30_000)
    (result,) = ask(cluster.controller, request, 2).replica_election_results
    assert result.partition_result[0].error_code == ErrorCode.NONE
    wait_until(lambda: leader(cluster) == 1, TIMEOUT_S, "not led by the preferred replica")


def test_all_brokers_go_by_the_features_that_are_agreed_on(cluster: RunningCluster) -> None:
    agreed = {each.name: each.highest for each in ADVERTISED}

    def levels() -> list[dict[str, int]]:
        return [dict(broker.services.features.levels) for broker in cluster.brokers.values()]

    wait_until(lambda: levels() == [agreed] * 3, TIMEOUT_S, lambda: str(levels()))
    lowered = FeatureUpdateKey(feature="transaction.version", max_version_level=1, upgrade_type=2)
    answer = ask(cluster.controller, UpdateFeaturesRequest(feature_updates=[lowered]), 1)
    assert [each.error_code for each in answer.results] == [ErrorCode.NONE]
    wait_until(lambda: levels() == [{**agreed, "transaction.version": 1}] * 3, TIMEOUT_S, lambda: str(levels()))


def test_partitions_that_a_tool_writes_into_zookeeper_are_led(cluster: RunningCluster) -> None:
    create(cluster, 1, 2)
    registry = cluster.brokers[2].services.registry
    path = TopicAssignment.path(TOPIC)
    stored = TopicAssignment.decode(TOPIC, registry.get(path)[0])
    registry.set(path, stored._replace(replicas={**stored.replicas, 1: (3, 2)}).encode())

    def is_led() -> bool:
        topic = cluster.brokers[1].services.metadata.current.topics[TOPIC]
        return [each.leader for each in topic] == [1, 3]

    wait_until(is_led, TIMEOUT_S, "the new partition is not led")
