"""All brokers are killed, and one that led comes back with an empty disk: nothing is lost (KAFKA-14139)."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic

from kavka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.kavka_process import KavkaProcess
from tests.support.processes import wait_until
from tests.support.wire import Wire
from tests.support.zookeeper_process import ZooKeeperProcess

pytestmark = [pytest.mark.java, pytest.mark.slow]

TOPIC, RECORDS, TIMEOUT_S = "visits", 200, 120.0
REPLACED, *KEPT = IDS = [1, 2, 3]


@pytest.fixture
def brokers(zookeeper: ZooKeeperProcess, tmp_path: Path) -> Iterator[dict[int, KavkaProcess]]:
    with ExitStack() as stack:
        yield {
            broker_id: stack.enter_context(
                KavkaProcess(
                    tmp_path / str(broker_id),
                    {
                        "broker.id": str(broker_id),
                        "zookeeper.connect": f"{zookeeper.bootstrap}/replaced",
                        "zookeeper.session.timeout.ms": "6000",
                        "controlled.shutdown.enable": "false",
                        "min.insync.replicas": "2",
                    },
                    expected_errors=["its records went with a disk"],
                )
            )
            for broker_id in IDS
        }


def told(broker: KavkaProcess) -> tuple[int, set[int]]:
    """The partition's leader and ISR."""
    with Wire(broker.host, broker.port) as wire:
        (topic,) = wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)]), 8).topics
    return (topic.partitions[0].leader_id, set(topic.partitions[0].isr_nodes)) if topic.partitions else (-1, set())


def test_an_empty_disk_is_filled_from_those_that_have_the_records(brokers: dict[int, KavkaProcess]) -> None:
    addresses = [each.bootstrap for each in brokers.values()]
    admin = KafkaAdminClient(bootstrap_servers=addresses)
    admin.create_topics([NewTopic(TOPIC, -1, -1, replica_assignments={0: IDS})])
    admin.close()
    wait_until(lambda: told(brokers[REPLACED]) == (REPLACED, set(IDS)), TIMEOUT_S, "it is not led")
    producer = KafkaProducer(bootstrap_servers=addresses, acks="all")
    for sent in [producer.send(TOPIC, b"%d" % number, partition=0) for number in range(RECORDS)]:
        sent.get(TIMEOUT_S)
    producer.close()

    for broker in brokers.values():
        broker.kill()
    shutil.rmtree(brokers[REPLACED].log_dir)
    for broker_id in (*KEPT, REPLACED):
        brokers[broker_id].start()

    wait_until(
        lambda: told(brokers[KEPT[0]])[1] == set(IDS), TIMEOUT_S, lambda: f"not in sync: {told(brokers[KEPT[0]])}"
    )
    assert told(brokers[KEPT[0]])[0] in KEPT
    consumer = KafkaConsumer(bootstrap_servers=addresses, auto_offset_reset="earliest", consumer_timeout_ms=5000)
    consumer.assign([TopicPartition(TOPIC, 0)])
    found: list[int] = []
    while len(found) < RECORDS:
        found += [int(record.value) for batch in consumer.poll(5000).values() for record in batch]
    consumer.close()
    assert found == list(range(RECORDS))
