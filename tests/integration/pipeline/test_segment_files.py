"""The files of a broker that serves hold what its consumers read: Kavka's, and Apache Kafka's."""

import os
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kavka.client.consumer.consumer import Consumer
from kavka.client.topic_partition import TopicPartition
from kavka.pipeline.arrow.rows import FIELDS, record_batch
from kavka.pipeline.files.bounds import bounds
from kavka.pipeline.files.isolation import READ_COMMITTED, READ_UNCOMMITTED
from kavka.pipeline.files.partition_reader import read
from tests.support.kafka_process import KRaftKafka
from tests.support.kavka_process import KavkaProcess
from tests.support.processes import wait_until
from tests.support.transactions import end_offset, settle

COLUMNS = [field.name for field in FIELDS]
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
SEGMENT_BYTES = 1 << 20
A_MINUTE_MS = 60_000
TRANSACTION_S = 60


def producer(bootstrap: str, **settings: Any) -> Producer:
    made = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, **settings})
    if "transactional.id" in settings:
        made.init_transactions(TRANSACTION_S)
    return made


def produce(by: Producer, topic: str, name: str, count: int) -> None:
    for number in range(count):
        by.produce(
            topic,
            None if number % 7 == 0 else f"{name} {number}".encode() + os.urandom(1000),
            None if number % 5 == 0 else b"key %d" % number,
            timestamp=1_700_000_000_000 + number,
            headers=[("name", name), ("none", None)] if number % 2 else None,
        )
        by.poll(0)
    assert by.flush(TRANSACTION_S) == 0


def by_tcp(bootstrap: str, topic: str, isolation: str, end: int) -> list[Any]:
    found: list[Any] = []
    partition = TopicPartition(topic, 0)
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", isolation_level=isolation) as reader:
        reader.assign([partition])
        while reader.position(partition) < end:
            for columns in reader.poll_columns(A_MINUTE_MS):
                found += record_batch(columns, COLUMNS).to_pylist()
    return [row for row in found if row["offset"] < end]


def wait_for_bounds(directories: list[str], topic: str, isolation: str, expected: range) -> None:
    """What the broker writes of its high watermark every five seconds is enough to go by."""

    def are_known() -> bool:
        return bounds(directories, topic, 0, isolation) == expected

    wait_until(are_known, 120, f"bounds of {topic} are not {expected}")


@pytest.mark.parametrize("served_by", ["broker", pytest.param("kafka43", marks=[pytest.mark.java, pytest.mark.slow])])
def test_files_hold_what_consumers_read_at_both_isolation_levels(
    served_by: str, topic: str, request: pytest.FixtureRequest
) -> None:
    broker: KavkaProcess | KRaftKafka = request.getfixturevalue(served_by)
    settings = {"segment.bytes": str(SEGMENT_BYTES)}
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    created = admin.create_topics([NewTopic(topic, 1, 1, config=settings)])
    created[topic].result(TRANSACTION_S)
    for codec in CODECS:
        produce(producer(broker.bootstrap, **{"compression.type": codec}), topic, codec, 200)
    writer = producer(broker.bootstrap, **{"transactional.id": f"{topic} done"})
    commit, abort = writer.commit_transaction, writer.abort_transaction
    for step in (commit, abort, commit, abort):
        writer.begin_transaction()
        produce(writer, topic, step.__name__, 300)
        step(TRANSACTION_S)
    settle(broker, topic)
    other = producer(broker.bootstrap, **{"transactional.id": f"{topic} open"})
    other.begin_transaction()
    produce(other, topic, "open", 10)
    produce(producer(broker.bootstrap), topic, "behind", 50)

    directories = [str(broker.log_dir)]
    for isolation, level in ((READ_UNCOMMITTED, 0), (READ_COMMITTED, 1)):
        end = end_offset(broker, topic, level)
        rows = [row for batch in read(directories, topic, 0, 0, end, isolation, COLUMNS) for row in batch.to_pylist()]
        assert rows == by_tcp(broker.bootstrap, topic, isolation, end)
        wait_for_bounds(directories, topic, isolation, range(end))
    assert len(list((broker.log_dir / f"{topic}-0").glob("*.log"))) > 1
    other.abort_transaction(TRANSACTION_S)
