"""kafka-python against a real broker process: pure Python, and it checks the CRC of what it reads."""

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import MessageSizeTooLargeError, TopicAlreadyExistsError, UnknownTopicOrPartitionError

from tests.support.sample_records import FIRST_TIMESTAMP_MS, SampleRecord, sample_records
from tests.support.server import RunningServer

NewProducer = Callable[..., KafkaProducer]
READ_TIMEOUT_MS = 60_000


@pytest.fixture
def admin(broker: RunningServer) -> Iterator[KafkaAdminClient]:
    with closing(KafkaAdminClient(bootstrap_servers=broker.bootstrap)) as client:
        yield client


@pytest.fixture
def new_producer(broker: RunningServer) -> Iterator[NewProducer]:
    """Makes producers of the test's broker, and closes them all."""
    producers = []

    def make(**config: Any) -> KafkaProducer:
        producers.append(KafkaProducer(bootstrap_servers=broker.bootstrap, **config))
        return producers[-1]

    yield make
    for producer in producers:
        producer.close(timeout=5)


@pytest.mark.round_trip
@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("idempotent", [False, True], ids=["plain", "idempotent"])
def test_records_come_back_as_they_were_sent(
    broker: RunningServer,
    admin: KafkaAdminClient,
    new_producer: NewProducer,
    topic: str,
    codec: str | None,
    idempotent: bool,
) -> None:
    _create(admin, topic, partitions=1)
    sent = sample_records(200, null_header_values=False)
    producer = new_producer(compression_type=codec, enable_idempotence=idempotent, acks="all", linger_ms=20)
    futures = [
        producer.send(topic, record.value, record.key, headers=list(record.headers), timestamp_ms=record.timestamp_ms)
        for record in sent
    ]
    offsets = [future.get(60).offset for future in futures]

    received = _read(broker, [TopicPartition(topic, 0)], len(sent))

    assert offsets == list(range(len(sent)))
    assert [record.offset for record in received] == offsets
    assert [SampleRecord(one.key, one.value, tuple(one.headers), one.timestamp) for one in received] == sent


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_every_kind_of_acknowledgement_delivers(
    broker: RunningServer, admin: KafkaAdminClient, new_producer: NewProducer, topic: str, acks: int | str
) -> None:
    _create(admin, topic, partitions=3)
    producer = new_producer(acks=acks, enable_idempotence=False)
    for number in range(90):
        producer.send(topic, b"%d" % number, partition=number % 3)
    producer.flush(10)

    received = _read(broker, [TopicPartition(topic, partition) for partition in range(3)], 90)

    by_partition = {
        partition: [int(record.value) for record in received if record.partition == partition] for partition in range(3)
    }
    assert by_partition == {partition: list(range(partition, 90, 3)) for partition in range(3)}


def test_a_message_over_the_limit_is_refused_and_one_of_ten_megabytes_passes_with_the_limit_raised(
    broker: RunningServer, admin: KafkaAdminClient, new_producer: NewProducer, topic: str
) -> None:
    _create(admin, topic, partitions=1)
    ten_megabytes = bytes(range(250)) * 40_000
    with pytest.raises(MessageSizeTooLargeError):
        new_producer(max_request_size=20_000_000).send(topic, ten_megabytes).get(20)

    _create(admin, f"{topic}.big", partitions=1, configs={"max.message.bytes": "12000000"})
    # A new producer: to an idempotent one that error was fatal.
    new_producer(max_request_size=20_000_000).send(f"{topic}.big", ten_megabytes).get(20)

    (received,) = _read(broker, [TopicPartition(f"{topic}.big", 0)], 1)
    assert received.value == ten_megabytes


def test_offsets_are_found_by_time(
    broker: RunningServer, admin: KafkaAdminClient, new_producer: NewProducer, topic: str
) -> None:
    _create(admin, topic, partitions=1)
    partition = TopicPartition(topic, 0)
    producer = new_producer()
    for number in range(10):
        producer.send(topic, b"x", timestamp_ms=FIRST_TIMESTAMP_MS + number * 1000).get(60)

    with closing(KafkaConsumer(bootstrap_servers=broker.bootstrap)) as consumer:
        found = consumer.offsets_for_times({partition: FIRST_TIMESTAMP_MS + 3500})[partition]
        after_all = consumer.offsets_for_times({partition: FIRST_TIMESTAMP_MS + 60_000})[partition]
        ends = (consumer.beginning_offsets([partition])[partition], consumer.end_offsets([partition])[partition])

    assert (found.offset, found.timestamp) == (4, FIRST_TIMESTAMP_MS + 4000)
    assert after_all is None
    assert ends == (0, 10)


def test_log_append_time_is_the_brokers(
    broker: RunningServer, admin: KafkaAdminClient, new_producer: NewProducer, topic: str
) -> None:
    _create(admin, topic, partitions=1, configs={"message.timestamp.type": "LogAppendTime"})
    acknowledged = new_producer().send(topic, b"x", timestamp_ms=FIRST_TIMESTAMP_MS).get(60)

    (received,) = _read(broker, [TopicPartition(topic, 0)], 1)

    assert received.timestamp_type == 1
    assert received.timestamp == acknowledged.timestamp
    assert received.timestamp > FIRST_TIMESTAMP_MS + 86_400_000


def test_topics_are_created_grown_described_and_deleted(
    broker: RunningServer, admin: KafkaAdminClient, topic: str
) -> None:
    _create(admin, topic, partitions=2, configs={"retention.ms": "60000"})
    with pytest.raises(TopicAlreadyExistsError):
        _create(admin, topic, partitions=2)
    admin.create_partitions({topic: 5})
    with closing(KafkaConsumer(bootstrap_servers=broker.bootstrap)) as consumer:
        assert consumer.partitions_for_topic(topic) == {0, 1, 2, 3, 4}

    admin.delete_topics([topic])
    assert topic not in admin.list_topics()
    with pytest.raises(UnknownTopicOrPartitionError):
        admin.delete_topics([topic])


def test_records_before_an_offset_are_deleted(
    broker: RunningServer, admin: KafkaAdminClient, new_producer: NewProducer, topic: str
) -> None:
    _create(admin, topic, partitions=1)
    partition = TopicPartition(topic, 0)
    producer = new_producer()
    for number in range(10):
        producer.send(topic, b"%d" % number).get(60)

    admin.delete_records({partition: 7})

    assert [record.value for record in _read(broker, [partition], 3)] == [b"7", b"8", b"9"]


def _create(admin: KafkaAdminClient, topic: str, *, partitions: int, configs: dict[str, str] | None = None) -> None:
    wanted = {"num_partitions": partitions, "replication_factor": 1, "configs": configs or {}}
    admin.create_topics({topic: wanted}, wait_for_metadata=True)


def _read(broker: RunningServer, partitions: list[TopicPartition], count: int) -> list[Any]:
    consumer = KafkaConsumer(
        bootstrap_servers=broker.bootstrap,
        consumer_timeout_ms=READ_TIMEOUT_MS,
        max_partition_fetch_bytes=20_000_000,
    )
    with closing(consumer):
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        received: list[Any] = []
        for record in consumer:
            received.append(record)
            if len(received) == count:
                break
        return received
