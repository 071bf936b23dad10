"""A stopped, or killed, Apache Kafka 3.9 on ZooKeeper: Kavka takes over its directory and serves it."""

import subprocess
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.cimpl import NewTopic

from tests.support import maven
from tests.support.kafka_process import KafkaProcess, ZooKeeperKafka
from tests.support.kavka_process import KAVKA, KavkaProcess
from tests.support.processes import wait_until

pytestmark = pytest.mark.java
MESSAGES = 500


@pytest.mark.parametrize("end", ["stopped", "killed"])
def test_messages_offsets_and_configurations_are_taken_over(tmp_path: Path, end: str) -> None:
    maven.classpath("kafka-3.9")
    kafka = ZooKeeperKafka(tmp_path / "kafka")
    try:
        kafka.start()
        _create_topic(kafka.bootstrap)
        _produce(kafka.bootstrap, "first")
        KafkaProcess.stop(kafka) if end == "stopped" else kafka.kill()
        command = [str(KAVKA), "storage", "adopt", "--override", f"log.dirs={kafka.log_dir}"]
        adopted = subprocess.run(
            [*command, "--zookeeper", kafka.zookeeper_connect], capture_output=True, text=True, check=False
        )
    finally:
        kafka.stop()
    assert adopted.returncode == 0, adopted.stderr
    assert "visits: retention.ms=86400001" in adopted.stdout.splitlines()

    with KavkaProcess(tmp_path / "kavka", {"log.dirs": str(kafka.log_dir)}) as kavka:
        assert _consume(kavka.bootstrap, MESSAGES) == [f"first {number}" for number in range(MESSAGES)]
        resource = ConfigResource(ConfigResource.Type.TOPIC, "visits")
        admin = AdminClient({"bootstrap.servers": kavka.bootstrap})
        [described] = admin.describe_configs([resource]).values()
        assert described.result(60)["retention.ms"].value == "86400001"
        _produce(kavka.bootstrap, "second", idempotent=False)
        assert _consume(kavka.bootstrap, 2 * MESSAGES)[MESSAGES] == "second 0"


def test_a_new_idempotent_producer_is_not_taken_for_one_of_kafkas(tmp_path: Path) -> None:
    maven.classpath("kafka-3.9")
    with ZooKeeperKafka(tmp_path / "kafka") as kafka:
        _create_topic(kafka.bootstrap)
        _produce(kafka.bootstrap, "first")
    with KavkaProcess(tmp_path / "kavka", {"log.dirs": str(kafka.log_dir)}) as kavka:
        _produce(kavka.bootstrap, "second")
        assert _consume(kavka.bootstrap, 2 * MESSAGES)[MESSAGES] == "second 0"


def test_a_topic_that_nobody_wrote_to_is_taken_over(tmp_path: Path) -> None:
    maven.classpath("kafka-3.9")
    kafka = ZooKeeperKafka(tmp_path / "kafka")
    try:
        kafka.start()
        _create_topic(kafka.bootstrap, partitions=3)
        wait_until(lambda: len(list(kafka.log_dir.glob("visits-*/*.log"))) == 3, 60, "no three folders")
        kafka.kill()
    finally:
        kafka.stop()
    with KavkaProcess(tmp_path / "kavka", {"log.dirs": str(kafka.log_dir)}) as kavka:
        described = AdminClient({"bootstrap.servers": kavka.bootstrap}).list_topics(timeout=60).topics["visits"]
        assert len(described.partitions) == 3
        _produce(kavka.bootstrap, "first")
        assert len(_consume(kavka.bootstrap, MESSAGES)) == MESSAGES


def _create_topic(bootstrap: str, partitions: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    [created] = admin.create_topics([NewTopic("visits", partitions, 1, config={"retention.ms": "86400001"})]).values()
    created.result(60)


def _produce(bootstrap: str, word: str, *, idempotent: bool = True) -> None:
    failures: list[object] = []
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": idempotent,
            "compression.type": "lz4",
            "on_delivery": lambda error, _: failures.append(error) if error else None,
        }
    )
    for number in range(MESSAGES):
        producer.produce("visits", f"{word} {number}", partition=0)
    assert producer.flush(60) == 0
    assert failures == []


def _consume(bootstrap: str, count: int) -> list[str]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False})
    consumer.assign([TopicPartition("visits", 0, 0)])
    messages = consumer.consume(count, 60)
    consumer.close()
    assert [message.offset() for message in messages] == list(range(count))
    return [(message.value() or b"").decode() for message in messages]
