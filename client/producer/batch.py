"""A batch on its way through the producer: its records' bytes, their results, and how far it has come."""

from collections.abc import Sequence
from io import BytesIO
from typing import Final

from kavka.client.producer.delivery import NO_SIZE, Delivery, OnDelivery
from kavka.client.producer.send_future import SendFuture
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.records.appending import BatchWriter
from kavka.protocol.records.batch import iter_records
from kavka.protocol.records.header import NO_LEADER_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from kavka.protocol.records.record import RecordHeader

_new: Final = object.__new__


class ProducerBatch(Delivery):
    """One batch of a partition.

    Threads: appended to under the lock of its queue; once it is out of the queue, the client's thread's. It is back in
    the queue between two tries, sealed.
    """

    __slots__ = (
        "_is_stamped",
        "attempts",
        "base_sequence",
        "created_ms",
        "leader_epoch",
        "memory_bytes",
        "not_before_ms",
        "ordinal",
        "producer_epoch",
        "producer_id",
        "was_reset",
        "writer",
    )

    def __init__(self, topic_partition: TopicPartition, writer: BatchWriter, memory_bytes: int, now_ms: float) -> None:
        """`memory_bytes` of `buffer.memory` are its, from `now_ms` on; 0 for one that another was split into."""
        super().__init__(topic_partition)
        self.writer: Final = writer
        self.memory_bytes = memory_bytes
        self.created_ms: Final = now_ms
        self.attempts = 0
        """How often it was sent and came back."""
        self.not_before_ms = 0.0
        """When it may be tried again."""
        self.leader_epoch = NO_LEADER_EPOCH
        """The leader's, as it was last sent."""
        self.producer_id = NO_PRODUCER_ID
        self.producer_epoch = NO_PRODUCER_EPOCH
        self.base_sequence = NO_SEQUENCE
        self.ordinal = 0
        """How many batches of its partition got their sequence before it."""
        self._is_stamped = False
        self.was_reset = False
        """Whether its sequence was given anew after an epoch was bumped, or the broker had forgotten the producer."""

    def put(
        self,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[RecordHeader],
        on_delivery: OnDelivery | None,
    ) -> SendFuture | None:
        """Append a record; None, and nothing is changed, when there is no room. Under the queue's lock.

        Hot: a record's way is `send`, this, and the writer's `append`.
        """
        writer = self.writer
        if not writer.append(timestamp_ms, key, value, headers):
            return None
        key_size, value_size = NO_SIZE if key is None else len(key), NO_SIZE if value is None else len(value)
        try:
            self.numbers.extend((timestamp_ms - writer.base_timestamp_ms, key_size, value_size))
        except OverflowError:
            self.note(timestamp_ms, key_size, value_size)
        index = writer.count - 1
        if on_delivery is not None:
            self.call_back(index, on_delivery)
        future: SendFuture = _new(SendFuture)
        future.delivery = self
        future.index = index
        return future

    @property
    def base_timestamp_ms(self) -> int:
        """What `numbers` are counted from: the first record's."""
        return self.writer.base_timestamp_ms

    @property
    def count(self) -> int:
        """How many records it has."""
        return self.writer.count

    @property
    def size_bytes(self) -> int:
        """What it takes in a request; until it is sealed, what its records take before the codec."""
        return len(self.writer.data) if self.writer.is_sealed else self.writer.size_bytes

    @property
    def has_sequence(self) -> bool:
        """Whether brokers may have seen it under a sequence number."""
        return self.base_sequence != NO_SEQUENCE

    @property
    def next_sequence(self) -> int:
        """The sequence after its last record's. They begin at 0 again after 2^31 - 1."""
        return (self.base_sequence + self.writer.count) & 0x7FFF_FFFF

    def number(self, producer_id: int, producer_epoch: int, base_sequence: int) -> None:
        """Give it its producer and sequence, or others. Its bytes may be on the wire: they change when it goes out."""
        self.producer_id, self.producer_epoch, self.base_sequence = producer_id, producer_epoch, base_sequence
        self._is_stamped = False

    def outgoing(self, *, transactional: bool) -> memoryview:
        """Its bytes, to be sent now. Sealed only."""
        writer = self.writer
        if not self._is_stamped:
            writer.stamp(self.producer_id, self.producer_epoch, self.base_sequence, transactional=transactional)
            self._is_stamped = True
        # A view of its own: who still writes an earlier try, or has given it up, must not find it released.
        return writer.data[:]


def split_batch(batch: ProducerBatch, codec: int, level: int | None) -> list[ProducerBatch]:
    """Batches of at most half the size with the same records, sealed, in order; the batch's memory goes to the last.

    Of two records and more. Sequences go on from the batch's.
    """
    limit_bytes = batch.writer.size_bytes // 2
    records = list(iter_records(batch.writer.data))
    batch.writer.release()
    parts: list[ProducerBatch] = []
    firsts: list[int] = []
    for index, record in enumerate(records):
        written = record.timestamp_ms, record.key, record.value, tuple(record.headers)
        if not parts or not parts[-1].writer.append(*written):
            writer = BatchWriter(BytesIO(), limit_bytes)
            writer.append(*written)
            parts.append(ProducerBatch(batch.topic_partition, writer, 0, batch.created_ms))
            firsts.append(index)
    sequence = batch.base_sequence
    for part in parts:
        part.was_reset = batch.was_reset
        part.writer.seal(codec, level)
        part.number(batch.producer_id, batch.producer_epoch, sequence)
        if sequence != NO_SEQUENCE:
            sequence = part.next_sequence
    parts[-1].memory_bytes, batch.memory_bytes = batch.memory_bytes, 0
    batch.split(firsts, _as_deliveries(parts))
    return parts


def _as_deliveries(parts: Sequence[ProducerBatch]) -> list[Delivery]:
    return list(parts)
