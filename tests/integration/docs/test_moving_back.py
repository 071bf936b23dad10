"""The way from Kafka to Kavka and back, as docs/operations.md tells it: nothing is lost on either."""

import re
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from kazoo.client import KazooClient

from kavka.cli.adopting import adopt
from kavka.config.broker_config import BrokerConfig
from tests.support import maven
from tests.support.kafka_process import KafkaProcess, ZooKeeperKafka
from tests.support.kavka_process import KavkaProcess
from tests.support.processes import wait_until

pytestmark = [pytest.mark.java, pytest.mark.slow]
PAGE = Path(__file__).resolve().parents[3] / "docs" / "operations.md"
TOPIC = "visits"
MESSAGES = 100
TIMEOUT_S = 60.0


def test_records_and_offsets_go_to_kavka_and_back(tmp_path: Path) -> None:
    maven.classpath("kafka-3.9")
    kafka = ZooKeeperKafka(tmp_path / "kafka", {"group.initial.rebalance.delay.ms": "0"})
    try:
        kafka.start()
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(TIMEOUT_S)
        _produce(kafka.bootstrap, "first")
        assert _next_messages(kafka.bootstrap, "group", MESSAGES) == _messages("first")
        KafkaProcess.stop(kafka)

        adopt(BrokerConfig({"log.dirs": str(kafka.log_dir)}), kafka.zookeeper_connect)
        with KavkaProcess(tmp_path / "kavka", {"log.dirs": str(kafka.log_dir)}) as kavka:
            _produce(kavka.bootstrap, "second")
            assert _next_messages(kavka.bootstrap, "group", MESSAGES) == _messages("second")

        _begin_producer_ids_anew(kafka.zookeeper_connect)
        kafka.start()
        _produce(kafka.bootstrap, "third")
        assert _next_messages(kafka.bootstrap, "group", MESSAGES) == _messages("third")
        everything = _messages("first") + _messages("second") + _messages("third")
        assert _next_messages(kafka.bootstrap, "another", 3 * MESSAGES) == everything
    finally:
        kafka.stop()


def _begin_producer_ids_anew(zookeeper: str) -> None:
    """The command that the page gives for Kafka's zookeeper-shell."""
    ((path, block),) = re.findall(r"^zookeeper-shell\.sh \S+ set (\S+) \\\n +'(.*)'$", PAGE.read_text(), re.MULTILINE)
    client = KazooClient(zookeeper)
    client.start(TIMEOUT_S)
    try:
        client.set(path, block.encode())
    finally:
        client.stop()
        client.close()


def _messages(word: str) -> list[str]:
    return [f"{word} {number}" for number in range(MESSAGES)]


def _produce(bootstrap: str, word: str) -> None:
    failures: list[object] = []
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "on_delivery": lambda error, _: failures.append(error) if error else None,
        }
    )
    for text in _messages(word):
        producer.produce(TOPIC, text, partition=0)
    assert (producer.flush(TIMEOUT_S), failures) == (0, [])


def _next_messages(bootstrap: str, group: str, count: int) -> list[str]:
    """What the group has not read yet, up to `count` messages, which it has then."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    try:
        consumer.subscribe([TOPIC])
        messages: list[Message] = []

        def has_all() -> bool:
            # A broker that has just started may have coordinators that are still loading, which are errors here.
            messages.extend(each for each in consumer.consume(count - len(messages), 1.0) if each.error() is None)
            return len(messages) == count

        wait_until(has_all, TIMEOUT_S, lambda: f"only {len(messages)} of {count} messages came")
        consumer.commit(message=messages[-1], asynchronous=False)
        return [(message.value() or b"").decode() for message in messages]
    finally:
        consumer.close()
