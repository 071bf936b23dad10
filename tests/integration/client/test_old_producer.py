"""The 0.8 producer's settings against real brokers: send that waits and raises, queues that count records."""

import time
from typing import Any

import pytest

from kavka.client import Producer
from kavka.client.api_errors import KafkaError, KafkaTimeoutError
from kavka.client.producer.delivery import RecordMetadata
from kavka.client.producer.errors import FailedToSendMessageError, QueueFullError
from tests.integration.client.test_producer import TIMEOUT_S, create, read
from tests.support.client_brokers import KAVKA
from tests.support.server import RunningServer

LONG_MS = 60_000


def old(bootstrap: str, **settings: Any) -> Producer:
    given = {name.replace("_", "."): value for name, value in settings.items()}
    return Producer({"metadata.broker.list": bootstrap, "request.required.acks": "-1", **given})


def test_sync_has_delivered_when_it_returns(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    encoder = "kafka.serializer.StringEncoder"
    with old(bootstrap, serializer_class=encoder, compression_codec="gzip", compressed_topics=topic) as producer:
        for number in range(5):
            assert producer.send(topic, f"visit {number}").result(0).offset == number
        futures = producer.send_many(topic, [f"visit {number}" for number in range(5, 8)])
        assert [future.result(0).offset for future in futures] == [5, 6, 7]
    (rows,) = read(bootstrap, topic)
    assert [row.value for row in rows] == [b"visit %d" % number for number in range(8)]


def test_sync_raises_after_its_retries(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic, 1, **{"max.message.bytes": "1000"})
    with old(bootstrap, message_send_max_retries=1) as producer:
        with pytest.raises(FailedToSendMessageError, match=topic):
            producer.send(topic, b"x" * 5000)
        assert producer.send(topic, b"fits").result(0).offset == 0


def test_async_hands_errors_to_the_callback(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic, 1, **{"max.message.bytes": "1000"})
    heard: list[KafkaError | None] = []

    def note(_: RecordMetadata, error: KafkaError | None) -> None:
        heard.append(error)

    with old(bootstrap, producer_type="async", queue_buffering_max_ms=50) as producer:
        producer.send(topic, b"x" * 5000, on_delivery=note)
        producer.flush()
        producer.send(topic, b"fits", on_delivery=note)
    assert [error is None for error in heard] == [False, True]


def test_async_sends_as_soon_as_a_batch_has_its_records(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic, 3)
    with old(bootstrap, producer_type="async", queue_buffering_max_ms=LONG_MS, batch_num_messages=6) as producer:
        producer.partitions_for(topic)
        began = time.monotonic()
        futures = [producer.send(topic, b"", partition=number % 3) for number in range(6)]
        for future in futures:
            future.result(TIMEOUT_S)
        assert time.monotonic() - began < LONG_MS / 1000
        lonely = producer.send(topic, b"")
        with pytest.raises(KafkaTimeoutError):
            lonely.result(0.5)


def test_async_lingers_no_longer_than_it_may(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    with old(bootstrap, producer_type="async", queue_buffering_max_ms=200) as producer:
        assert producer.send(topic, b"").result(TIMEOUT_S).offset == 0


@pytest.mark.parametrize("broker", [KAVKA], indirect=True)
@pytest.mark.parametrize("timeout_ms", [0, 300, -1])
def test_a_full_queue_drops_waits_or_waits_without_end(broker: RunningServer, topic: str, timeout_ms: int) -> None:
    create(broker.bootstrap, topic)
    producer = old(
        broker.bootstrap,
        producer_type="async",
        queue_buffering_max_ms=LONG_MS,
        queue_buffering_max_messages=3,
        queue_enqueue_timeout_ms=timeout_ms,
    )
    with producer:
        producer.partitions_for(topic)
        if timeout_ms < 0:
            # Who waits has the queue sent.
            futures = [producer.send(topic, b"") for _ in range(10)]
            producer.flush()
            assert [future.result(0).offset for future in futures] == list(range(10))
            return
        broker.kill()
        for _ in range(3):
            producer.send(topic, b"")
        began = time.monotonic()
        with pytest.raises(QueueFullError):
            producer.send(topic, b"")
        assert time.monotonic() - began >= timeout_ms / 1000
        broker.start()
        producer.flush()


def test_metadata_are_asked_for_before_each_record(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    with old(bootstrap, topic_metadata_refresh_interval_ms=0) as producer:
        versions = []
        for _ in range(3):
            producer.send(topic, b"")
            versions.append(producer._metadata.cluster.version)
    assert versions == sorted(set(versions))
