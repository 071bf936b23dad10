"""Who waits at a partition, for data or for the high watermark, and who tells them."""

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from kavka.broker.partitions.role import NO_ROLE
from kavka.broker.waiting.purgatory import WatchList
from kavka.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from kavka.broker.waiting.offset_queue import OffsetQueue
    from kavka.broker.waiting.purgatory import Purgatory
    from kavka.storage.partition_log import PartitionLog


class Follows(Protocol):
    """One follower's session, as far as it has this partition."""

    def end_moved(self) -> object:
        """There is something to copy. Any thread, with no lock held."""

    def is_news(self) -> object:
        """There is something to tell it of, when it asks next. Any thread, with no lock held."""


class PartitionWaits:
    """The waits of a partition, and what they look at.

    Threads: any. Watch lists and the queue are checked with no lock held; whoever changes something checks afterwards.
    `_lock` guards that there is one queue.
    """

    __slots__ = ("_lock", "awaiting", "data_arrived", "high_watermark_moved", "log", "role", "sessions")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.log: PartitionLog | None = None
        self.role = NO_ROLE
        self.data_arrived = WatchList()
        """Fetches that wait for data (consumers for the high watermark, others for the end)."""
        self.high_watermark_moved = WatchList()
        """Produces with acks=all of the ordinary way, DeleteRecords, and whatever else waits for replication."""
        self.sessions: dict[Follows, None] = {}
        """Of followers. Each access is one operation on the dictionary, atomic by itself."""
        self.awaiting: OffsetQueue | None = None
        """Requests of known shapes that wait for the high watermark; made for the first of them."""

    @property
    def has_enough_copies(self) -> bool:
        """Whether acks=all holds for what is committed now: counts those too who are about to be added to the ISR."""
        log, role = self.log, self.role
        return log is None or len(role.maximal_isr) >= role.effective_min_isr(log.config.min_insync_replicas)

    def fate_of(self, leader_epoch: int, required_offset: int) -> ErrorCode | None:
        """What has become of what was appended in that leader epoch, below that offset; None: nobody knows yet.

        The high watermark says it, however many are in sync; only whether those were enough is asked of the ISR then.
        """
        log = self.log
        # In this order: while it has led since then, no other leader has moved the high watermark.
        high_watermark = -1 if log is None else log.high_watermark
        if log is None or not self.role.has_led_since(leader_epoch):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if high_watermark < required_offset:
            return None
        return ErrorCode.NONE if self.has_enough_copies else ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND

    def queue(self, purgatory: "Purgatory") -> "OffsetQueue":
        """Where requests of known shapes wait."""
        queue = self.awaiting
        if queue is None:
            # Brokers that stand alone never come here.
            from kavka.broker.waiting.offset_queue import OffsetQueue

            with self._lock:
                queue = self.awaiting
                if queue is None:
                    queue = self.awaiting = OffsetQueue(self.fate_of, purgatory)
        return queue

    def appended(self) -> None:
        """The log's end has moved, and maybe the high watermark: wake who waits for that. No lock may be held."""
        if self.sessions:
            for session in list(self.sessions):
                session.end_moved()
        if self.data_arrived.operations:
            self.data_arrived.check()
        if self.high_watermark_moved.operations:
            self.high_watermark_moved.check()
        awaiting = self.awaiting
        if awaiting is not None and awaiting.entries:
            awaiting.settle_reached()

    def wake_all(self) -> None:
        """Have everything that waits look again: the role has changed. No lock may be held."""
        if self.awaiting is not None:
            self.awaiting.settle_ended()
        self.high_watermark_moved.check()
        for session in list(self.sessions):
            session.end_moved()
        self.data_arrived.check()


def committed(partitions: Sequence[PartitionWaits]) -> None:
    """The high watermarks of these have moved: wake who waits for that. No lock may be held.

    Answers first, those of one connection at once. Followers hear of it when they ask next: it is worth no answer.
    """
    queues = [each.awaiting for each in partitions if each.awaiting is not None and each.awaiting.entries]
    if queues:
        queues[0].settle_reached(*queues[1:])
    for partition in partitions:
        if partition.high_watermark_moved.operations:
            partition.high_watermark_moved.check()
        for session in list(partition.sessions):
            session.is_news()
        if partition.data_arrived.operations:
            partition.data_arrived.check()
