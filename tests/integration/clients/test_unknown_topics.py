"""Producing to a topic that does not exist creates it: the client is told to ask again, and does so by itself."""

import asyncio
from contextlib import closing

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Producer
from kafka import KafkaConsumer, KafkaProducer

from tests.support.java import run_java
from tests.support.server import RunningServer

TIMEOUT_S = 60.0
VALUE = b"hello"


def with_kafka_python(broker: RunningServer, topic: str) -> None:
    with closing(KafkaProducer(bootstrap_servers=broker.bootstrap)) as producer:
        producer.send(topic, VALUE).get(TIMEOUT_S)


def with_aiokafka(broker: RunningServer, topic: str) -> None:
    async def send() -> None:
        async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
            await asyncio.wait_for(producer.send_and_wait(topic, VALUE), TIMEOUT_S)

    asyncio.run(send())


def with_confluent_kafka(broker: RunningServer, topic: str) -> None:
    errors: list[object] = []
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(topic, VALUE, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(TIMEOUT_S) == 0
    assert errors == [None]


def with_java(broker: RunningServer, topic: str) -> None:
    arguments = ["--bootstrap-server", broker.bootstrap, "--topic", topic]
    run_java("org.apache.kafka.tools.ConsoleProducer", arguments, bundle="kafka-4.3", text_in=VALUE.decode() + "\n")


@pytest.mark.parametrize(
    "produce",
    [
        with_kafka_python,
        with_aiokafka,
        with_confluent_kafka,
        pytest.param(with_java, marks=[pytest.mark.java, pytest.mark.slow]),
    ],
)
def test_a_first_record_creates_its_topic(broker: RunningServer, topic: str, produce: object) -> None:
    assert callable(produce)
    produce(broker, topic)

    with closing(
        KafkaConsumer(
            topic,
            bootstrap_servers=broker.bootstrap,
            group_id=None,
            auto_offset_reset="earliest",
            consumer_timeout_ms=int(TIMEOUT_S * 1000),
        )
    ) as consumer:
        assert next(consumer).value == VALUE
