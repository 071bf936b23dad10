"""Records that wait to be sent: a queue of batches for each partition, in bounded memory."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import BytesIO
from typing import Final, NamedTuple

from kavka.client.api_errors import ClientClosedError, KafkaError, RecordTooLargeError
from kavka.client.cluster import Cluster
from kavka.client.producer.batch import ProducerBatch, split_batch
from kavka.client.producer.buffer_memory import BufferMemory
from kavka.client.producer.delivery import OnDelivery
from kavka.client.producer.partition_queue import PartitionQueue
from kavka.client.producer.partitioners import MURMUR2, KeyHash
from kavka.client.producer.send_future import SendFuture
from kavka.client.producer.topic_queues import TopicQueues
from kavka.protocol.records.appending import MAX_RECORDS, BatchWriter, CountedBatchWriter, record_size_bound
from kavka.protocol.records.compression import Codec
from kavka.protocol.records.record import RecordHeader

FOREVER_MS: Final = float("inf")


class AccumulatorSettings(NamedTuple):
    """Of Kafka's settings those that say how records become batches. Immutable."""

    batch_size_bytes: int = 16_384
    batch_records: int = MAX_RECORDS
    """The 0.8 producer's batch.num.messages."""
    linger_ms: float = 5
    buffer_memory_bytes: int = 33_554_432
    max_request_size_bytes: int = 1_048_576
    delivery_timeout_ms: float = 120_000
    codec: int = Codec.NONE
    level: int | None = None
    compressed_topics: frozenset[str] | None = None
    """The only topics whose batches are packed; None for all."""
    hashing: KeyHash = MURMUR2
    is_adaptive: bool = True


