"""aiokafka against a real broker process: asyncio, and its own (Cython) record code."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import MessageSizeTooLargeError

from tests.support.kavka_process import KavkaProcess
from tests.support.metrics_page import wait_for_metric
from tests.support.sample_records import SampleRecord, sample_records
from tests.support.server import RunningServer

BROKER_SETTINGS = {"metrics.port": "0"}
READ_TIMEOUT_S = 60.0
TEST_TIMEOUT_S = 120.0


@pytest.mark.round_trip
@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("idempotent", [False, True], ids=["plain", "idempotent"])
def test_records_come_back_as_they_were_sent(
    broker: RunningServer, topic: str, codec: str | None, idempotent: bool
) -> None:
    sent = sample_records(200, null_header_values=False)

    async def act() -> tuple[list[int], list[ConsumerRecord]]:
        await _create(broker, topic, partitions=1)
        config = {"compression_type": codec, "enable_idempotence": idempotent, "acks": "all", "linger_ms": 20}
        async with _producer(broker, **config) as producer:
            reports = [
                await producer.send(topic, one.value, one.key, headers=list(one.headers), timestamp_ms=one.timestamp_ms)
                for one in sent
            ]
            offsets = [(await report).offset for report in reports]
        return offsets, await _read(broker, [TopicPartition(topic, 0)], len(sent))

    offsets, received = _run(act())

    assert offsets == list(range(len(sent)))
    assert [record.offset for record in received] == offsets
    assert [SampleRecord(one.key, one.value, tuple(one.headers), one.timestamp) for one in received] == sent


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_every_kind_of_acknowledgement_delivers(broker: RunningServer, topic: str, acks: int | str) -> None:
    async def act() -> list[ConsumerRecord]:
        await _create(broker, topic, partitions=3)
        async with _producer(broker, acks=acks) as producer:
            for number in range(90):
                await producer.send(topic, b"%d" % number, partition=number % 3)
            await producer.flush()
        return await _read(broker, [TopicPartition(topic, partition) for partition in range(3)], 90)

    received = _run(act())

    by_partition = {
        partition: [int(record.value or b"") for record in received if record.partition == partition]
        for partition in range(3)
    }
    assert by_partition == {partition: list(range(partition, 90, 3)) for partition in range(3)}


def test_ten_megabytes_pass_only_where_the_topic_lets_them(broker: RunningServer, topic: str) -> None:
    ten_megabytes = bytes(range(250)) * 40_000

    async def act() -> list[ConsumerRecord]:
        await _create(broker, topic, partitions=1)
        await _create(broker, f"{topic}.big", partitions=1, configs={"max.message.bytes": "12000000"})
        async with _producer(broker, max_request_size=20_000_000) as producer:
            with pytest.raises(MessageSizeTooLargeError):
                await producer.send_and_wait(topic, ten_megabytes)
            await producer.send_and_wait(f"{topic}.big", ten_megabytes)
        return await _read(broker, [TopicPartition(f"{topic}.big", 0)], 1)

    (received,) = _run(act())

    assert received.value == ten_megabytes


def test_a_waiting_consumer_gets_what_is_produced_later(broker: RunningServer, topic: str) -> None:
    """The fetch is parked in the broker: the answer comes with the record, long before the wait is over."""

    async def act() -> tuple[bytes | None, float]:
        await _create(broker, topic, partitions=1)
        async with _consumer(broker, fetch_max_wait_ms=30_000) as consumer, _producer(broker) as producer:
            consumer.assign([TopicPartition(topic, 0)])
            await consumer.seek_to_end()
            waiting = asyncio.create_task(consumer.getone())
            await asyncio.to_thread(_wait_for_a_parked_fetch, broker)
            started_at = asyncio.get_running_loop().time()
            await producer.send_and_wait(topic, b"at last")
            record = await waiting
            return record.value, asyncio.get_running_loop().time() - started_at

    value, waited_s = _run(act())

    assert value == b"at last"
    assert waited_s < 25.0


def _wait_for_a_parked_fetch(broker: RunningServer) -> None:
    if isinstance(broker, KavkaProcess):
        wait_for_metric(broker, "kafka_server_delayedoperationpurgatory_purgatorysize", lambda size: size == 1)


def _run(act: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(act, TEST_TIMEOUT_S))


async def _create(broker: RunningServer, topic: str, *, partitions: int, configs: dict[str, str] | None = None) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(topic, partitions, 1, topic_configs=configs)])
    finally:
        await admin.close()


@asynccontextmanager
async def _producer(broker: RunningServer, **config: Any) -> AsyncIterator[AIOKafkaProducer]:
    producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap, **config)
    await producer.start()
    try:
        yield producer
    finally:
        await producer.stop()


@asynccontextmanager
async def _consumer(broker: RunningServer, **config: Any) -> AsyncIterator[AIOKafkaConsumer]:
    consumer = AIOKafkaConsumer(bootstrap_servers=broker.bootstrap, max_partition_fetch_bytes=20_000_000, **config)
    await consumer.start()
    try:
        yield consumer
    finally:
        await consumer.stop()


async def _read(broker: RunningServer, partitions: list[TopicPartition], count: int) -> list[ConsumerRecord]:
    async with _consumer(broker) as consumer:
        consumer.assign(partitions)
        await consumer.seek_to_beginning()
        return [await asyncio.wait_for(consumer.getone(), READ_TIMEOUT_S) for _ in range(count)]
