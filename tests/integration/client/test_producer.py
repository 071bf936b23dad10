"""The producer against real brokers: what it sends is read back by another client, whole and in order."""

import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from kafka import KafkaConsumer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic

from kavka.client import Producer
from kavka.client.api_errors import (
    AbortableError,
    InvalidTopicError,
    KafkaError,
    KafkaTimeoutError,
    ProducerFencedError,
    RecordTooLargeError,
)
from kavka.client.producer.delivery import RecordMetadata
from kavka.client.producer.errors import TransactionAbortedError, TransactionStateError
from tests.support.accounted_loads import wait_for_markers
from tests.support.client_brokers import NEWER
from tests.support.server import RunningServer
from tests.support.time_limits import within

TIMEOUT_S = 60.0


def create(bootstrap: str, topic: str, partitions: int = 1, **settings: str) -> None:
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as admin:
        admin.create_topics([NewTopic(topic, partitions, 1, topic_configs=settings)])


def read(bootstrap: str, topic: str, partitions: int = 1, isolation: str = "read_committed") -> list[list[Any]]:
    """The records of each partition that are there now.

    No transaction is open any more: the markers of the last ones, which come after their ends are acknowledged, are
    waited for.
    """
    places = [TopicPartition(topic, number) for number in range(partitions)]
    if isolation == "read_committed":
        wait_for_markers(bootstrap, places)
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, isolation_level=isolation, auto_offset_reset="earliest")
    with closing(consumer):
        consumer.assign(places)
        consumer.seek_to_beginning()
        ends = consumer.end_offsets(places)
        found: list[list[Any]] = [[] for _ in places]
        deadline = time.monotonic() + TIMEOUT_S
        while any(consumer.position(place) < ends[place] for place in places) and time.monotonic() < deadline:
            for place, records in consumer.poll(timeout_ms=500).items():
                found[place.partition] += records
        return found


@pytest.fixture
def producer(bootstrap: str) -> Iterator[Producer]:
    with Producer(bootstrap_servers=bootstrap) as made:
        yield made


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_are_read_back_as_they_were_sent(bootstrap: str, topic: str, codec: str) -> None:
    create(bootstrap, topic, 3)
    headers = [("a", b"1"), ("a", None), ("ž", b"")]
    with Producer({"bootstrap.servers": bootstrap, "compression.type": codec}) as producer:
        futures = [
            producer.send(topic, b"%d " % number * 30, key=b"%d" % (number % 50), timestamp_ms=10**12 + number)
            for number in range(3000)
        ]
        futures.append(producer.send(topic, None, key=b"null", headers=headers))
        futures.append(producer.send(topic, b"", partition=2))
        placed = [future.result(TIMEOUT_S) for future in futures]
    found = read(bootstrap, topic, 3)
    by_place = {(row.partition, row.offset): row for rows in found for row in rows}
    assert len(by_place) == 3002
    for number, metadata in enumerate(placed[:3000]):
        row = by_place[metadata.partition, metadata.offset]
        assert (row.key, row.value) == (b"%d" % (number % 50), b"%d " % number * 30)
        assert row.timestamp == metadata.timestamp_ms == 10**12 + number
    null, empty = (by_place[each.partition, each.offset] for each in placed[3000:])
    assert (null.value, null.key, list(null.headers)) == (None, b"null", headers)
    assert (empty.value, empty.key, empty.partition) == (b"", None, 2)
    for rows in found:
        numbers = [int(row.value.split()[0]) for row in rows if row.value]
        assert numbers == sorted(numbers)


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_each_acknowledgement_comes_once_and_in_order(bootstrap: str, topic: str, acks: str) -> None:
    create(bootstrap, topic, 2)
    heard: list[tuple[int, int]] = []

    def note(metadata: RecordMetadata, error: KafkaError | None) -> None:
        assert error is None
        heard.append((metadata.partition, metadata.offset))

    with Producer(bootstrap_servers=bootstrap, acks=acks, linger_ms=0, batch_size=500) as producer:
        for number in range(1000):
            producer.send(topic, b"%d" % number, partition=number % 2, on_delivery=note)
        producer.flush(TIMEOUT_S * 1000)
        assert len(heard) == 1000
    if acks == "0":
        assert set(heard) == {(0, -1), (1, -1)}
    else:
        assert [offset for partition, offset in heard if partition == 1] == list(range(500))


