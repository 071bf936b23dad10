"""All brokers are killed, and one that led comes back with an empty disk: nothing is lost (KAFKA-14139)."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from tests.support.process_cluster import ProcessCluster
from tests.support.zookeeper_process import ZooKeeperProcess

pytestmark = [pytest.mark.java, pytest.mark.slow]

TOPIC, RECORDS, TIMEOUT_S = "visits", 200, 120.0
REPLACED, *KEPT = IDS = [1, 2, 3]
SETTINGS = {"controlled.shutdown.enable": "false"}


@pytest.fixture
def cluster(zookeeper: ZooKeeperProcess, tmp_path: Path) -> Iterator[ProcessCluster]:
    with ProcessCluster(zookeeper, tmp_path, kavkas=IDS, settings=SETTINGS) as made:
        for broker_id in IDS:
            made.kavka(broker_id).expect_errors("its records went with a disk")
        made.create(TOPIC, 1, first=REPLACED)
        yield made


def test_an_empty_disk_is_filled_from_those_that_have_the_records(cluster: ProcessCluster) -> None:
    addresses = cluster.bootstrap.split(",")
    producer = KafkaProducer(bootstrap_servers=addresses, acks="all")
    for sent in [producer.send(TOPIC, b"%d" % number, partition=0) for number in range(RECORDS)]:
        sent.get(TIMEOUT_S)
    producer.close()
    cluster.wait_in_sync(TOPIC)

    # Nobody hears of anybody's death: all are in sync as ZooKeeper has it, and the first one leads.
    for broker_id in IDS:
        cluster.kill(broker_id, lingers=True)
    for broker_id in IDS:
        cluster.end_session(broker_id)
    shutil.rmtree(cluster.brokers[REPLACED].log_dir)
    for broker_id in (*KEPT, REPLACED):
        cluster.start(broker_id)

    cluster.wait_in_sync(TOPIC)
    assert cluster.told(TOPIC)[0].leader in KEPT
    consumer = KafkaConsumer(bootstrap_servers=addresses, auto_offset_reset="earliest")
    consumer.assign([TopicPartition(TOPIC, 0)])
    found: list[int] = []
    while len(found) < RECORDS:
        found += [int(record.value) for batch in consumer.poll(5000).values() for record in batch]
    consumer.close()
    assert found == list(range(RECORDS))
