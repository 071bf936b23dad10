"""Clients of four makers against a broker in their own process: in a group, and what a test looks at afterwards."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing

import confluent_kafka
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from kafka import KafkaConsumer, KafkaProducer

from kavka.client import Consumer, Producer
from kavka.testing import Broker

VALUES = [b"one", b"two", b"three"]
TIMEOUT_MS = 60_000


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker
        broker.check()


def by_kafka_python(bootstrap: str, topic: str) -> list[bytes]:
    with closing(KafkaProducer(bootstrap_servers=bootstrap)) as producer:
        for value in VALUES:
            producer.send(topic, value).get(60)
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=topic,
        auto_offset_reset="earliest",
        consumer_timeout_ms=TIMEOUT_MS,
    )
    with closing(consumer):
        found = [next(consumer).value for _ in VALUES]
        consumer.commit()
    return found


def by_aiokafka(bootstrap: str, topic: str) -> list[bytes]:
    async def run() -> list[bytes]:
        async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
            for value in VALUES:
                await producer.send_and_wait(topic, value)
        consumer = AIOKafkaConsumer(topic, bootstrap_servers=bootstrap, group_id=topic, auto_offset_reset="earliest")
        async with consumer:
            found = [(await asyncio.wait_for(consumer.getone(), 60)).value for _ in VALUES]
            await consumer.commit()
        return found

    return asyncio.run(run())


def by_confluent(bootstrap: str, topic: str) -> list[bytes]:
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
    for value in VALUES:
        producer.produce(topic, value)
    assert producer.flush(60) == 0
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": topic, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    found: list[bytes] = []
    try:
        while len(found) < len(VALUES):
            for message in consumer.consume(len(VALUES), 60):
                assert message.error() is None
                read = message.value()
                assert isinstance(read, bytes)
                found.append(read)
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()
    return found


def by_kavka(bootstrap: str, topic: str) -> list[bytes]:
    with Producer(bootstrap_servers=bootstrap) as producer:
        for sent in VALUES:
            producer.send(topic, sent).result(60)
    settings = {"bootstrap.servers": bootstrap, "auto.offset.reset": "earliest"}
    found: list[bytes] = []
    with Consumer(settings, group_id=topic) as consumer:
        consumer.subscribe([topic])
        while len(found) < len(VALUES):
            found += [record.value for record in consumer.poll(timeout_ms=TIMEOUT_MS)]
        consumer.commit_sync()
    return found


@pytest.mark.parametrize("client", [by_kafka_python, by_aiokafka, by_confluent, by_kavka])
def test_a_group_reads_what_was_produced(broker: Broker, client: Callable[[str, str], list[bytes]]) -> None:
    topic = broker.create_topic(client.__name__)
    assert client(broker.bootstrap_servers, topic) == VALUES
    broker.assert_records(topic, VALUES)
    broker.wait_until_consumed(topic, topic)