def test_an_unknown_topic_is_given_up_in_time(bootstrap: str) -> None:
    with Producer(bootstrap_servers=bootstrap, max_block_ms=60_000) as producer, pytest.raises(InvalidTopicError):
        producer.send("no/such/topic", b"").result(TIMEOUT_S)
    with Producer(bootstrap_servers=bootstrap, max_block_ms=500) as producer:
        with within(500, least_ms=400):
            future = producer.send("birds", b"", partition=10_000)
        with pytest.raises(KafkaTimeoutError, match="birds"):
            future.result(0)


def test_too_large_is_said_by_this_side_or_by_the_broker(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic, 1, **{"max.message.bytes": "1000"})
    heard: list[KafkaError | None] = []
    with Producer(bootstrap_servers=bootstrap, max_request_size=5000) as producer:
        large = producer.send(topic, b"x" * 5000, on_delivery=lambda _, error: heard.append(error))
        assert isinstance(large.exception(0), RecordTooLargeError)
        assert isinstance(heard[0], RecordTooLargeError)
        refused = producer.send(topic, b"x" * 2000)
        with pytest.raises(RecordTooLargeError):
            refused.result(TIMEOUT_S)
        assert producer.send(topic, b"fits").result(TIMEOUT_S).offset == 0


def test_a_batch_that_is_too_large_is_split(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic, 1, **{"max.message.bytes": "2000"})
    with Producer(bootstrap_servers=bootstrap, linger_ms=200) as producer:
        futures = [producer.send(topic, b"%d " % number + b"x" * 90) for number in range(300)]
        offsets = [future.result(TIMEOUT_S).offset for future in futures]
        assert producer.metrics["batch-split-total"] > 0
    (rows,) = read(bootstrap, topic)
    assert offsets == list(range(300))
    assert [int(row.value.split()[0]) for row in rows] == offsets


def test_what_lingers_is_sent_when_its_memory_is_needed(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic, 4)
    with Producer(
        bootstrap_servers=bootstrap, linger_ms=60_000, delivery_timeout_ms=120_000, buffer_memory=40_000
    ) as producer:
        futures = [producer.send(topic, b"", partition=number % 4) for number in range(8)]
        assert all(future.delivery.error(0) is None for future in futures)
        assert futures[0].result(TIMEOUT_S / 2).offset == 0


def test_metrics_have_kafkas_names(bootstrap: str, topic: str, producer: Producer) -> None:
    create(bootstrap, topic)
    for _ in range(100):
        producer.send(topic, b"x" * 10)
    producer.flush()
    metrics = producer.metrics
    assert metrics["record-send-total"] == metrics["record-send-total", {"topic": topic}] == 100
    assert metrics["batch-size-avg"] > 100
    assert metrics["requests-in-flight"] == metrics["record-error-total"] == 0
    assert metrics["buffer-available-bytes"] == metrics["buffer-total-bytes"] == 33_554_432


def transactional(bootstrap: str, topic: str, **settings: Any) -> Producer:
    made = Producer(bootstrap_servers=bootstrap, transactional_id=f"id-{topic}", **settings)
    made.init_transactions()
    return made


