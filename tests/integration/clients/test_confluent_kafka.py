"""confluent-kafka (librdkafka) against a real broker process: the C client behind most languages' clients."""

from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from tests.support.sample_records import FIRST_TIMESTAMP_MS, SampleRecord, sample_records
from tests.support.server import RunningServer
from tests.support.topics import create_topic

TIMEOUT_S = 60.0
CREATE_TIME, LOG_APPEND_TIME = 1, 2


@pytest.mark.round_trip
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("idempotent", [False, True], ids=["plain", "idempotent"])
def test_records_come_back_as_they_were_sent(broker: RunningServer, topic: str, codec: str, idempotent: bool) -> None:
    create_topic(broker, topic, partitions=1)
    sent = sample_records(500)
    config = {"compression.type": codec, "enable.idempotence": idempotent, "linger.ms": 20}
    delivered = _produce(broker, topic, sent, config)

    received = _read(broker, topic, [0], len(sent))

    assert [message.offset() for message in delivered] == list(range(len(sent)))
    assert [message.offset() for message in received] == list(range(len(sent)))
    assert [_sample(message) for message in received] == sent


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_kind_of_acknowledgement_delivers(broker: RunningServer, topic: str, acks: str) -> None:
    create_topic(broker, topic, partitions=3)
    # With acks=0 a partition that is just being made loses what comes; a question to each waits for it.
    consumer = _consumer(broker)
    ends = [consumer.get_watermark_offsets(TopicPartition(topic, partition), TIMEOUT_S) for partition in range(3)]
    consumer.close()
    assert ends == [(0, 0)] * 3
    producer = Producer({"bootstrap.servers": broker.bootstrap, "acks": acks})
    for number in range(900):
        producer.produce(topic, b"%d" % number, partition=number % 3)
    assert producer.flush(TIMEOUT_S) == 0

    received = _read(broker, topic, [0, 1, 2], 900)

    by_partition = {
        partition: [int(message.value() or b"") for message in received if message.partition() == partition]
        for partition in range(3)
    }
    assert by_partition == {partition: list(range(partition, 900, 3)) for partition in range(3)}


def test_one_message_at_a_time_is_acknowledged_one_at_a_time(broker: RunningServer, topic: str) -> None:
    """The synchronous way to use it: produce, flush, look at the report."""
    create_topic(broker, topic, partitions=1)
    config = {"max.in.flight": 1, "batch.num.messages": 1, "linger.ms": 0}
    offsets = [_produce(broker, topic, [record], config)[0].offset() for record in sample_records(20)]
    assert offsets == list(range(20))


def test_ten_megabytes_pass_only_where_the_topic_lets_them(broker: RunningServer, topic: str) -> None:
    create_topic(broker, topic, partitions=1)
    create_topic(broker, f"{topic}.big", partitions=1, configs={"max.message.bytes": "12000000"})
    big = SampleRecord(b"k", bytes(range(250)) * 40_000, (), FIRST_TIMESTAMP_MS)
    config = {"message.max.bytes": 20_000_000}
    with pytest.raises(KafkaException) as refused:
        _produce(broker, topic, [big], config)
    _produce(broker, f"{topic}.big", [big], config)

    (received,) = _read(broker, f"{topic}.big", [0], 1)

    assert refused.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    assert _sample(received) == big


def test_log_append_time_is_the_brokers(broker: RunningServer, topic: str) -> None:
    create_topic(broker, topic, partitions=1, configs={"message.timestamp.type": "LogAppendTime"})
    (delivered,) = _produce(broker, topic, sample_records(1), {})
    (received,) = _read(broker, topic, [0], 1)

    assert received.timestamp()[0] == LOG_APPEND_TIME
    assert received.timestamp() == delivered.timestamp()
    assert received.timestamp()[1] > FIRST_TIMESTAMP_MS + 86_400_000


def test_offsets_are_found_by_time(broker: RunningServer, topic: str) -> None:
    create_topic(broker, topic, partitions=1)
    for number in range(10):
        record = SampleRecord(None, b"x", (), FIRST_TIMESTAMP_MS + number * 1000)
        _produce(broker, topic, [record], {})
    consumer = _consumer(broker)
    (found,) = consumer.offsets_for_times([TopicPartition(topic, 0, FIRST_TIMESTAMP_MS + 3500)], TIMEOUT_S)
    ends = consumer.get_watermark_offsets(TopicPartition(topic, 0), TIMEOUT_S)
    consumer.close()

    assert found.offset == 4
    assert ends == (0, 10)


def test_reading_starts_at_any_offset(broker: RunningServer, topic: str) -> None:
    """Also in the middle of a batch: the broker sends it whole, the client skips what it didn't ask for."""
    create_topic(broker, topic, partitions=1)
    sent = sample_records(100)
    _produce(broker, topic, sent, {"linger.ms": 50})
    for start in (0, 1, 50, 99):
        received = _read(broker, topic, [0], len(sent) - start, start=start)
        assert [_sample(message) for message in received] == sent[start:]


def _produce(broker: RunningServer, topic: str, records: list[SampleRecord], config: dict[str, Any]) -> list[Message]:
    """The delivered messages, in the order produced. Raises KafkaException for the first that failed."""
    reports: list[tuple[KafkaError | None, Message]] = []
    producer = Producer({"bootstrap.servers": broker.bootstrap, **config})
    for record in records:
        producer.produce(
            topic,
            record.value,
            record.key,
            partition=0,
            timestamp=record.timestamp_ms,
            headers=list(record.headers),
            on_delivery=lambda error, message: reports.append((error, message)),
        )
    assert producer.flush(TIMEOUT_S) == 0
    for error, _ in reports:
        if error is not None:
            raise KafkaException(error)
    return [message for _, message in reports]


def _consumer(broker: RunningServer) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            # The client wants a name; nothing is committed and no group joined.
            "group.id": "assigned-by-hand",
            "enable.auto.commit": False,
            "check.crcs": True,
            "fetch.message.max.bytes": 20_000_000,
        }
    )


def _read(broker: RunningServer, topic: str, partitions: list[int], count: int, *, start: int = 0) -> list[Message]:
    consumer = _consumer(broker)
    consumer.assign([TopicPartition(topic, partition, start) for partition in partitions])
    received: list[Message] = []
    while len(received) < count:
        message = consumer.poll(TIMEOUT_S)
        assert message is not None, f"only {len(received)} of {count} came"
        assert message.error() is None, message.error()
        received.append(message)
    consumer.close()
    return received


def _sample(message: Message) -> SampleRecord:
    headers: Any = message.headers() or ()
    return SampleRecord(message.key(), message.value(), tuple(headers), message.timestamp()[1])
