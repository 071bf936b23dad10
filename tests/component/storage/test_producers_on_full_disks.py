"""Idempotent producers on a disk that fills up at any moment: everything they send is in the log once, and in order.

The log is real. Its producers keep librdkafka's rules: five batches under way, one partition's retries in order and as
the same batches when nothing is under way any more, and what it makes of the order in which answers come. Connections
are lost; what was on their way may be taken long after it was sent again.
"""

import errno
import tempfile
from collections import deque
from pathlib import Path
from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from kavka.protocol.errors import ErrorCode
from kavka.storage.append_result import AppendError
from kavka.storage.files import AnyPath, Files
from kavka.storage.partition_log import PartitionLog
from tests.support.partition_logs import append_batch, batch_of, open_log, read_all

MAX_UNDER_WAY = 5
PRODUCERS = 2

producers = st.integers(0, PRODUCERS - 1)
room = st.none() | st.sampled_from([0, 60])


class SmallDisk(Files):
    """Takes `room_bytes` of each write, and no new file; None: all of them."""

    def __init__(self) -> None:
        self.room_bytes: int | None = None
        self.pwrite = self._pwrite

    def open(self, path: AnyPath, *, create: bool = False, read_only: bool = False) -> int:
        if create and self.room_bytes is not None and not self.exists(path):
            raise OSError(errno.ENOSPC, "no space left", str(path))
        return super().open(path, create=create, read_only=read_only)

    def _pwrite(self, fd: int, data: bytes | bytearray | memoryview, position: int) -> int:
        if self.room_bytes is None:
            return Files.pwrite(fd, data, position)
        if not self.room_bytes:
            raise OSError(errno.ENOSPC, "no space left")
        return Files.pwrite(fd, bytes(data)[: self.room_bytes], position)


class Batch(NamedTuple):
    first: int
    length: int

    @property
    def following(self) -> int:
        return self.first + self.length


class Producer:
    """librdkafka's idempotent producer of one partition. Sequences are numbers of messages, too."""

    def __init__(self, producer_id: int, log: PartitionLog) -> None:
        self.producer_id = producer_id
        self._log = log
        self._made = 0
        self._delivered = 0
        self._next_ack = self._next_error = 0
        self._waits_for_answers = False
        self._queue: list[Batch] = []
        self.under_way: deque[Batch] = deque()
        self._answers: deque[tuple[Batch, ErrorCode]] = deque()
        self.left_behind: list[deque[Batch]] = []
        """What was sent over connections that the client has given up, and the broker not read yet."""

    @property
    def is_done(self) -> bool:
        return not self._queue and not self.under_way and not self._answers

    def value(self, number: int) -> bytes:
        return b"%d:%d" % (self.producer_id, number)

    @property
    def values(self) -> list[bytes]:
        return [self.value(number) for number in range(self._made)]

    def make(self, count: int) -> None:
        self._queue.append(Batch(self._made, count))
        self._made += count

    def send(self) -> None:
        if self._waits_for_answers and (self.under_way or self._answers):
            return
        self._waits_for_answers = False
        while self._queue and len(self.under_way) + len(self._answers) < MAX_UNDER_WAY:
            self.under_way.append(self._queue.pop(0))

    def be_read(self) -> None:
        """The broker takes the first of what is under way."""
        batch = self.under_way.popleft()
        self._answers.append((batch, self._append(batch)))

    def be_read_late(self, connection: int) -> None:
        """The broker takes something from a connection that has nobody at its other end."""
        wire = self.left_behind[connection % len(self.left_behind)]
        self._append(wire.popleft())
        self.left_behind = [each for each in self.left_behind if each]

    def lose_connection(self) -> None:
        if self.under_way:
            self.left_behind.append(deque(self.under_way))
        for batch in (*(batch for batch, _ in self._answers), *self.under_way):
            # It may be there: the next answer may say so.
            self._next_ack = self._next_error = batch.following
            self._retry(batch)
        self._answers.clear()
        self.under_way.clear()

    def hear(self) -> None:
        if not self._answers:
            return
        batch, code = self._answers.popleft()
        if code is ErrorCode.KAFKA_STORAGE_ERROR:
            self._next_error = batch.following
            self._retry(batch)
            return
        # Anything else has it fail for good, or begin an epoch in which it may send twice what it has under way.
        assert code is ErrorCode.NONE
        if self._delivered < batch.first:
            # What comes before it must be in the log: it is taken to be delivered.
            self._queue = [each for each in self._queue if each.first > batch.first]
        else:
            expects_failure = batch.first != self._next_ack and batch.first == self._next_error
            assert not expects_failure, "a fatal error: it succeeded behind one that failed"
        if self._next_error == self._next_ack:
            self._next_error = batch.following
        self._next_ack = batch.following
        self._delivered = max(self._delivered, batch.following)
        there = [value for _, value in read_all(self._log)]
        assert all(self.value(number) in there for number in range(self._delivered))

    def _retry(self, batch: Batch) -> None:
        self._queue = sorted([batch, *self._queue])
        self._waits_for_answers = True

    def _append(self, batch: Batch) -> ErrorCode:
        values = [self.value(number) for number in range(batch.first, batch.following)]
        sent = batch_of(*values, producer_id=self.producer_id, producer_epoch=0, base_sequence=batch.first)
        try:
            append_batch(self._log, sent)
        except AppendError as refusal:
            return refusal.code
        return ErrorCode.NONE


