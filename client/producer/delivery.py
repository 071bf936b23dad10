"""What becomes of the records of a batch, kept once for all of them: where each lies, or why it does not.

A record's future is two slots: its batch's `Delivery` and its place in it.
"""

import logging
import os
import struct
import threading
from array import array
from bisect import bisect_right
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from kavka.client.api_errors import KafkaError, KafkaTimeoutError, UsedAfterForkError
from kavka.client.topic_partition import TopicPartition

NO_OFFSET: Final = -1
NO_SIZE: Final = -1
_THREE: Final = struct.Struct("=3i")

log = logging.getLogger(__name__)


class RecordMetadata(NamedTuple):
    """Where a record lies. Immutable.

    `offset` is -1 where nobody knows it: with acks=0, for a record that was not delivered, and for one that the broker
    had already got by an earlier try. `timestamp_ms` is the topic's: the record's own, or the broker's when it was
    appended. The sizes are those of key and value in bytes, before compression; -1 for none.

        metadata = producer.send("visits", b"/start").result(timeout=60)
        print(metadata.topic, metadata.partition, metadata.offset)
    """

    topic: str
    partition: int
    offset: int = NO_OFFSET
    timestamp_ms: int = -1
    serialized_key_size_bytes: int = NO_SIZE
    serialized_value_size_bytes: int = NO_SIZE


OnDelivery: TypeAlias = Callable[[RecordMetadata, KafkaError | None], Any]
"""Called once, with where the record lies; or with as much of that as is known, and why it was not delivered."""


