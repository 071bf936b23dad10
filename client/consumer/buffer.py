"""Fetched chunks on their way from the client's thread to the polling one."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Final, NoReturn

from kavka.client.consumer.chunks import Chunk
from kavka.client.consumer.columns import RecordColumns
from kavka.client.consumer.decoding import Rules
from kavka.client.consumer.errors import CorruptBatchReadError, RecordDeserializationError
from kavka.client.consumer.fetch_metrics import FetchMetrics
from kavka.client.consumer.positions import PartitionState, Position
from kavka.client.consumer.stretches import DeserializationError, Deserializers, Piece
from kavka.client.consumer.subscription import Subscription
from kavka.client.kafka_error import KafkaError
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.buffer_pool import BufferPool

UNPACKED_KEPT_BYTES: Final = 8 * 1024 * 1024
"""Of buffers that packed batches are unpacked into."""


class News:
    """Ends the polling thread's wait. One waits, any thread tells; what was told before ends the next wait at once."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def tell(self) -> None:
        if self._lock.locked():
            try:
                self._lock.release()
            except RuntimeError:
                # Somebody else did meanwhile: that is as good.
                return

    def wait(self, timeout_ms: float) -> None:
        self._lock.acquire(timeout=min(max(timeout_ms, 0.0) / 1000, threading.TIMEOUT_MAX))