def test_a_transaction_counts_whole_or_not_at_all(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic, 2)
    with transactional(bootstrap, topic) as producer:
        with pytest.raises(TransactionStateError):
            producer.send(topic, b"too early")
        for name in ("committed", "aborted", "again"):
            producer.begin_transaction()
            futures = [
                producer.send(topic, b"%s %d" % (name.encode(), number), partition=number % 2) for number in range(20)
            ]
            if name == "aborted":
                producer.flush()
                producer.abort_transaction()
            else:
                producer.commit_transaction()
            assert [future.result(0).offset >= 0 for future in futures] == [True] * 20
        producer.begin_transaction()
        unsent = producer.send(topic, b"never")
        producer.abort_transaction()
        assert unsent.exception(TIMEOUT_S) is None or isinstance(unsent.exception(0), TransactionAbortedError)
        producer.begin_transaction()
        producer.commit_transaction()
    for rows in read(bootstrap, topic, 2):
        assert [row.value.split()[0] for row in rows] == [b"committed"] * 10 + [b"again"] * 10
        numbers = [int(row.value.split()[1]) for row in rows]
        assert numbers == sorted(numbers[:10]) + sorted(numbers[10:])


def test_a_record_that_could_not_be_sent_keeps_its_transaction_from_being_committed(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    with transactional(bootstrap, topic, max_request_size=5000) as producer:
        producer.begin_transaction()
        producer.send(topic, b"lacks one")
        assert isinstance(producer.send(topic, b"x" * 6000).exception(0), RecordTooLargeError)
        with pytest.raises(AbortableError):
            producer.commit_transaction()
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send(topic, b"whole")
        producer.commit_transaction()
    (rows,) = read(bootstrap, topic)
    assert [row.value for row in rows] == [b"whole"]


def test_who_comes_later_with_the_id_fences_who_was_there(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    with transactional(bootstrap, topic) as former:
        former.begin_transaction()
        former.send(topic, b"former").result(TIMEOUT_S)
        with transactional(bootstrap, topic) as later:
            late = former.send(topic, b"former, too late")
            with pytest.raises((ProducerFencedError, AbortableError)) as caught:
                former.commit_transaction()
            assert late.exception(TIMEOUT_S) is not None
            if not isinstance(caught.value, ProducerFencedError):
                with pytest.raises(ProducerFencedError):
                    former.abort_transaction()
            later.begin_transaction()
            later.send(topic, b"later")
            later.commit_transaction()
    (rows,) = read(bootstrap, topic)
    assert [row.value for row in rows] == [b"later"]


def test_offsets_count_with_the_transaction(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    group = f"group-{topic}"
    with transactional(bootstrap, topic) as producer:
        for offset, commits in ((5, True), (9, False)):
            producer.begin_transaction()
            producer.send(topic, b"")
            producer.send_offsets_to_transaction({(topic, 0): offset}, group)
            if commits:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
    with closing(KafkaConsumer(bootstrap_servers=bootstrap, group_id=group)) as consumer:
        assert consumer.committed(TopicPartition(topic, 0)) == 5


def test_what_a_close_finds_open_is_aborted(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    with transactional(bootstrap, topic) as producer:
        producer.begin_transaction()
        future = producer.send(topic, b"open")
    assert future.done()
    with transactional(bootstrap, topic) as producer:
        producer.begin_transaction()
        producer.send(topic, b"next")
        producer.commit_transaction()
    (rows,) = read(bootstrap, topic)
    assert [row.value for row in rows] == [b"next"]


@pytest.mark.parametrize("broker", NEWER, indirect=True)
def test_a_killed_broker_comes_back_to_records_in_order_and_once(broker: RunningServer, topic: str) -> None:
    create(broker.bootstrap, topic, 2)
    heard: list[tuple[int, int]] = []

    def note(metadata: RecordMetadata, error: KafkaError | None) -> None:
        assert error is None
        heard.append((metadata.partition, metadata.offset))

    with Producer(
        bootstrap_servers=broker.bootstrap, linger_ms=1, batch_size=1000, delivery_timeout_ms=600_000
    ) as producer:
        sent = 0
        for round_ in range(3):
            for _ in range(3000):
                producer.send(topic, b"%d" % sent, partition=sent % 2, on_delivery=note)
                sent += 1
            if round_ < 2:
                broker.kill()
                broker.start()
        producer.flush(600_000)
    for partition, rows in enumerate(read(broker.bootstrap, topic, 2)):
        assert [int(row.value) for row in rows] == list(range(partition, sent, 2))
        assert [offset for place, offset in heard if place == partition] == list(range(sent // 2))
