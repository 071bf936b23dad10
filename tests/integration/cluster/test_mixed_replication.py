"""A Kavka broker beside an Apache Kafka 3.9 on one ZooKeeper: each follows the other, and logs are byte-identical."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic

from kavka.broker.server import Broker
from kavka.config.broker_config import BrokerConfig
from kavka.storage.partition_log import PartitionLog
from tests.support.kafka_process import ZooKeeperKafka
from tests.support.processes import free_port, wait_until

KAFKA, KAVKA = 1, 2
TOPIC, TIMEOUT_S = "visits", 120.0


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[ZooKeeperKafka]:
    process = ZooKeeperKafka(tmp_path / "kafka", {"replica.lag.time.max.ms": "10000"})
    try:
        process.start()
        yield process
    finally:
        process.kill()
        process.stop()


@pytest.fixture
def kavka(kafka: ZooKeeperKafka, tmp_path: Path) -> Iterator[Broker]:
    broker = Broker(
        BrokerConfig(
            {
                "broker.id": str(KAVKA),
                "listeners": f"PLAINTEXT://127.0.0.1:{free_port()}",
                "log.dirs": str(tmp_path / "kavka"),
                "zookeeper.connect": kafka.zookeeper_connect,
                "replica.fetch.backoff.ms": "100",
            }
        )
    )
    broker.start()
    yield broker
    broker.stop()


def create(kafka: ZooKeeperKafka, kavka: Broker, min_isr: int) -> None:
    """Partition 0 led by Kafka, partition 1 by Kavka."""
    admin = KafkaAdminClient(bootstrap_servers=[kafka.bootstrap])
    assignments = {0: [KAFKA, KAVKA], 1: [KAVKA, KAFKA]}
    configs = {"min.insync.replicas": str(min_isr)}
    admin.create_topics([NewTopic(TOPIC, -1, -1, replica_assignments=assignments, topic_configs=configs)])
    admin.close()
    wait_until(lambda: (TOPIC, 1) in kavka.services.replicas.partitions, TIMEOUT_S, "Kavka does not host the topic")


def produce(bootstrap: str, count: int) -> None:
    producer = KafkaProducer(bootstrap_servers=[bootstrap], acks="all", retries=100, compression_type="gzip")
    sent = [producer.send(TOPIC, b"%d" % number * 100, partition=number % 2) for number in range(count)]
    for each in sent:
        each.get(TIMEOUT_S)
    producer.close()


def log_of(kavka: Broker, index: int) -> PartitionLog:
    log = kavka.services.replicas.partitions[TOPIC, index].log
    assert log is not None
    return log


def assert_identical(kafka: ZooKeeperKafka, kavka: Broker, records: int) -> None:
    for index in range(2):
        log = log_of(kavka, index)
        wait_until(partial(_is_committed, log), TIMEOUT_S, "not all is committed")
        assert log.log_end_offset == records
        folders = (log.directory, kafka.log_dir / f"{TOPIC}-{index}")
        copies = [b"".join(path.read_bytes() for path in sorted(folder.glob("*.log"))) for folder in folders]
        assert copies[0] == copies[1] != b""


def _is_committed(log: PartitionLog) -> bool:
    return log.high_watermark == log.log_end_offset


def test_each_copies_what_the_other_leads(kafka: ZooKeeperKafka, kavka: Broker) -> None:
    create(kafka, kavka, min_isr=2)

    produce(kafka.bootstrap, 400)

    leaders = [kavka.services.replicas.partitions[TOPIC, index].role.leader_id for index in range(2)]
    assert leaders == [KAFKA, KAVKA]
    assert_identical(kafka, kavka, 200)


def test_a_killed_kafka_is_led_by_kavka_until_it_is_back_with_all(kafka: ZooKeeperKafka, kavka: Broker) -> None:
    create(kafka, kavka, min_isr=1)
    produce(kafka.bootstrap, 100)

    kafka.kill()
    partitions = kavka.services.replicas.partitions
    wait_until(
        lambda: all(partitions[TOPIC, index].role.is_leader for index in range(2)), TIMEOUT_S, "Kavka does not lead all"
    )
    produce(kavka.endpoints_text().rpartition("//")[2], 100)
    kafka.start()
    wait_until(
        lambda: all(len(partitions[TOPIC, index].role.isr) == 2 for index in range(2)),
        TIMEOUT_S,
        "Kafka is not in sync",
    )

    assert_identical(kafka, kavka, 100)
