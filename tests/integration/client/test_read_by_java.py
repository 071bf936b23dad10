"""Java's consumer reads what our producer sent, and ours what Java's has: every codec, headers, nulls, transactions."""

from typing import Any

import pytest

from kavka.client import Consumer, Producer
from tests.integration.client.test_producer import TIMEOUT_S, create
from tests.support.client_brokers import KAVKA
from tests.support.java import run_java
from tests.support.java_classes import SOURCES
from tests.support.processes import wait_until
from tests.support.server import RunningServer
from tests.support.transactions import settle

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
PARTITIONS = 3
EACH = 30

pytestmark = pytest.mark.java


@pytest.mark.parametrize("broker", [KAVKA], indirect=True)
@pytest.mark.parametrize("transactional", [False, True], ids=["idempotent", "transactional"])
def test_javas_consumer_reads_every_record(broker: RunningServer, topic: str, transactional: bool) -> None:
    create(broker.bootstrap, topic, PARTITIONS)
    expected = set()
    for codec in CODECS:
        extra: dict[str, Any] = {"transactional_id": f"{topic}-{codec}"} if transactional else {}
        with Producer(bootstrap_servers=broker.bootstrap, compression_type=codec, **extra) as producer:
            if transactional:
                producer.init_transactions()
                producer.begin_transaction()
            for number in range(EACH):
                key, value = f"{codec}-{number}", None if number % 10 == 0 else f"value{number}" * 20
                headers = [("codec", codec.encode())] if number % 2 else []
                future = producer.send(
                    topic, None if value is None else value.encode(), key=key.encode(), headers=headers
                )
                expected.add((key, "null" if value is None else value, codec if headers else "-"))
            if transactional:
                producer.commit_transaction()
            assert future.result(TIMEOUT_S).offset >= 0
    source = str(SOURCES / "EveryConsumer.java")
    lines = run_java(source, [broker.bootstrap, topic, str(len(expected))], bundle="kafka-4.3").splitlines()
    found = [tuple(line.split(" ")[2:5]) for line in lines if len(line.split(" ")) == 5]
    assert len(found) == len(expected)
    assert set(found) == expected


def read(broker: RunningServer, topic: str, isolation: str) -> list[Any]:
    """All there is, as far as readers of this isolation see it."""
    records: list[Any] = []
    with Consumer(bootstrap_servers=broker.bootstrap, isolation_level=isolation) as consumer:
        places = [(topic, number) for number in range(PARTITIONS)]
        consumer.assign(places)
        consumer.seek_to_beginning()
        ends = consumer.end_offsets(consumer.assignment())

        def at_the_end() -> bool:
            records.extend(consumer.poll(200))
            return all(consumer.position(place) >= end for place, end in ends.items())

        wait_until(at_the_end, TIMEOUT_S, lambda: f"{len(records)} records")
    return records


@pytest.mark.parametrize("broker", [KAVKA], indirect=True)
def test_javas_records_are_read_as_they_were_sent(broker: RunningServer, topic: str) -> None:
    create(broker.bootstrap, topic, PARTITIONS)
    arguments = [broker.bootstrap, topic, str(EACH), ",".join(CODECS), topic]
    run_java(str(SOURCES / "EveryProducer.java"), arguments, bundle="kafka-4.3")
    sent: set[tuple[int, bytes | None, bytes | None, Any]] = set()
    for codec in CODECS:
        for number in range(EACH):
            place, headers = number % PARTITIONS, (("codec", codec.encode()),)
            sent.add((place, b"key-%d" % number, f"{codec}-{number}".encode(), headers))
            key = None if number % 7 == 0 else b"key-%d" % number
            sent.add((place, key, None if number % 5 == 0 else b"committed-%d" % number, headers))
    settle(broker, topic, PARTITIONS)
    committed = read(broker, topic, "read_committed")
    assert {(row.partition, row.key, row.value, tuple(row.headers)) for row in committed} == sent
    assert len(committed) == 2 * EACH * len(CODECS)
    everything = read(broker, topic, "read_uncommitted")
    aborted = [row.value for row in everything if (row.value or b"").startswith(b"aborted")]
    assert len(aborted) == (EACH - EACH // 5) * len(CODECS)
    assert len(everything) == 3 * EACH * len(CODECS)
