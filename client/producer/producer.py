"""The producer: what programs see of it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from time import time_ns
from types import TracebackType
from typing import Any, Final

from kavka.client.api_errors import KafkaError, KafkaTimeoutError
from kavka.client.client_metrics import Metrics
from kavka.client.cluster import PartitionInfo
from kavka.client.consumer.group.port import ConsumerGroupMetadata, OffsetAndMetadata
from kavka.client.interceptors import ProducerRecord
from kavka.client.producer.assembly import assemble, now_ms
from kavka.client.producer.delivery import OnDelivery, RecordMetadata
from kavka.client.producer.old_settings import translate
from kavka.client.producer.pipeline import END_OF_TIME_MS, check_timestamp
from kavka.client.producer.send_future import SendFuture
from kavka.client.producer.transactions import Transactions
from kavka.client.serialization import close_quietly
from kavka.client.topic_partition import TopicPartition
from kavka.config.clients import producer_settings
from kavka.protocol.records.record import RecordHeader

__all__ = ["Producer", "ProducerRecord", "RecordMetadata", "SendFuture"]

FOREVER_MS: Final = float("inf")


class Producer:
    """Sends records to topics: batched, in order for each partition, and once (idempotence is on by default).

        from kavka.client import Producer

        with Producer(bootstrap_servers="localhost:9092") as producer:
            future = producer.send("birds", b"kavka", key=b"corvus")
            print(future.result(timeout=10).offset)

    Made of a mapping of Kafka's setting names, of keywords with underscores, or both. Without serializers, keys and
    values are bytes. `send` returns at once, unless metadata or memory are waited for; records go out by a thread of
    the producer's, which begins with the first call that needs it and ends with `close`.

    Threads: any number may send. Callbacks run on the producer's thread, for each partition in the order of its
    records; they must not wait. One that nobody closes is flushed when the interpreter ends, for ten seconds at most;
    after a fork it raises UsedAfterForkError in the child.
    """

    def __init__(self, settings: Mapping[str, Any] | None = None, **keywords: Any) -> None:
        """Raises ConfigError for settings that cannot be used. Nothing is connected yet."""
        given = {**(settings or {}), **{name.replace("_", "."): value for name, value in keywords.items()}}
        translated, ways = translate(given)
        self._settings: Final = producer_settings(translated)
        parts = assemble(self._settings, ways)
        self._metadata: Final = parts.metadata
        self._accumulator: Final = parts.accumulator
        self._metrics: Final = parts.metrics
        self._thread: Final = parts.thread
        self._pipeline: Final = parts.pipeline
        stages = parts.stages
        self._to_close: Final = [
            stages.partitioner,
            stages.value_serializer,
            stages.key_serializer,
            stages.interceptors,
        ]
        self._old: Final = parts.old
        self._is_plain: Final = stages.is_empty and parts.old is None
        self._transactions: Final = parts.transactions

    def __enter__(self) -> "Producer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Sequence[RecordHeader] | Mapping[str, bytes | None] = (),
        *,
        partition_key: Any = None,
        on_delivery: OnDelivery | None = None,
    ) -> SendFuture:
        """Send a record, and do not wait: the future, or `on_delivery(metadata, error)`, tells what became of it.

        Without `partition` the key decides, or the partitioner, which alone sees `partition_key`. Without
        `timestamp_ms` it is now. Waits up to `max.block.ms` for metadata and memory; when these are not there then, or
        the record is too large, the future has the error, as it has any error of delivery. `on_delivery` has the
        error beside as much of the metadata as is known.

        Raises SerializationError, ClientClosedError, a fatal error of transactions, and what the partitioner raises;
        ValueError and TypeError for arguments that cannot be. With the settings of 0.8 see docs/client.md.
        """
        if self._thread.failure is not None:
            self._thread.check()
        queues = self._accumulator.topics.get(topic)
        if (
            queues is None
            or not self._is_plain
            or headers
            or (type(value) is not bytes and value is not None)
            or (type(key) is not bytes and key is not None)
        ):
            record = ProducerRecord(topic, value, key, partition, timestamp_ms, headers or (), partition_key)
            return (self._old or self._pipeline).send(record, on_delivery)
        transactions = self._transactions
        if transactions is not None:
            transactions.check_open()
        if partition is not None:
            if not 0 <= partition < len(queues.queues):
                return self._pipeline.send(ProducerRecord(topic, value, key, partition, timestamp_ms), on_delivery)
            queue = queues.queues[partition]
        elif key is None:
            queue = queues.sticky or queues.without_key()
        else:
            queue = queues.by_key.get(key) or queues.of_key(key)
        if timestamp_ms is None:
            timestamp_ms = time_ns() // 1_000_000
        elif type(timestamp_ms) is not int or not 0 <= timestamp_ms < END_OF_TIME_MS:
            check_timestamp(timestamp_ms)
        with queue.lock:
            batch = queue.open
            future = None if batch is None else batch.put(timestamp_ms, key, value, (), on_delivery)
        if future is None:
            sticks = key is None and partition is None
            return self._pipeline.append(queues, queue, timestamp_ms, key, value, on_delivery, sticks=sticks)
        if transactions is not None:
            transactions.add(queue.topic_partition)
        return future

    def send_many(
        self, topic: str, values: Iterable[Any], *, on_delivery: OnDelivery | None = None
    ) -> list[SendFuture]:
        """Send a record without key for each value: the futures, in the order of the values. As `send` otherwise."""
        if self._old is not None:
            self._thread.check()
            return self._old.send_many([ProducerRecord(topic, value) for value in values], on_delivery)
        send = self.send
        return [send(topic, value, on_delivery=on_delivery) for value in values]

    def flush(self, timeout_ms: float | None = None) -> None:
        """Send what waits without lingering, and wait until all that was sent before has been delivered or has failed.

        Futures and callbacks tell which. Raises KafkaTimeoutError after `timeout_ms`; without it waits for as long as
        `delivery.timeout.ms` lets records be under way. Raises KafkaError in a callback, which would wait for itself.
        """
        self._thread.check()
        if self._thread.is_owner:
            raise KafkaError("a callback cannot flush: it would wait for itself")
        began_ms = now_ms()
        deadline_ms = FOREVER_MS if timeout_ms is None else began_ms + timeout_ms
        self._accumulator.hurry()
        try:
            for batch in list(self._accumulator.incomplete):
                batch.wait_whole(lambda: (deadline_ms - now_ms()) / 1000)
        finally:
            self._accumulator.calm()
            self._metrics.called("flush", now_ms() - began_ms)

    def partitions_for(self, topic: str) -> Mapping[int, PartitionInfo]:
        """The topic's partitions by number; waits for metadata. Raises KafkaTimeoutError after `max.block.ms`."""
        self._thread.check()
        _, cluster = self._pipeline.topic(topic, None, self._pipeline.deadline_ms(), described=True)
        return cluster.topics[topic].partitions

    @property
    def metrics(self) -> Metrics:
        """What is measured, by Kafka's names: `producer.metrics["batch-size-avg"]`. Any thread."""
        return self._metrics.metrics

    # Transactions ----------------------------------------------------------------------------------------------------

    def init_transactions(self, timeout_ms: float | None = None) -> None:
        """Take over the `transactional.id`: earlier producers with it are fenced, what they left open is ended. Once.

        Waits up to `max.block.ms`, or `timeout_ms`; raises KafkaTimeoutError then, and the call may be made again.
        Raises the error that keeps the producer from working.
        """
        self._wait("txn-init", self._transactional().initialize, timeout_ms)

    def begin_transaction(self) -> None:
        """What is sent from now on belongs together. Raises what came before, or KafkaError for a wrong moment."""
        self._thread.check()
        began_ms = now_ms()
        self._transactional().begin()
        self._metrics.called("txn-begin", now_ms() - began_ms)

    def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | Mapping[tuple[str, int], OffsetAndMetadata | int],
        group: ConsumerGroupMetadata | str,
        timeout_ms: float | None = None,
    ) -> None:
        """Commit a group's offsets with the transaction: what was read and what was written count together.

        `group` is the consumer's `group_metadata()`; its id alone will do where no other member can be in the way.
        Raises CommitFailedError and its like as abortable errors, and KafkaTimeoutError as `init_transactions`.
        """
        if not offsets:
            return
        metadata = ConsumerGroupMetadata(group) if isinstance(group, str) else group
        whole = {
            TopicPartition(*partition): OffsetAndMetadata(offset) if isinstance(offset, int) else offset
            for partition, offset in offsets.items()
        }
        self._wait("txn-send-offsets", lambda: self._transactional().send_offsets(whole, metadata), timeout_ms)

    def commit_transaction(self, timeout_ms: float | None = None) -> None:
        """Deliver what was sent since `begin_transaction`, and make it count.

        Raises an AbortableError when it cannot be committed: abort then, and go on with another. Raises
        ProducerFencedError and other FatalErrors: close the producer. KafkaTimeoutError: call it again.
        """
        self._wait("txn-commit", self._transactional().commit, timeout_ms)

    def abort_transaction(self, timeout_ms: float | None = None) -> None:
        """Have what was sent since `begin_transaction` never count. Raises FatalErrors as `commit_transaction` does."""
        self._wait("txn-abort", self._transactional().abort, timeout_ms)

    # The end ---------------------------------------------------------------------------------------------------------

    def close(self, timeout_ms: float | None = None) -> None:
        """Send what waits, wait for its end, abort a transaction that is open, and let go of everything.

        Again is nothing. After `timeout_ms` what is left fails. In a callback nothing is waited for.
        """
        self._thread.close(FOREVER_MS if timeout_ms is None else timeout_ms)
        while self._to_close:
            close_quietly(self._to_close.pop())

    def _transactional(self) -> Transactions:
        if self._transactions is None:
            raise KafkaError("the producer has no transactional.id")
        return self._transactions

    def _wait(self, name: str, begin: Callable[[], Any], timeout_ms: float | None) -> None:
        """Begin something that the thread sees to, and wait for it."""
        self._thread.start()
        if self._thread.is_owner:
            raise KafkaError("a callback cannot wait for a transaction: it would wait for itself")
        began_ms = now_ms()
        result = begin()
        limit_ms = self._settings.max_block_ms if timeout_ms is None else timeout_ms
        if not result.wait(limit_ms / 1000):
            raise KafkaTimeoutError(f"not done within {limit_ms} ms; it goes on, and may be called again")
        self._metrics.called(name, now_ms() - began_ms)
        result.get()
