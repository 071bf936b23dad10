"""A cluster whose brokers are told nonsense by peers that are none: nothing acknowledged changes, and it goes on."""

import random
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic

from kavka.broker.server import Broker
from tests.support.hostile_peers import HOSTILITIES, Truth, frame_of
from tests.support.processes import wait_until
from tests.support.running_cluster import RunningCluster
from tests.support.wire import ClosedError, Wire
from tests.support.zookeeper_process import ZooKeeperProcess

TOPIC, TIMEOUT_S = "visits", 120.0
IDS = (1, 2, 3)
RECORDS = 50
FRAMES = 60
"""To each broker, of each kind."""


@pytest.fixture
def cluster(zookeeper: ZooKeeperProcess, tmp_path: Path) -> Iterator[RunningCluster]:
    settings = {"min.insync.replicas": "2", "auto.leader.rebalance.enable": "false"}
    with RunningCluster(zookeeper.bootstrap, tmp_path, IDS, settings) as made:
        admin = KafkaAdminClient(bootstrap_servers=addresses(made))
        admin.create_topics([NewTopic(TOPIC, -1, -1, replica_assignments={0: [1, 2, 3], 1: [2, 3, 1]})])
        admin.close()
        made.wait_for_topic(TOPIC, 3)
        yield made


def addresses(cluster: RunningCluster) -> list[str]:
    return [cluster.settings[broker_id]["listeners"].partition("//")[2] for broker_id in cluster.settings]


def produce(cluster: RunningCluster, first: int) -> None:
    producer = KafkaProducer(bootstrap_servers=addresses(cluster), acks="all")
    for sent in [
        producer.send(TOPIC, b"%d" % number, partition=number % 2) for number in range(first, first + 2 * RECORDS)
    ]:
        sent.get(TIMEOUT_S)
    producer.close()


def consume(cluster: RunningCluster) -> list[int]:
    consumer = KafkaConsumer(bootstrap_servers=addresses(cluster), auto_offset_reset="earliest")
    partitions = [TopicPartition(TOPIC, index) for index in range(2)]
    consumer.assign(partitions)
    ends = consumer.end_offsets(partitions)
    found: list[int] = []
    while any(consumer.position(each) < ends[each] for each in partitions):
        found += [int(record.value) for batch in consumer.poll(1000).values() for record in batch]
    consumer.close()
    return sorted(found)


def state(broker: Broker) -> list[tuple[object, ...]]:
    """Role, ISR and log of each partition, as the broker has them."""
    found: list[tuple[object, ...]] = []
    for (topic, index), partition in sorted(broker.services.replicas.partitions.items()):
        if topic == TOPIC:
            log, role = partition.log, partition.role
            assert log is not None
            found.append(
                (index, role.leader_id, role.leader_epoch, sorted(role.isr), log.log_end_offset, log.high_watermark)
            )
    return found


def end_offsets(broker: Broker) -> set[object]:
    return {each[4] for each in state(broker)} | {each[5] for each in state(broker)}


def truth_of(cluster: RunningCluster, broker_id: int) -> Truth:
    services = cluster.brokers[broker_id].services
    snapshot = services.metadata.current
    return Truth(
        target=broker_id,
        follower=next(each for each in IDS if each != broker_id),
        topic=TOPIC,
        topic_id=snapshot.topic_id(TOPIC),
        partitions=2,
        leader_epoch=0,
        controller_epoch=snapshot.controller_epoch,
        broker_epoch=services.local_broker._broker_epoch(),
        end_offset=RECORDS,
    )


def test_what_hostile_peers_send_changes_nothing_that_was_acknowledged(cluster: RunningCluster) -> None:
    produce(cluster, 0)
    wait_until(
        lambda: all(end_offsets(broker) == {RECORDS} for broker in cluster.brokers.values()), TIMEOUT_S, "not copied"
    )
    before = {broker_id: state(broker) for broker_id, broker in cluster.brokers.items()}
    # What is refused is told of, with the topic that nobody has.
    cluster.errors.expect(r"cannot host topic=\S* partition=\d+ error=.*not among the replicas")
    dice = random.Random(9)

    for broker_id in IDS:
        truth = truth_of(cluster, broker_id)
        host, _, port = cluster.settings[broker_id]["listeners"].partition("//")[2].rpartition(":")
        with Wire(host, int(port)) as peer:
            for sends in HOSTILITIES:
                for number in range(FRAMES):
                    frame = frame_of(sends, truth, dice, number)
                    peer.socket.sendall(struct.pack(">i", len(frame)) + frame)
                    with suppress(ClosedError):
                        peer.receive_frame()

    assert {broker_id: state(broker) for broker_id, broker in cluster.brokers.items()} == before
    produce(cluster, 2 * RECORDS)
    assert consume(cluster) == list(range(4 * RECORDS))
    wait_until(
        lambda: all(end_offsets(broker) == {2 * RECORDS} for broker in cluster.brokers.values()),
        TIMEOUT_S,
        "not copied any more",
    )
    assert [[each[1:4] for each in state(broker)] for broker in cluster.brokers.values()] == [
        [each[1:4] for each in before[broker_id]] for broker_id in IDS
    ]