class Delivery:
    """The results of a batch's records, from the first append on.

    Threads: appended to under its partition's lock; completed by the client's thread; asked by any. `_RARE` guards
    what is rare: waiting, listeners, and the moment at which it is done.
    """

    __slots__ = (
        "_append_time_ms",
        "_base_offset",
        "_callbacks",
        "_error",
        "_forks",
        "_rare",
        "is_decided",
        "is_done",
        "numbers",
        "topic_partition",
    )

    def __init__(self, topic_partition: TopicPartition) -> None:
        self.topic_partition: Final = topic_partition
        # As Any: an array as long as records come, then its bytes alone, which are smaller.
        self.numbers: Any = array("i")
        """Three for each record: its timestamp, counted from the batch's first, and the sizes of key and value."""
        self._forks: Final = _forks
        self.is_done = False
        """Whether the results are known, and the callbacks have run."""
        self.is_decided = False
        """Whether the results are known, though nobody may have been told yet."""
        self._callbacks: list[OnDelivery | None] | None = None
        self._rare: _Rare | None = None
        self._base_offset = NO_OFFSET
        self._append_time_ms = -1
        self._error: KafkaError | None = None

    @property
    def base_timestamp_ms(self) -> int:
        """What `numbers` are counted from."""
        return 0

    def note(self, timestamp_ms: int, key_size: int, value_size: int) -> None:
        """One record more. Under the partition's lock."""
        three = (timestamp_ms - self.base_timestamp_ms, key_size, value_size)
        try:
            self.numbers.extend(three)
        except OverflowError:
            # More than 24 days from the first.
            self.numbers = array("q", self.numbers)
            self.numbers.extend(three)

    def trim(self) -> None:
        """No record will come: keep no room for more. Under the partition's lock."""
        if self.numbers.typecode == "i":
            self.numbers = self.numbers.tobytes()

    def three(self, index: int) -> tuple[int, int, int]:
        """A record's timestamp, and the sizes of its key and value."""
        numbers = self.numbers
        is_packed = isinstance(numbers, bytes)
        three = _THREE.unpack_from(numbers, _THREE.size * index) if is_packed else numbers[3 * index : 3 * index + 3]
        return self.base_timestamp_ms + three[0], three[1], three[2]

    @property
    def noted(self) -> int:
        """How many records there are numbers of."""
        return len(self.numbers) // (_THREE.size if isinstance(self.numbers, bytes) else 3)

    def call_back(self, index: int, callback: OnDelivery) -> None:
        """Have a record's callback called. Under the partition's lock, in the order of the records."""
        callbacks = self._callbacks
        if callbacks is None:
            callbacks = self._callbacks = []
        callbacks.extend([None] * (index - len(callbacks)))
        callbacks.append(callback)

    def complete(self, base_offset: int, append_time_ms: int = -1) -> None:
        """All records were delivered, to offsets from `base_offset` on. `finish` tells who wants to know.

        The first outcome counts, any other is late.
        """
        if not self.is_decided:
            self._base_offset = base_offset
            self._append_time_ms = append_time_ms
            self.is_decided = True

    def fail(self, error: KafkaError, record_errors: Mapping[int, KafkaError] | None = None) -> None:
        """No record was delivered. `record_errors` has those that are at fault, by index, where brokers tell."""
        if not self.is_decided:
            self._error = error
            if record_errors:
                with _RARE:
                    rare = self._rare = self._rare or _Rare()
                    rare.record_errors = record_errors
            self.is_decided = True

    def finish(self) -> None:
        """Call back, and let who waits go on. Once, after `complete` or `fail`."""
        for index, callback in enumerate(self._callbacks or ()):
            if callback is not None:
                try:
                    callback(self.metadata(index), self.error(index))
                # CancelledError or SystemExit, too: the thread and those who wait are not the callback's to end.
                except BaseException:
                    log.exception("a callback failed partition='%s'", self.topic_partition)
        with _RARE:
            self.is_done = True
            self._callbacks = None
            rare = self._rare
            if rare is None:
                return
            latches, listeners = rare.latches, rare.listeners
            rare.latches, rare.listeners = [], {}
        for latch in latches:
            latch.release()
        for index in sorted(listeners):
            for listener in listeners[index]:
                listener()

    def split(self, first_indexes: list[int], parts: "list[Delivery]") -> None:
        """The records go on in several batches: from `first_indexes[n]` on in `parts[n]`, which has room for them.

        Timestamps, sizes, callbacks and listeners move there.
        """
        ends = [*first_indexes[1:], self.noted]
        for first, end, part in zip(first_indexes, ends, parts, strict=True):
            for index in range(first, end):
                part.note(*self.three(index))
            if self._callbacks is not None:
                part._callbacks = self._callbacks[first:end]
        with _RARE:
            rare = self._rare = self._rare or _Rare()
            rare.parts = first_indexes, parts
            latches, listeners = rare.latches, rare.listeners
            rare.latches, rare.listeners = [], {}
            self._callbacks = None
        for index, waiting in listeners.items():
            part, place = self.resolve(index)
            for listener in waiting:
                part.listen(place, listener)
        for latch in latches:
            latch.release()

    def resolve(self, index: int) -> "tuple[Delivery, int]":
        """The batch in which a record is now, and its place there."""
        found: Delivery = self
        while (rare := found._rare) is not None and rare.parts is not None:
            firsts, parts = rare.parts
            place = bisect_right(firsts, index) - 1
            found, index = parts[place], index - firsts[place]
        return found, index

    def error(self, index: int) -> KafkaError | None:
        """Why a record was not delivered; None if it was. Once it is decided."""
        rare = self._rare
        return self._error if rare is None else rare.record_errors.get(index, self._error)

    def metadata(self, index: int) -> RecordMetadata:
        """Where a record lies, as far as that is known. Once it is decided."""
        offset, append_time_ms = self._base_offset, self._append_time_ms
        topic, partition = self.topic_partition
        if index >= self.noted:
            return RecordMetadata(topic, partition)
        timestamp_ms, key_size, value_size = self.three(index)
        return RecordMetadata(
            topic,
            partition,
            offset if offset == NO_OFFSET else offset + index,
            timestamp_ms if append_time_ms < 0 else append_time_ms,
            key_size,
            value_size,
        )

    def wait(self, timeout_s: float | None) -> bool:
        """Wait until it is done, or its records go on elsewhere; False when neither was so in time. Any thread."""
        with _RARE:
            if self.is_done or self._parts is not None:
                return True
            self._refuse_forks()
            rare = self._rare = self._rare or _Rare()
            # One for each who waits, and no Event: that takes twenty functions of Python.
            latch = threading.Lock()
            latch.acquire()
            rare.latches.append(latch)
        if latch.acquire(timeout=-1 if timeout_s is None else min(timeout_s, threading.TIMEOUT_MAX)):
            return True
        with _RARE:
            if latch in rare.latches:
                rare.latches.remove(latch)
                return False
        return True

    def wait_whole(self, timeout_s: Callable[[], float]) -> None:
        """Wait until all records are done, wherever they are. Raises KafkaTimeoutError."""
        rest: list[Delivery] = [self]
        while rest:
            delivery = rest.pop()
            if (split := delivery._parts) is not None:
                rest += split[1]
            elif not delivery.is_done:
                if not delivery.wait(max(timeout_s(), 0)):
                    raise KafkaTimeoutError("records were still on their way when the time was over")
                rest.append(delivery)

    def listen(self, index: int, listener: Callable[[], None]) -> None:
        """Call `listener` once the record is done: on the client's thread, or now if it is already. Any thread."""
        with _RARE:
            delivery, place = self.resolve(index)
            if not delivery.is_done:
                self._refuse_forks()
                rare = delivery._rare = delivery._rare or _Rare()
                rare.listeners.setdefault(place, []).append(listener)
                return
        listener()

    @property
    def _parts(self) -> "tuple[list[int], list[Delivery]] | None":
        """First indexes and batches, once the records go on in several."""
        rare = self._rare
        return None if rare is None else rare.parts

    def _refuse_forks(self) -> None:
        if self._forks != _forks:
            raise UsedAfterForkError(
                f"the record to {self.topic_partition} is another process's, which forked this one"
            )


class _Rare:
    """What few batches have. Guarded by `_RARE`; `parts` is set once."""

    __slots__ = ("latches", "listeners", "parts", "record_errors")

    def __init__(self) -> None:
        self.latches: list[threading.Lock] = []
        """Of those who wait, each held until the batch is done or goes on elsewhere."""
        self.listeners: dict[int, list[Callable[[], None]]] = {}
        self.parts: tuple[list[int], list[Delivery]] | None = None
        self.record_errors: Mapping[int, KafkaError] = {}


def failed_delivery(
    topic_partition: TopicPartition, error: KafkaError, on_delivery: OnDelivery | None = None
) -> Delivery:
    """That of a record which was never part of a batch; its callback is called at once."""
    delivery = Delivery(topic_partition)
    if on_delivery is not None:
        delivery.call_back(0, on_delivery)
    delivery.fail(error)
    delivery.finish()
    return delivery


_RARE = threading.Lock()
_forks = 0
"""How often this process was forked from another since its first: what was on its way before, nobody completes here."""


def _renew_lock() -> None:
    """In a forked child: another thread of the parent's may have held it, and is not here to let it go."""
    global _RARE, _forks
    _RARE = threading.Lock()
    _forks += 1


os.register_at_fork(after_in_child=_renew_lock)