class ProducersOnASmallDisk(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self._directory = tempfile.TemporaryDirectory()
        self.disk = SmallDisk()
        # So small that every few batches begin a segment.
        self.log = open_log(Path(self._directory.name) / "visits-0", files=self.disk, segment_bytes=300)
        self.producers = [Producer(number + 1, self.log) for number in range(PRODUCERS)]

    @rule(number=producers, counts=st.lists(st.integers(1, 3), min_size=1, max_size=6))
    def make_and_send(self, number: int, counts: list[int]) -> None:
        for count in counts:
            self.producers[number].make(count)
        self.producers[number].send()

    @rule(number=producers, rooms=st.lists(room, min_size=1, max_size=MAX_UNDER_WAY))
    def take(self, number: int, rooms: list[int | None]) -> None:
        for self.disk.room_bytes in rooms:
            if self.producers[number].under_way:
                self.producers[number].be_read()

    @rule(number=producers, most=st.integers(1, MAX_UNDER_WAY))
    def hear_and_send(self, number: int, most: int) -> None:
        for _ in range(most):
            self.producers[number].hear()
        self.producers[number].send()

    @rule(number=producers)
    def connect_anew(self, number: int) -> None:
        self.producers[number].lose_connection()
        self.producers[number].send()

    @rule(number=producers, connection=st.integers(0, 9), room_bytes=room)
    def take_what_was_left_behind(self, number: int, connection: int, room_bytes: int | None) -> None:
        self.disk.room_bytes = room_bytes
        if self.producers[number].left_behind:
            self.producers[number].be_read_late(connection)

    def teardown(self) -> None:
        try:
            self.disk.room_bytes = None
            for producer in self.producers:
                # Each round brings at least one batch through.
                for _ in range(len(producer.values) + 2):
                    producer.send()
                    while producer.under_way:
                        producer.be_read()
                    for _ in range(MAX_UNDER_WAY):
                        producer.hear()
                assert producer.is_done
                while producer.left_behind:
                    producer.be_read_late(0)
            there = [value for _, value in read_all(self.log)]
            for producer in self.producers:
                prefix = b"%d:" % producer.producer_id
                assert [value for value in there if value is not None and value.startswith(prefix)] == producer.values
        finally:
            self.log.close(clean=False)
            self._directory.cleanup()


TestProducersOnASmallDisk = ProducersOnASmallDisk.TestCase
TestProducersOnASmallDisk.settings = settings(stateful_step_count=40)
