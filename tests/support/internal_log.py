"""A coordinator's log in memory, with failures and a high watermark that a test moves."""

from __future__ import annotations

import threading
from collections.abc import Callable

from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.records.batch import iter_batch_headers, patch_offsets, read_header


class MemoryLog:
    """Implements `InternalLog`. Batches as bytes, one after the other."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, bytes]] = []
        self.start_offset = 0
        self.end_offset = 0
        self.holds_high_watermark = False
        self.committed_offset = 0
        self.leader_epoch = 0
        self.woken = 0
        self.reads = 0
        self.failures: list[BrokerError] = []
        self.read_failures: list[Exception] = []
        self.before_read: Callable[[], None] = lambda: None
        self.waiting: list[tuple[int, Callable[[BrokerError | None], None]]] = []
        self.appenders: set[threading.Thread] = set()
        self.guards: list[int] = []

    def append(self, batch: bytearray, leader_epoch: int, transaction_version: int = 0, guard: int = 0) -> int:
        self.guards.append(guard)
        self.appenders.add(threading.current_thread())
        if self.failures:
            raise self.failures.pop(0)
        if leader_epoch != self.leader_epoch:
            raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        patch_offsets(batch, 0, self.end_offset, leader_epoch)
        self.batches.append((self.end_offset, bytes(batch)))
        self.end_offset = read_header(batch).next_offset
        return self.end_offset

    def append_plain(self, batch: bytearray, leader_epoch: int, records: int, timestamp_ms: int) -> int:
        header = read_header(batch)
        assert (header.next_offset - header.base_offset, header.max_timestamp_ms) == (records, timestamp_ms)
        return self.append(batch, leader_epoch)

    def appended(self) -> None:
        self.woken += 1

    @property
    def high_watermark(self) -> int:
        return self.committed_offset if self.holds_high_watermark else self.end_offset

    def when_committed(self, end_offset: int, done: Callable[[BrokerError | None], None]) -> None:
        self.waiting.append((end_offset, done))

    def commit(self, offset: int, error: BrokerError | None = None) -> None:
        """The high watermark moves; with an error, waits end that way instead."""
        self.committed_offset = offset
        due = [wait for wait in self.waiting if wait[0] <= offset or error is not None]
        self.waiting = [wait for wait in self.waiting if wait not in due]
        for _, done in due:
            done(error)

    def read(self, offset: int, max_bytes: int) -> bytes:
        self.reads += 1
        self.before_read()
        if self.read_failures:
            raise self.read_failures.pop(0)
        if not self.start_offset <= offset <= self.end_offset:
            raise BrokerError(ErrorCode.OFFSET_OUT_OF_RANGE)
        data = b"".join(batch for base, batch in self.batches if read_header(batch).next_offset > offset)
        first = next(iter_batch_headers(data))[1].size_bytes if data else 0
        return data[: max(max_bytes, first)]
