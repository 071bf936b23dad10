"""An answer that is known but for one thing: whether what it promises is on all replicas in sync."""

from collections.abc import Callable, Sequence
from time import monotonic_ns
from typing import TYPE_CHECKING

from kavka.broker.waiting.offset_queue import AwaitedOffset
from kavka.broker.waiting.short_answer import ShortAnswer
from kavka.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from kavka.broker.network.connection import Connection
    from kavka.broker.partitions.partition_waits import PartitionWaits
    from kavka.broker.waiting.purgatory import Purgatory

Make = Callable[[Sequence[ErrorCode]], bytes]
"""The answer, by what has become of each of the awaited offsets."""


class AwaitedAnswer(ShortAnswer):
    """A request of a known shape whose effects are complete.

    Threads: made and parked by who runs the request; each offset's outcome is set by who takes it out of its queue. Two
    that find all of them set make the same answer, and the later one is nobody's any more.
    """

    __slots__ = ("_make", "_outcomes", "_purgatory", "_timeout_ms", "_waits")

    def __init__(
        self,
        api_key: int,
        api_version: int,
        waits: "Sequence[tuple[PartitionWaits, int, int]]",
        make: Make,
        timeout_ms: float,
        purgatory: "Purgatory",
    ) -> None:
        """`waits`: partition, leader epoch from before the append, offset that its high watermark must reach."""
        self.api_key = api_key
        self.api_version = api_version
        self.answer = None
        self.completed_ns = 0
        self._waits = waits
        self._outcomes: list[ErrorCode | None] = [None] * len(waits)
        self._make = make
        self._timeout_ms = timeout_ms
        self._purgatory = purgatory

    def amend(self, change: "Callable[[bytes, Sequence[ErrorCode]], bytes]") -> None:
        """Answer with `change(answer, codes)`. Before it is parked."""
        make = self._make
        self._make = lambda codes: change(make(codes), codes)

    def park(self, connection: "Connection", received_ns: int, started_ns: int, done_ns: int, is_inline: bool) -> bool:
        """Take the next place among the connection's answers, and wait. See `prepared.Later`."""
        self.connection = connection
        self.received_ns = received_ns
        self.started_ns = started_ns
        self.local_done_ns = done_ns
        connection.answers.slots.append(self)
        deadline_ns = done_ns + int(self._timeout_ms * 1_000_000)
        waits, self._waits = self._waits, ()
        for place, (partition, leader_epoch, required_offset) in enumerate(waits):
            entry = AwaitedOffset(self, place, leader_epoch, required_offset, deadline_ns)
            partition.queue(self._purgatory).add(entry)
        return True

    def settle(self, place: int, code: ErrorCode) -> bool:
        """See `offset_queue.Answering`."""
        outcomes = self._outcomes
        outcomes[place] = code
        if None in outcomes:
            return False
        if not self.connection.closed:
            self.completed_ns = monotonic_ns()
            self.answer = self._make([code for code in outcomes if code is not None])
        return True


class MadeAnswer(ShortAnswer):
    """An answer that is complete, and follows others that are not: no more than its place among them."""

    __slots__ = ()

    def __init__(
        self,
        answer: bytes,
        connection: "Connection",
        frame: memoryview,
        received_ns: int,
        started_ns: int,
        done_ns: int,
    ) -> None:
        """`frame`: the request, which is not kept."""
        self.answer = answer
        self.api_key = frame[1]
        self.api_version = frame[3]
        self.connection = connection
        self.received_ns = received_ns
        self.started_ns = started_ns
        self.local_done_ns = done_ns
        self.completed_ns = 0
