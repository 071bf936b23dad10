"""Consume, transform, produce, exactly once, until killed: `python -m tests.support.exactly_once_copier ...`.

Arguments: BOOTSTRAP INPUT OUTPUT GROUP TRANSACTIONAL_ID, with confluent-kafka. As tests/java/ExactlyOnceCopy: each
record goes to the partition it came from with `!` behind its value, its offset with the transaction.
"""

import sys

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, Producer, TopicPartition

from tests.support.patient_call import NeverBackError, within

MESSAGES = 200
TIMEOUT_S = 20.0
PATIENCE_S = 25.0
FAILURES_IN_A_ROW = 2
"""After so many a producer is given up for another one, as a program has to that is to go on by itself.

librdkafka (2.16.0) was seen to lose sight of the transaction coordinator for two minutes, whose broker had left the
metadata and come back. Each AddOffsetsToTxn then waits in the client for as long as it may ("Timed out" on
"TxnCoordinator", which has no broker's id behind it: it has no address), and no abort mends that, since nothing of the
transaction ever was at a broker.
"""
BACKOFF = {"reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 100, "log_level": 2}


class FatalError(Exception):
    """The producer cannot go on."""


def main(bootstrap: str, source: str, target: str, group: str, transactional_id: str) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 500,
            "fetch.wait.max.ms": 100,
            **BACKOFF,
        }
    )
    consumer.subscribe([source])
    producer = _producer(bootstrap, transactional_id)
    print("STARTED", flush=True)
    failures = 0
    while True:
        messages = [message for message in consumer.consume(MESSAGES, 0.2) if message.error() is None]
        if not messages:
            continue
        try:
            _copy(producer, consumer, messages, target)
            print(f"COPIED {len(messages)}", flush=True)
            failures = 0
            continue
        except FatalError as error:
            print(f"ANEW {error}", file=sys.stderr, flush=True)
            failures = FAILURES_IN_A_ROW
        except KafkaException as error:
            print(f"RETRY {error}", file=sys.stderr, flush=True)
            failures += 1
        if failures >= FAILURES_IN_A_ROW:
            producer = _producer(bootstrap, transactional_id)
            failures = 0
        _rewind(consumer)


def _copy(producer: Producer, consumer: Consumer, messages: list[Message], target: str) -> None:
    """One transaction; aborted when it fails. Raises KafkaException then, FatalError when the producer is done for."""
    positions: dict[tuple[str, int], int] = {}
    try:
        producer.begin_transaction()
        for message in messages:
            topic, partition, offset = message.topic(), message.partition(), message.offset()
            assert topic is not None
            assert partition is not None
            assert offset is not None
            producer.produce(target, (message.value() or b"") + b"!", message.key(), partition)
            positions[topic, partition] = offset + 1
        next_offsets = [TopicPartition(topic, partition, offset) for (topic, partition), offset in positions.items()]
        metadata = consumer.consumer_group_metadata()
        within(PATIENCE_S, lambda: producer.send_offsets_to_transaction(next_offsets, metadata, TIMEOUT_S))
        _commit(producer)
    except NeverBackError as error:
        raise FatalError("offsets are not sent") from error
    except KafkaException as error:
        if error.args[0].fatal():
            raise FatalError(str(error)) from error
        try:
            producer.abort_transaction(TIMEOUT_S)
        except KafkaException as hopeless:
            raise FatalError(str(hopeless)) from hopeless
        raise


def _commit(producer: Producer) -> None:
    """Commit, again when it is not known whether it worked."""
    while True:
        try:
            producer.commit_transaction(TIMEOUT_S)
            return
        except KafkaException as error:
            if not error.args[0].retriable():
                raise


def _rewind(consumer: Consumer) -> None:
    """Back to what is committed, for the partitions that are ours."""
    while True:
        try:
            for found in consumer.committed(consumer.assignment(), TIMEOUT_S):
                consumer.seek(
                    TopicPartition(
                        found.topic, found.partition, found.offset if found.offset >= 0 else OFFSET_BEGINNING
                    )
                )
            return
        except KafkaException as error:
            print(f"REWIND {error}", file=sys.stderr, flush=True)


def _producer(bootstrap: str, transactional_id: str) -> Producer:
    config = {"bootstrap.servers": bootstrap, "transactional.id": transactional_id, "transaction.timeout.ms": 10_000}
    while True:
        producer = Producer({**config, **BACKOFF})
        try:
            producer.init_transactions(TIMEOUT_S)
            return producer
        except KafkaException as error:
            print(f"INIT {error}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[5])
