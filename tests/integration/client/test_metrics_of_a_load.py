"""What the metrics say of a load whose every record, batch, commit and rebalance is known."""

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from kavka.client import Consumer, Producer
from kavka.client.api_errors import RecordTooLargeError
from kavka.client.topic_partition import TopicPartition
from tests.integration.client.test_producer import TIMEOUT_S, create
from tests.integration.client.test_producer_faults import frozen
from tests.support.client_brokers import KAFKA_39, KAFKA_43, KAVKA
from tests.support.processes import let_pass, wait_until
from tests.support.server import RunningServer

BATCHES, RECORDS, VALUE_BYTES, REFUSED = 5, 20, 100, 3
ALL = BATCHES * RECORDS
OVERHEAD_BYTES = 12
"""Of a record without key and headers, at most; a batch's head is 61."""
POLLED = 10
FROZEN_MS = 700


def test_a_producers_metrics_count_its_records_batches_errors_and_waits(broker: RunningServer, topic: str) -> None:
    create(broker.bootstrap, topic, 1, **{"max.message.bytes": "10000"})
    began = time.monotonic()
    with Producer(bootstrap_servers=broker.bootstrap, linger_ms=60_000, delivery_timeout_ms=120_000) as producer:
        for _ in range(BATCHES):
            for _ in range(RECORDS):
                producer.send(topic, b"x" * VALUE_BYTES)
            producer.flush(TIMEOUT_S * 1000)
        metrics = producer.metrics
        per_batch = RECORDS * VALUE_BYTES
        assert per_batch < metrics["batch-size-avg"] <= per_batch + RECORDS * OVERHEAD_BYTES + 61
        assert metrics["batch-size-max"] == pytest.approx(metrics["batch-size-avg"], rel=0.02)
        assert metrics["records-per-request-avg"] == RECORDS
        assert metrics["record-send-total"] == metrics["record-send-total", {"topic": topic}] == ALL
        assert metrics["record-error-total"] == metrics["record-error-rate"] == 0
        for _ in range(REFUSED):
            refused = producer.send(topic, b"x" * 20_000)
            producer.flush(TIMEOUT_S * 1000)
            assert isinstance(refused.exception(0), RecordTooLargeError)
        assert metrics["record-error-total"] == metrics["record-error-total", {"topic": topic}] == REFUSED
        assert 0 < metrics["record-error-rate"] <= REFUSED
        sent = metrics["request-total"]
        with frozen(broker), ThreadPoolExecutor(1) as another:
            producer.send(topic, b"slow")
            flushed = another.submit(producer.flush, TIMEOUT_S * 1000)
            wait_until(lambda: metrics["request-total"] > sent, TIMEOUT_S, "it does not go out")
            let_pass(FROZEN_MS / 1000)
            os.kill(broker.process.pid, signal.SIGCONT)
            flushed.result()
        took_ms = (time.monotonic() - began) * 1000
        assert FROZEN_MS <= metrics["request-latency-max"] <= took_ms
        assert FROZEN_MS / metrics["request-total"] <= metrics["request-latency-avg"] < metrics["request-latency-max"]


@pytest.mark.parametrize(
    ("broker", "protocol"),
    [
        pytest.param(*KAVKA.values, "classic", id="kavka-classic"),
        pytest.param(*KAVKA.values, "consumer", id="kavka-consumer"),
        pytest.param(*KAFKA_39.values, "classic", id="kafka-3.9-classic", marks=KAFKA_39.marks),
        pytest.param(*KAFKA_43.values, "classic", id="kafka-4.3-classic", marks=KAFKA_43.marks),
        pytest.param(*KAFKA_43.values, "consumer", id="kafka-4.3-consumer", marks=KAFKA_43.marks),
    ],
    indirect=["broker"],
)
def test_a_consumers_metrics_tell_its_lag_commits_and_rebalances(
    broker: RunningServer, topic: str, protocol: str
) -> None:
    create(broker.bootstrap, topic, 1)
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for _ in range(ALL):
            producer.send(topic, b"x" * VALUE_BYTES)
    with Consumer(bootstrap_servers=broker.bootstrap, group_id=topic) as another:
        # The coordinator has read what it keeps when it answers this: until then each try to join counts as failed.
        assert another.committed([TopicPartition(topic, 0)]) == {TopicPartition(topic, 0): None}
    began = time.monotonic()
    settings = {"group.id": topic, "group.protocol": protocol, "auto.offset.reset": "earliest"}
    settings |= {"max.poll.records": str(POLLED), "enable.auto.commit": "false"}
    with Consumer(settings, bootstrap_servers=broker.bootstrap) as consumer:
        consumer.subscribe([topic])
        metrics = consumer.metrics
        polled = 0
        while polled < ALL:
            assert len(wait_until(lambda: consumer.poll(500), TIMEOUT_S, "nothing is read")) == POLLED
            polled += POLLED
            assert metrics["records-lag", {"topic": topic, "partition": 0}] == ALL - polled
            consumer.commit_sync()
        took_ms = (time.monotonic() - began) * 1000
        assert metrics["records-lag-max"] == ALL - POLLED
        assert metrics["records-lead-min"] == POLLED
        assert metrics["records-consumed-total"] == ALL
        assert metrics["bytes-consumed-total"] > ALL * VALUE_BYTES
        assert metrics["commit-total"] == ALL // POLLED
        assert 0 < metrics["commit-latency-avg"] <= metrics["commit-latency-max"] <= took_ms
        assert metrics["rebalance-total"] == metrics["assigned-partitions"] == 1
        assert metrics["failed-rebalance-total"] == 0
        assert 0 <= metrics["rebalance-latency-avg"] == metrics["rebalance-latency-max"] <= took_ms
        assert metrics["last-rebalance-seconds-ago"] <= took_ms / 1000
        assert consumer.position(TopicPartition(topic, 0)) == ALL