class RecordAccumulator:
    """Where records wait.

    Bounds: `buffer.memory` for their bytes, and one object for each batch.
    Threads: those that send append; all else on the client's thread, but for what says otherwise. A queue's lock guards
    it; `topics` is changed under `_topics_lock`, `active` and `incomplete` by single steps of their dicts.
    """

    def __init__(self, settings: AccumulatorSettings, now_ms: Callable[[], float], wake: Callable[[], None]) -> None:
        """`wake` has the client's thread look soon."""
        self._settings: Final = settings
        self._now_ms: Final = now_ms
        self._wake: Final = wake
        self._limit_bytes: Final = min(settings.batch_size_bytes, settings.max_request_size_bytes)
        self.memory: Final = BufferMemory(settings.buffer_memory_bytes, max(self._limit_bytes, 1), now_ms, wake)
        self.topics: dict[str, TopicQueues] = {}
        """By name; read by the threads that send."""
        self._topics_lock: Final = threading.Lock()
        self._avoided_nodes: frozenset[int] = frozenset()
        self.active: Final[dict[PartitionQueue, None]] = {}
        """Queues in which something may wait."""
        self.incomplete: Final[dict[ProducerBatch, None]] = {}
        """Batches that are not done."""
        self._hurried = 0
        self._is_closed = False
        self.send_at_once: Callable[[PartitionQueue], bool] = _never
        """Sends the only batch there is without waking the client's thread, where that is possible."""
        self.sleeps_until_ms = FOREVER_MS
        """Until when the client's thread does not look by itself; for ever while it is looking."""

    # Threads that send -----------------------------------------------------------------------------------------------

    def append(
        self,
        topic: TopicQueues,
        queue: PartitionQueue,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[RecordHeader],
        on_delivery: OnDelivery | None,
        deadline_ms: float,
        *,
        sticks: bool = False,
    ) -> SendFuture:
        """Put a record into a batch with room: another one that takes records by now, or a new one.

        One that `sticks`, as neither key nor caller say where it belongs, goes to the next partition when the one that
        is stuck to has had enough. Waits for memory.
        Raises BufferExhaustedError, RecordTooLargeError, ClientClosedError.
        """
        bound = record_size_bound(key, value, headers)
        self._check_size(bound)
        if sticks and queue is topic.sticky and topic.is_worn_out(queue, self._limit_bytes):
            queue = topic.stick()
        size_bytes = max(self.memory.piece_bytes, bound)
        stream = None
        is_due = False
        while True:
            with queue.lock:
                if self._is_closed:
                    raise ClientClosedError("the producer was closed")
                full = queue.open
                future = None if full is None else full.put(timestamp_ms, key, value, headers, on_delivery)
                if future is None and stream is not None:
                    batch = ProducerBatch(queue.topic_partition, self._writer(stream), size_bytes, self._now_ms())
                    future = batch.put(timestamp_ms, key, value, headers, on_delivery)
                    assert future is not None
                    stream = None
                    self.incomplete[batch] = None
                    queue.begin(batch)
                    self.active[queue] = None
                    is_due = full is not None or (batch.created_ms + self._settings.linger_ms < self.sleeps_until_ms)
            if future is not None:
                break
            stream = self.memory.allocate(size_bytes, deadline_ms)
        if stream is not None:
            # Another thread was faster.
            self.memory.release(stream, size_bytes)
        if is_due and not (self._settings.linger_ms == 0 and self._is_sent_at_once(queue)):
            self._wake()
        return future

    def _is_sent_at_once(self, queue: PartitionQueue) -> bool:
        """Send the queue's batch here, if nothing else is on its way: who sends one by one waits for its answer now."""
        return len(self.incomplete) == 1 and self.send_at_once(queue)

    def topic(self, name: str, cluster: Cluster) -> TopicQueues | None:
        """A topic's queues, made at the first call for one that `cluster` knows. Any thread."""
        found = self.topics.get(name)
        if found is not None:
            return found
        info = cluster.topics.get(name)
        if info is None or not info.partitions:
            return None
        with self._topics_lock:
            found = self.topics.get(name)
            if found is None:
                found = TopicQueues(name, self._settings.hashing, is_adaptive=self._settings.is_adaptive)
                found.learn(info, self._avoided_nodes)
                self.topics = {**self.topics, name: found}
        return found

    def hurry(self) -> None:
        """Until `calm`: all that waits is sent at once, linger or not. Any thread; each call counts."""
        with self._topics_lock:
            self._hurried += 1
        active = list(self.active)
        # What is in no queue is on its way already.
        if active and not (len(active) == 1 and self._is_sent_at_once(active[0])):
            self._wake()

    def calm(self) -> None:
        """The end of a `hurry`."""
        with self._topics_lock:
            self._hurried -= 1

    def push(self) -> None:
        """What waits now is sent without lingering, once its turn comes. Any thread."""
        for queue in list(self.active):
            with queue.lock:
                queue.end()
        self._wake()

    def close(self) -> None:
        """Take no more records, and send at once what is there. Any thread; those who wait for memory are told."""
        self._is_closed = True
        self.memory.close()
        for topic in self.topics.values():
            for queue in topic.queues:
                with queue.lock:
                    # Who had not seen it yet has put his record where it is found.
                    pass

    # The client's thread ---------------------------------------------------------------------------------------------

    @property
    def is_hurried(self) -> bool:
        """Whether batches go out without lingering."""
        return self._hurried > 0 or self._is_closed or self.memory.waiting > 0

    def learn(self, cluster: Cluster) -> None:
        """Take over what is new of the topics that are sent to."""
        for name, topic in self.topics.items():
            info = cluster.topics.get(name)
            if info is not None and info.partitions:
                topic.learn(info, self._avoided_nodes)

    def avoid(self, nodes: Iterable[int], cluster: Cluster) -> None:
        """Stick to no partition that one of these leads: they have not taken anything for long."""
        avoided = frozenset(nodes)
        if avoided != self._avoided_nodes:
            self._avoided_nodes = avoided
            self.learn(cluster)

    def ready_at_ms(self, queue: PartitionQueue, batch: ProducerBatch) -> float:
        """When the first batch of a queue is to be sent."""
        if batch.attempts:
            return batch.not_before_ms
        is_full = batch is not queue.open
        return batch.created_ms if is_full or self.is_hurried else batch.created_ms + self._settings.linger_ms

    def first(self, queue: PartitionQueue) -> ProducerBatch | None:
        """The next batch to go out; None, and the queue is active no more, when there is none."""
        batches = queue.batches
        if batches:
            # Only this thread takes from the front.
            return batches[0]
        with queue.lock:
            if not batches:
                self.active.pop(queue, None)
                return None
            return batches[0]

    def take(self, queue: PartitionQueue) -> ProducerBatch:
        """Take the first batch out of its queue, sealed."""
        with queue.lock:
            batch = queue.batches.popleft()
            if batch is queue.open:
                queue.end()
            if not queue.batches:
                self.active.pop(queue, None)
        if not batch.writer.is_sealed:
            batch.writer.seal(self._codec(batch.topic_partition.topic), self._settings.level)
        return batch

    def put_back(self, batch: ProducerBatch) -> None:
        """A batch is to be tried again: before all others, or where its sequence belongs."""
        queue = self.queue_of(batch)
        with queue.lock:
            place = 0
            if batch.has_sequence:
                # Those with a sequence stand before those without, in its order.
                while place < len(queue.batches) and _is_before(queue.batches[place], batch):
                    place += 1
            queue.batches.insert(place, batch)
            self.active[queue] = None

    def split(self, batch: ProducerBatch) -> list[ProducerBatch]:
        """A batch that brokers find too large, in smaller ones; they are put into its queue's front."""
        codec = self._codec(batch.topic_partition.topic)
        parts = split_batch(batch, codec, self._settings.level)
        unfinished = self.queue_of(batch).unfinished
        with self.queue_of(batch).lock:
            place = unfinished.index(batch)
            for part in reversed(parts):
                unfinished.insert(place + 1, part)
                self.incomplete[part] = None
            del unfinished[place]
        self.incomplete.pop(batch, None)
        for part in reversed(parts):
            self.put_back(part)
        return parts

    def expired(self, now_ms: float) -> list[ProducerBatch]:
        """Batches that have waited for longer than `delivery.timeout.ms`, taken out of their queues."""
        late: list[ProducerBatch] = []
        for queue in list(self.active):
            while (batch := self.first(queue)) is not None and self.deadline_ms(batch) <= now_ms:
                late.append(self.take(queue))
        return late

    @property
    def delivery_timeout_ms(self) -> float:
        """How long a batch may take, from its first record on."""
        return self._settings.delivery_timeout_ms

    def deadline_ms(self, batch: ProducerBatch) -> float:
        """When a batch's time is up."""
        return batch.created_ms + self._settings.delivery_timeout_ms

    def ended(self, batch: ProducerBatch) -> None:
        """A batch was decided: its memory is free for others, and it is finished after those before it."""
        self._free(batch)
        unfinished = self.queue_of(batch).unfinished
        while unfinished and unfinished[0].is_decided:
            first = unfinished.popleft()
            first.finish()
            self.incomplete.pop(first, None)

    def queue_of(self, batch: ProducerBatch) -> PartitionQueue:
        """The batch's partition."""
        topic, partition = batch.topic_partition
        return self.topics[topic].queue(partition)

    def abort(self, error: KafkaError, *, unsent_only: bool = False) -> None:
        """Fail all that waits in queues with `error`; `unsent_only`: but for what was sent before, and may be there."""
        for queue in list(self.active):
            with queue.lock:
                doomed = [batch for batch in queue.batches if not (unsent_only and batch.has_sequence)]
                kept = [batch for batch in queue.batches if unsent_only and batch.has_sequence]
                queue.end()
                queue.batches.clear()
                queue.batches.extend(kept)
            for batch in doomed:
                batch.fail(error)
                self.ended(batch)

    def waiting(self) -> Mapping[PartitionQueue, ProducerBatch]:
        """The queues in which something waits, with what is first in each."""
        return {queue: batch for queue in list(self.active) if (batch := self.first(queue)) is not None}

    def _free(self, batch: ProducerBatch) -> None:
        stream = batch.writer.stream
        batch.writer.release()
        if batch.memory_bytes and stream is not None:
            self.memory.release(stream, batch.memory_bytes)
            batch.memory_bytes = 0

    def _check_size(self, bound: int) -> None:
        settings = self._settings
        if bound > settings.max_request_size_bytes:
            raise RecordTooLargeError(
                f"a record of up to {bound} bytes is larger than max.request.size, {settings.max_request_size_bytes}"
            )
        if bound > settings.buffer_memory_bytes:
            raise RecordTooLargeError(
                f"a record of up to {bound} bytes is larger than buffer.memory, {settings.buffer_memory_bytes}"
            )

    def _writer(self, stream: BytesIO) -> BatchWriter:
        try:
            return self._writer_in(stream)
        except BufferError:
            # A request that was given up is still being written from it.
            return self._writer_in(BytesIO(bytes(self.memory.piece_bytes)))

    def _writer_in(self, stream: BytesIO) -> BatchWriter:
        most = self._settings.batch_records
        if most < MAX_RECORDS:
            return CountedBatchWriter(stream, self._limit_bytes, most)
        return BatchWriter(stream, self._limit_bytes)

    def _codec(self, topic: str) -> int:
        settings = self._settings
        is_packed = settings.compressed_topics is None or topic in settings.compressed_topics
        return settings.codec if is_packed else Codec.NONE


def _never(_queue: PartitionQueue) -> bool:
    return False


def _is_before(one: ProducerBatch, other: ProducerBatch) -> bool:
    """Whether a queued batch keeps its place before another that has a sequence."""
    if not one.has_sequence:
        return False
    # Sequences begin at 0 again after 2^31 - 1, and those of one partition are never far apart.
    return (other.base_sequence - one.base_sequence) & 0x7FFF_FFFF < 2**30
