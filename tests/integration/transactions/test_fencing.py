"""One transactional id, several producers, of which only the newest may write; and what takes too long."""

import time

import pytest
from confluent_kafka import KafkaException, Producer

from kavka.protocol.errors import ErrorCode
from tests.support.processes import wait_until
from tests.support.server import RunningServer
from tests.support.topics import create_topic
from tests.support.transactions import (
    READ_COMMITTED,
    READ_UNCOMMITTED,
    TransactionalProducers,
    committed_offset,
    end_offset,
    read_committed,
    read_uncommitted,
    settle,
    stable_offset,
)

pytestmark = pytest.mark.java
BROKER_SETTINGS = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "200"}
FENCED = {"ProducerFencedException", "InvalidProducerEpochException"}
TIMEOUT_S = 60.0
SHORT_MS = 4000


def test_a_newer_producer_aborts_what_its_predecessor_left_and_fences_it(
    broker: RunningServer, client: TransactionalProducers, topic: str
) -> None:
    create_topic(broker, topic)
    zombie, heir = f"{topic}-zombie", f"{topic}-heir"
    client.open(zombie, topic)
    client.do(f"{zombie} begin", f"{zombie} send {topic} 0 lost", f"{zombie} flush")
    client.open(heir, topic)
    client.do(f"{heir} begin", f"{heir} send {topic} 0 kept", f"{heir} commit")

    client.do(f"{zombie} send {topic} 0 late")
    failed = client.fail(f"{zombie} commit")
    client.do(f"{heir} begin", f"{heir} send {topic} 0 more", f"{heir} commit")
    settle(broker, topic)

    assert failed in FENCED | {"KafkaException"}
    assert read_committed(broker, topic) == ["kept", "more"]
    assert read_uncommitted(broker, topic) == ["lost", "kept", "more"]


def test_a_fenced_producer_commits_neither_a_transaction_nor_offsets(
    broker: RunningServer, producers: TransactionalProducers, topic: str
) -> None:
    create_topic(broker, topic)
    zombie, heir, group = f"{topic}-zombie", f"{topic}-heir", f"group-{topic}"
    producers.open(zombie, topic)
    producers.do(f"{zombie} begin", f"{zombie} send {topic} 0 lost", f"{zombie} offsets {group} {topic} 0 1")
    producers.open(heir, topic)

    assert producers.fail(f"{zombie} commit") in FENCED
    settle(broker, topic)
    assert read_committed(broker, topic) == []
    assert stable_offset(broker, group, topic) == -1


def test_confluent_producers_fence_each_other(broker: RunningServer, topic: str) -> None:
    create_topic(broker, topic)
    zombie = _confluent(broker, topic)
    zombie.begin_transaction()
    zombie.produce(topic, b"lost", partition=0)
    zombie.flush(TIMEOUT_S)
    heir = _confluent(broker, topic)
    with pytest.raises(KafkaException) as refused:
        zombie.commit_transaction(TIMEOUT_S)
    heir.begin_transaction()
    heir.produce(topic, b"kept", partition=0)
    heir.commit_transaction(TIMEOUT_S)
    settle(broker, topic)

    assert refused.value.args[0].fatal()
    assert refused.value.args[0].name() == "_FENCED"
    assert read_committed(broker, topic) == ["kept"]


def test_a_transaction_that_takes_too_long_is_aborted(
    broker: RunningServer, client: TransactionalProducers, topic: str
) -> None:
    create_topic(broker, topic)
    client.open(topic, topic, transaction_timeout_ms=SHORT_MS)
    begun_s = time.monotonic()
    client.do(f"{topic} begin", f"{topic} send {topic} 0 late", f"{topic} flush")
    # Unless the machine let it wait for longer than the transaction may last.
    assert end_offset(broker, topic, READ_COMMITTED) == 0 or time.monotonic() - begun_s > SHORT_MS / 1000

    wait_until(lambda: end_offset(broker, topic, READ_COMMITTED) == 2, TIMEOUT_S, "nobody aborts it")
    failed = client.fail(f"{topic} commit")

    assert failed in FENCED | {"InvalidTxnStateException", "TransactionAbortableException"}
    assert read_committed(broker, topic) == []
    assert read_uncommitted(broker, topic) == ["late"]
    client.open(topic, topic)
    client.do(f"{topic} begin", f"{topic} send {topic} 0 again", f"{topic} commit")
    settle(broker, topic)
    assert read_committed(broker, topic) == ["again"]
    assert end_offset(broker, topic, READ_UNCOMMITTED) == 4


def test_offsets_of_a_transaction_that_takes_too_long_are_given_up(
    broker: RunningServer, producers: TransactionalProducers, topic: str
) -> None:
    create_topic(broker, topic)
    group = f"group-{topic}"
    producers.open(topic, topic, transaction_timeout_ms=SHORT_MS)
    begun_s = time.monotonic()
    producers.do(f"{topic} begin", f"{topic} offsets {group} {topic} 0 4")

    code = committed_offset(broker, group, topic, require_stable=True)[0]
    assert code == ErrorCode.UNSTABLE_OFFSET_COMMIT or time.monotonic() - begun_s > SHORT_MS / 1000
    assert stable_offset(broker, group, topic) == -1
    assert producers.fail(f"{topic} commit") in FENCED | {"InvalidTxnStateException"}


def test_a_timeout_beyond_the_brokers_limit_is_refused(
    broker: RunningServer, producers: TransactionalProducers, topic: str
) -> None:
    producers.do(f"{topic} open {topic} transaction.timeout.ms=900001")
    answer = producers.ask(f"{topic} init")
    assert "larger than the maximum value allowed by the broker" in answer


def _confluent(broker: RunningServer, transactional_id: str) -> Producer:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": transactional_id, "log_level": 2})
    producer.init_transactions(TIMEOUT_S)
    return producer
