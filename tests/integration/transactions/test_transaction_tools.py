"""Kafka's TransactionsCommand, and its VerifiableProducer and VerifiableConsumer, against a real broker process."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from kavka.protocol.records.builder import build_batch
from kavka.protocol.records.record import Record
from tests.support.java import run_java
from tests.support.java_tools import JavaTools
from tests.support.processes import wait_until
from tests.support.server import RunningServer
from tests.support.topics import create_topic
from tests.support.transactions import (
    READ_COMMITTED,
    TransactionalProducers,
    end_offset,
    read_committed,
    read_uncommitted,
    settle,
)
from tests.support.wire import PRODUCE_VERSION, Wire, produce_request

pytestmark = pytest.mark.java
# Only so can a transaction hang at all: its batch is taken without asking the coordinator.
BROKER_SETTINGS = {"transaction.partition.verification.enable": "false", "group.initial.rebalance.delay.ms": "0"}
COMMAND = "org.apache.kafka.tools.TransactionsCommand"
HOUR_MS = 3_600_000
STRANGER = 77_777


@pytest.fixture(scope="module", params=["kafka-4.3", "kafka-3.9"])
def tools(request: pytest.FixtureRequest) -> Iterator[JavaTools]:
    with JavaTools(request.param) as running:
        yield running


def test_open_and_ended_transactions_are_listed_and_described(
    broker: RunningServer, producers: TransactionalProducers, tools: JavaTools, topic: str
) -> None:
    create_topic(broker, topic, partitions=2)
    busy, idle = f"{topic}-busy", f"{topic}-idle"
    producers.open(busy, busy, transaction_timeout_ms=654_321)
    producers.open(idle, idle)
    producers.do(f"{idle} begin", f"{idle} send {topic} 1 a", f"{idle} commit")
    settle(broker, topic, partitions=2)
    producers.do(f"{busy} begin", f"{busy} send {topic} 0 a", f"{busy} send {topic} 1 b", f"{busy} flush")

    listed = {row["TransactionalId"]: row for row in _table(_ask(broker, tools, "list"))}
    described = _table(_ask(broker, tools, "describe", "--transactional-id", busy))
    ended = _table(_ask(broker, tools, "describe", "--transactional-id", idle))
    (writing,) = _table(_ask(broker, tools, "describe-producers", "--topic", topic, "--partition", "0"))
    producers.do(f"{busy} commit")

    assert listed[busy]["TransactionState"] == "Ongoing"
    assert listed[idle]["TransactionState"] == "CompleteCommit"
    assert [row["ProducerId"] for row in described] == [listed[busy]["ProducerId"]]
    assert described[0]["TransactionState"] == "Ongoing"
    assert described[0]["TransactionTimeoutMs"] == "654321"
    assert set(described[0]["TopicPartitions"].split(",")) == {f"{topic}-0", f"{topic}-1"}
    assert [(row["TransactionState"], row.get("TopicPartitions")) for row in ended] == [("CompleteCommit", None)]
    assert writing["ProducerId"] == listed[busy]["ProducerId"]
    assert writing["CurrentTransactionStartOffset"] == "0"


def test_a_hanging_transaction_is_found_and_aborted(broker: RunningServer, tools: JavaTools, topic: str) -> None:
    create_topic(broker, topic)
    _leave_hanging(broker, topic)
    before = end_offset(broker, topic, READ_COMMITTED)

    found = _table(_ask(broker, tools, "find-hanging", "--topic", topic, "--max-transaction-timeout", "1"))
    _ask(broker, tools, "abort", "--topic", topic, "--partition", "0", "--start-offset", "0")
    again = _table(_ask(broker, tools, "find-hanging", "--topic", topic, "--max-transaction-timeout", "1"))

    assert before == 0
    assert [(row["Topic"], row["Partition"], row["ProducerId"]) for row in found] == [(topic, "0", str(STRANGER))]
    assert again == []
    assert end_offset(broker, topic, READ_COMMITTED) == 2
    assert (read_committed(broker, topic), read_uncommitted(broker, topic)) == ([], ["hangs"])


def test_an_unknown_transactional_id_is_said_to_be(broker: RunningServer, tools: JavaTools) -> None:
    with pytest.raises(Exception, match=r"transactional.?id|TransactionalIdNotFound"):
        _ask(broker, tools, "describe", "--transactional-id", "nobody")


def test_what_the_verifiable_producer_sent_the_verifiable_consumer_reads(broker: RunningServer, topic: str) -> None:
    """The producer is idempotent by default, the consumer reads in a group and commits."""
    create_topic(broker, topic, partitions=3)
    sending = ["--bootstrap-server", broker.bootstrap, "--topic", topic, "--max-messages", "1000", "--acks", "-1"]
    sent = _events(run_java("org.apache.kafka.tools.VerifiableProducer", sending))
    reading = ["--bootstrap-server", broker.bootstrap, "--topic", topic, "--group-id", f"group-{topic}"]
    reading += ["--max-messages", "1000", "--reset-policy", "earliest"]
    read = _events(run_java("org.apache.kafka.tools.VerifiableConsumer", reading))

    assert [(event["sent"], event["acked"]) for event in sent if event["name"] == "tool_data"] == [(1000, 1000)]
    assert sum(event["count"] for event in read if event["name"] == "records_consumed") == 1000
    last = [event for event in read if event["name"] == "offsets_committed"][-1]
    assert last["success"]
    assert all(event["name"] != "producer_send_error" for event in sent)


def _leave_hanging(broker: RunningServer, topic: str) -> None:
    """A transactional batch, an hour old, of a producer that no coordinator knows."""
    written_ms = time.time_ns() // 1_000_000 - HOUR_MS
    record = Record(0, written_ms, None, b"hangs", ())
    batch = build_batch([record], producer_id=STRANGER, producer_epoch=0, base_sequence=0, transactional=True)
    request = produce_request(topic, batch, acks=-1)
    request.transactional_id = f"stranger-{topic}"
    with Wire(broker.host, broker.port) as wire:
        (answer,) = wire.ask(request, PRODUCE_VERSION).responses[0].partition_responses
    assert answer.error_code == 0, answer
    wait_until(lambda: read_uncommitted(broker, topic) == ["hangs"], 60, "the batch is not there")


def _ask(broker: RunningServer, tools: JavaTools, *words: str) -> str:
    return tools.run(COMMAND, "--bootstrap-server", broker.bootstrap, *words)


def _table(text: str) -> list[dict[str, str]]:
    """The rows of a printed table by its headings; no heading or value has a space, the last value may be empty."""
    lines = [line.split() for line in text.splitlines() if line.strip() and not line.startswith("[")]
    if not lines:
        return []
    return [dict(zip(lines[0], line, strict=False)) for line in lines[1:]]


def _events(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]