class FetchBuffer:
    """Chunks in the order in which they came, until they are given out.

    Bounded by who fills it: `room_bytes` says how much may still be asked for. Threads: the client's thread adds, the
    polling thread takes; the subscription's lock guards `_ready`, `size_bytes` and `_is_full`, the rest is the polling
    thread's.
    """

    def __init__(
        self,
        subscription: Subscription,
        *,
        max_bytes: int,
        news: News,
        wake: Callable[[], None],
        metrics: FetchMetrics,
        skip_corrupt: bool = False,
        check_crcs: bool = True,
        deserializers: Deserializers | None = None,
    ) -> None:
        self._subscription: Final = subscription
        self._max_bytes: Final = max_bytes
        self._news: Final = news
        self._wake: Final = wake
        self._metrics: Final = metrics
        self._deserializers: Final = deserializers or _NO_DESERIALIZERS
        pool = BufferPool(UNPACKED_KEPT_BYTES)
        self._for_records: Final = Rules(check_crcs, skip_corrupt, pool=pool)
        self._for_columns: Final = Rules(check_crcs, skip_corrupt, only_columns=True, pool=pool)
        self._ready: deque[Chunk] = deque()
        self.size_bytes = 0
        self.is_full = False
        """Something was not asked for because of what is here: the client's thread wants to hear of room."""
        self._was_let_go = False

    # The client's thread, with the lock

    def add(self, state: PartitionState, chunk: Chunk) -> None:
        state.buffered_bytes += chunk.size_bytes
        self.size_bytes += chunk.size_bytes
        state.buffered_errors += chunk.is_failed
        self._ready.append(chunk)
        self._news.tell()

    def has_room(self, state: PartitionState, partition_bytes: int, kept_bytes: int = 0) -> bool:
        """Whether more may be asked for of a partition; if not, `wake` is called once there is.

        `kept_bytes` is what cannot be given out now, as its partitions are paused: it must not keep others waiting.
        """
        size_bytes = self.size_bytes - kept_bytes
        if state.buffered_errors == 0 and state.buffered_bytes < partition_bytes and size_bytes < self._max_bytes:
            return True
        self.is_full = True
        return False

    # The polling thread

    def take(self, most: int) -> list[Piece]:
        """Up to `most` records, and the positions moved behind them.

        Raises what waits to be raised for a partition, when nothing comes before it; that is the next to come then.
        """
        return self._take(most, self._for_records)

    def take_columns(self, most: int) -> list[RecordColumns]:
        """The same as columns. Deserializers are not called."""
        return [piece.stretch.columns(piece.first, piece.end) for piece in self._take(most, self._for_columns)]

    def raise_failure(self, partition: TopicPartition) -> None:
        """Raise what waits to be raised in place of a partition's position, if anything does."""
        with self._subscription.lock:
            failed = [chunk for chunk in self._ready if chunk.is_failed and chunk.partition == partition]
            for chunk in failed:
                self._ready.remove(chunk)
        for chunk in failed:
            if chunk.error is not None and self._is_usable(chunk):
                self._raise(chunk, chunk.error)

    def _take(self, most: int, rules: Rules) -> list[Piece]:
        taken: list[Piece] = []
        left = most
        aside: list[Chunk] = []
        given: list[tuple[Chunk, Position]] = []
        try:
            while left > 0 and self._ready:
                chunk = self._ready.popleft()
                given.append((chunk, chunk.state.position))
                if not self._is_usable(chunk):
                    if not chunk.is_gone:
                        aside.append(chunk)
                    continue
                if not self._is_begun(chunk, rules):
                    continue
                if chunk.error is not None:
                    if taken:
                        self._ready.appendleft(chunk)
                        break
                    self._raise(chunk, chunk.error)
                piece = self._piece(chunk, left, rules, raises=not taken)
                if piece is None:
                    self._ready.appendleft(chunk)
                    break
                if self._give(chunk, piece):
                    taken.append(piece)
                    left -= len(piece)
        except KafkaError:
            raise
        except BaseException:
            self._take_back(given, aside)
            raise
        finally:
            self._ready.extendleft(reversed(aside))
            self._tell_of_room()
        return taken

    def _take_back(self, given: list[tuple[Chunk, Position]], aside: list[Chunk]) -> None:
        """Something unforeseen ends a `take` half way, Ctrl-C or no memory: ask anew for what nobody gets to see."""
        with self._subscription.lock:
            for chunk, position in given:
                if chunk not in aside and not chunk.is_stale:
                    # The first of a partition counts: the later ones are stale then.
                    chunk.state.position = position
                    chunk.state.refetch()
                if chunk not in aside and chunk not in self._ready:
                    self._let_go(chunk)
        self._wake()

    def _is_usable(self, chunk: Chunk) -> bool:
        """Whether its records may be given out now; one that never may any more is let go."""
        with self._subscription.lock:
            if chunk.is_stale:
                self._let_go(chunk)
                return False
            if chunk.is_failed:
                return True
            state = chunk.state
            # As `is_kept`, without its call.
            return not (state.is_paused or state.is_withheld or state.is_unwanted) and state.has_position

    def _is_begun(self, chunk: Chunk, rules: Rules) -> bool:
        """Come to the next records of a chunk, or to its error; at its end it is let go."""
        stretch = chunk.stretch
        if chunk.error is not None or (stretch is not None and chunk.taken < len(stretch)):
            return True
        try:
            if chunk.advance(rules) is not None:
                return True
        except CorruptBatchReadError as failure:
            self._metrics.corrupt_batches += 1
            chunk.error = failure
            return True
        with self._subscription.lock:
            self._let_go(chunk)
            if chunk.uncounted_bytes:
                # What nobody is given is read, too: markers, aborted records.
                self._metrics.consumed(chunk.partition.topic, chunk.uncounted_bytes)
        return False

    def _piece(self, chunk: Chunk, left: int, rules: Rules, *, raises: bool) -> Piece | None:
        """The next records; None when the first one's deserializer raised, and others are to be returned before."""
        stretch = chunk.stretch
        assert stretch is not None
        first = chunk.taken
        piece = Piece(chunk.partition, stretch, first, min(len(stretch), first + left), self._deserializers)
        if rules.only_columns or self._deserializers == _NO_DESERIALIZERS or not len(piece):
            return piece
        try:
            piece.records()
        except DeserializationError as failure:
            if failure.number:
                return Piece(chunk.partition, stretch, first, first + failure.number, self._deserializers)
            if not raises:
                return None
            self._ready.appendleft(chunk)
            offset = stretch.fields(first, first + 1).offsets[0]
            error = RecordDeserializationError(chunk.partition, offset, of_key=failure.of_key)
            raise error from failure.__cause__
        return piece

    def _give(self, chunk: Chunk, piece: Piece) -> bool:
        """Move the position behind the piece; whether it has records, and is still wanted."""
        stretch, end, count = piece.stretch, piece.end, len(piece)
        with self._subscription.lock:
            if chunk.is_stale:
                self._let_go(chunk)
                return False
            state = chunk.state
            state.position = Position(stretch.offset_after(end), stretch.leader_epoch)
            chunk.taken = end
            self._ready.appendleft(chunk)
            self._metrics.given(state, count, chunk.count(count))
        return count > 0

    def _raise(self, chunk: Chunk, error: KafkaError) -> NoReturn:
        """It is asked for anew afterwards, unless the user seeks."""
        with self._subscription.lock:
            self._let_go(chunk)
            state = chunk.state
            if isinstance(error, CorruptBatchReadError):
                state.position = Position(max(error.offset, state.position.offset), state.position.epoch)
            state.refetch()
            state.is_asked = False
        self._wake()
        raise error

    def _let_go(self, chunk: Chunk) -> None:
        if chunk.is_gone:
            return
        chunk.is_gone = True
        state = chunk.state
        state.buffered_bytes -= chunk.size_bytes
        self.size_bytes -= chunk.size_bytes
        if chunk.is_failed:
            state.buffered_errors -= 1
        self._was_let_go = True

    def _tell_of_room(self) -> None:
        if self.is_full and self._was_let_go:
            self.is_full = self._was_let_go = False
            self._wake()


_NO_DESERIALIZERS: Final = Deserializers()
