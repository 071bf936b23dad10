"""A record's whole way into the accumulator: interceptors, metadata, serializers, partitioner, memory, transaction."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kavka.client.api_errors import (
    ClientClosedError,
    ClientDiedError,
    InvalidTopicError,
    KafkaError,
    KafkaTimeoutError,
    TopicAuthorizationError,
    UsedAfterForkError,
    error_of,
)
from kavka.client.client_thread import ClientThread
from kavka.client.cluster import Cluster
from kavka.client.interceptors import Interceptors, ProducerRecord
from kavka.client.metadata import Metadata
from kavka.client.producer.accumulator import RecordAccumulator
from kavka.client.producer.delivery import OnDelivery, RecordMetadata, failed_delivery
from kavka.client.producer.partition_queue import PartitionQueue
from kavka.client.producer.partitioners import Partitioner
from kavka.client.producer.send_future import SendFuture, new_future
from kavka.client.producer.topic_queues import TopicQueues
from kavka.client.producer.transactions import Transactions
from kavka.client.serialization import SerializationError, Serializer, as_bytes
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.records.record import RecordHeader

UNKNOWN_PARTITION: Final = -1
END_OF_TIME_MS: Final = 2**63
_RAISED: Final = (ClientClosedError, ClientDiedError, UsedAfterForkError, SerializationError)
"""What `send` raises rather than the future: the fault lies with the caller, or with the client itself."""
_FINAL: Final = {InvalidTopicError.code, TopicAuthorizationError.code}
"""Errors of a topic that waiting does not mend."""


class Stages(NamedTuple):
    """What a record goes through, each None where there is nothing to do. Immutable."""

    interceptors: Interceptors | None = None
    key_serializer: Serializer | None = None
    value_serializer: Serializer | None = None
    partitioner: Partitioner | None = None
    ignores_keys: bool = False
    transactions: Transactions | None = None

    @property
    def is_empty(self) -> bool:
        """Whether bytes go straight into the accumulator, in a transaction or not."""
        return not any(self._replace(transactions=None))


class Pipeline:
    """Sends records in every way that there is. Threads: any."""

    def __init__(
        self,
        stages: Stages,
        accumulator: RecordAccumulator,
        metadata: Metadata,
        thread: ClientThread,
        max_block_ms: float,
        now_ms: Callable[[], float],
        called: Callable[[str, float], None] = lambda name, took_ms: None,
    ) -> None:
        """`called` hears how long metadata were waited for."""
        self._called: Final = called
        self._stages: Final = stages
        self._accumulator: Final = accumulator
        self._metadata: Final = metadata
        self._thread: Final = thread
        self._max_block_ms: Final = max_block_ms
        self._now_ms: Final = now_ms

    def send(self, record: ProducerRecord, on_delivery: OnDelivery | None) -> SendFuture:
        """See `Producer.send`."""
        interceptors = self._stages.interceptors
        if interceptors is not None:
            record = interceptors.on_send(record)
            on_delivery = _intercepted(interceptors, on_delivery)
        try:
            if self._stages.transactions is not None:
                self._stages.transactions.check_open()
            return self._sent_or_failed(record, on_delivery)
        except Exception as error:
            if interceptors is not None:
                # Whatever it was, there will be nothing else to tell of this record.
                interceptors.on_acknowledgement(_placeless(record), error)
            raise

    def _sent_or_failed(self, record: ProducerRecord, on_delivery: OnDelivery | None) -> SendFuture:
        try:
            return self._send(record, on_delivery)
        except _RAISED:
            raise
        except KafkaError as error:
            return self._failed(TopicPartition(record.topic, _placeless(record).partition), error, on_delivery)

    def append(
        self,
        queues: TopicQueues,
        queue: PartitionQueue,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        on_delivery: OnDelivery | None,
        *,
        sticks: bool,
    ) -> SendFuture:
        """Put a record, of which all is known, into a batch that has to be made first, perhaps."""
        try:
            deadline_ms = self.deadline_ms()
            future = self._accumulator.append(
                queues, queue, timestamp_ms, key, value, (), on_delivery, deadline_ms, sticks=sticks
            )
        except _RAISED:
            raise
        except KafkaError as error:
            return self._failed(queue.topic_partition, error, on_delivery)
        if self._stages.transactions is not None:
            self._stages.transactions.add(future.delivery.topic_partition)
        return future

    def deadline_ms(self) -> float:
        """Until when a call that begins now may wait. In a callback it may not: it would wait for its own thread."""
        return self._now_ms() + (0.0 if self._thread.is_owner else self._max_block_ms)

    def topic(
        self, name: str, partition: int | None, deadline_ms: float, *, described: bool = False
    ) -> tuple[TopicQueues, Cluster]:
        """The topic's queues, this partition's among them, and the cluster, which has all of it if it is to be
        `described`: a topic that nobody has sent to for long is not in the metadata any more, though it has its queues.

        Waits for metadata. Raises KafkaTimeoutError, or why not.
        """
        has_asked = False
        self._thread.start()
        while True:
            cluster = self._metadata.cluster
            queues = self._accumulator.topic(name, cluster)
            info = cluster.topics.get(name)
            if queues is not None and (partition is None or partition < len(queues.queues)):
                count = 0 if info is None else len(info.partitions)
                # As many as there are queues: the client's thread may be about to make more.
                if not described or 0 < count <= len(queues.queues):
                    return queues, cluster
            if has_asked and info is not None and info.error_code in _FINAL:
                raise error_of(info.error_code, f"topic {name!r}: {error_of(info.error_code)}")
            version = self._metadata.want([name]) if info is None else self._metadata.request_update()
            has_asked = True
            began_ms = self._now_ms()
            try:
                is_there = self._metadata.wait_for(version, deadline_ms)
            finally:
                self._called("metadata-wait", self._now_ms() - began_ms)
            if not is_there:
                what = f"topic {name!r}" if partition is None else f"partition {partition} of topic {name!r}"
                cause = error_of(info.error_code) if info is not None and info.error_code else None
                raise KafkaTimeoutError(f"{what} is not in the metadata after {self._max_block_ms} ms") from cause

    def _send(self, record: ProducerRecord, on_delivery: OnDelivery | None) -> SendFuture:
        topic, value, key, partition, timestamp_ms, headers, _ = record
        if partition is not None and partition < 0:
            raise ValueError(f"a partition's number is not negative: {partition}")
        if timestamp_ms is None:
            timestamp_ms = time.time_ns() // 1_000_000
        else:
            check_timestamp(timestamp_ms)
        deadline_ms = self.deadline_ms()
        chooses = self._stages.partitioner is not None and partition is None
        queues, cluster = self.topic(topic, partition, deadline_ms, described=chooses)
        packed = _checked_headers(headers)
        key_bytes = _serialized(self._stages.key_serializer, "key", topic, packed, key)
        value_bytes = _serialized(self._stages.value_serializer, "value", topic, packed, value)
        queue = self._queue(queues, cluster, record, key_bytes, value_bytes)
        with queue.lock:
            batch = queue.open
            future = None if batch is None else batch.put(timestamp_ms, key_bytes, value_bytes, packed, on_delivery)
        if future is None:
            stages = self._stages
            is_keyless = key_bytes is None or stages.ignores_keys
            sticks = partition is None and stages.partitioner is None and is_keyless
            future = self._accumulator.append(
                queues, queue, timestamp_ms, key_bytes, value_bytes, packed, on_delivery, deadline_ms, sticks=sticks
            )
        if self._stages.transactions is not None:
            self._stages.transactions.add(future.delivery.topic_partition)
        return future

    def _failed(self, partition: TopicPartition, error: KafkaError, on_delivery: OnDelivery | None) -> SendFuture:
        """The future of a record that could not even be put into a batch. Its transaction can only be aborted."""
        if self._stages.transactions is not None:
            self._stages.transactions.batch_failed(error)
        return new_future(failed_delivery(partition, error, on_delivery), 0)

    def _queue(
        self,
        queues: TopicQueues,
        cluster: Cluster,
        record: ProducerRecord,
        key_bytes: bytes | None,
        value_bytes: bytes | None,
    ) -> PartitionQueue:
        if record.partition is not None:
            return queues.queues[record.partition]
        stages = self._stages
        if stages.partitioner is None:
            return queues.without_key() if key_bytes is None or stages.ignores_keys else queues.of_key(key_bytes)
        number = stages.partitioner.partition(
            record.topic, record.key, key_bytes, record.value, value_bytes, cluster, record.partition_key
        )
        if not 0 <= number < len(queues.queues):
            raise ValueError(f"the partitioner chose {number} of {len(queues.queues)} partitions of {record.topic!r}")
        return queues.queues[number]


def check_timestamp(timestamp_ms: int) -> None:
    """Raises ValueError or TypeError for what is no time of a record."""
    if not isinstance(timestamp_ms, int):
        raise TypeError(f"a timestamp is an int of milliseconds, not {type(timestamp_ms).__name__}")
    if not 0 <= timestamp_ms < END_OF_TIME_MS:
        raise ValueError(f"a timestamp is not negative, and no more than 64 bits: {timestamp_ms}")


def _serialized(
    serializer: Serializer | None, part: str, topic: str, headers: Sequence[RecordHeader], value: Any
) -> bytes | None:
    try:
        if serializer is not None:
            value = serializer.serialize(topic, headers, value)
        return as_bytes(value)
    except Exception as error:
        raise SerializationError(f"the {part} of a record to {topic!r} cannot be made bytes: {error}") from error


def _checked_headers(headers: Any) -> tuple[RecordHeader, ...]:
    """Headers as they are kept. Raises TypeError."""
    if not headers:
        return ()
    checked = []
    for name, value in headers.items() if isinstance(headers, Mapping) else headers:
        if not isinstance(name, str):
            raise TypeError(f"a header's name is text, not {type(name).__name__}")
        checked.append((name, as_bytes(value)))
    return tuple(checked)


def _intercepted(interceptors: Interceptors, on_delivery: OnDelivery | None) -> OnDelivery:
    def both(metadata: RecordMetadata, error: KafkaError | None) -> None:
        interceptors.on_acknowledgement(metadata, error)
        if on_delivery is not None:
            on_delivery(metadata, error)

    return both


def _placeless(record: ProducerRecord) -> RecordMetadata:
    return RecordMetadata(record.topic, UNKNOWN_PARTITION if record.partition is None else record.partition)
