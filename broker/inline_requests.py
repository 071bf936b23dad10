"""Small requests of a known kind, run by the network thread that has just read them.

Handing a request to an I/O thread and back to sleep costs more than running it: with one produce in flight, eleven of
a round trip's twenty system calls were futex calls. So the network thread itself runs requests whose cost is known to
be small, while nobody else is at work on their connection:

- a produce that repeats its shape and brings little data;
- a fetch of a connection whose last fetch found nothing: it will wait, or read what was written just now. If it finds
  more, or is of an old version, whose records have to be converted, an I/O thread answers it;
- an offset commit or a heartbeat, on a connection that does not produce: one short turn in a group's shard.

It must not wait for a disk, though, or all its connections would: when a run takes long (the kernel throttles writers
whose disk is behind), requests go to the I/O threads for a while, longer each time.
"""

from collections.abc import Callable, Sequence
from time import monotonic_ns as now_ns
from typing import TYPE_CHECKING, Final

from kavka.broker.handling import Context
from kavka.broker.produce_shapes import ACKS_0_FAILED, CLOSES
from kavka.broker.request_log import SLOW_NS as LOGGED_FROM_NS
from kavka.broker.request_log import log_slow

if TYPE_CHECKING:
    from kavka.broker.metrics import ThreadCells
    from kavka.broker.network.connection import Connection

MAX_FRAME_BYTES: Final = 16 * 1024
MAX_FRAMES: Final = 64
SLOW_NS: Final = 25_000_000
FIRST_REST_NS: Final = 250_000_000
LONGEST_REST_NS: Final = 4_000_000_000
PRODUCE_KEY: Final = 0
COMMIT_KEY: Final = 8
FETCH_BYTES: Final = b"\0\1\0\4"
"""Fetch v4, the first that needs no conversion: key and version, as those of all later ones up to the next."""
BEHIND_FETCH_BYTES: Final = b"\0\1\x80\0"
GROUP_KEY_BYTES: Final = frozenset({b"\0\x08", b"\0\x0c"})
"""OffsetCommit and Heartbeat."""


class InlineRequests:
    """What one network thread may run itself. Threads: that network thread alone."""

    __slots__ = ("_ended_ns", "_execute", "_rest_ns", "_resting_until_ns", "_slow_ns")

    def __init__(self, execute: Callable[[Context], bool], slow_ns: int = SLOW_NS) -> None:
        """`execute` is the dispatcher's: False when the connection is held until the request is answered.

        A run that takes longer than `slow_ns` sends requests to the I/O threads for a while.
        """
        self._execute = execute
        self._slow_ns = slow_ns
        self._rest_ns = FIRST_REST_NS
        self._resting_until_ns = 0
        self._ended_ns = 0
        """When what was run last had been answered."""

    def run(
        self, connection: "Connection", frames: Sequence[memoryview], received_ns: int, cells: "ThreadCells"
    ) -> tuple[int, bool]:
        """Run the leading frames that may be run here, and write their answers: how many, and whether all is done.

        If not, whoever answers the last one holds the connection's `running` until then. The caller holds it before,
        and nothing of the connection waits to run or to be answered.
        """
        if received_ns < self._resting_until_ns or len(frames) > MAX_FRAMES:
            return 0, True
        first = frames[0]
        fits = len(first) <= MAX_FRAME_BYTES
        is_done = True
        if connection.is_tailing and fits and FETCH_BYTES <= first[:4].tobytes() < BEHIND_FETCH_BYTES:
            count, is_done = 1, self._one(connection, first, received_ns)
        elif (
            fits and not connection.is_tailing and connection.shapes is None and first[:2].tobytes() in GROUP_KEY_BYTES
        ):
            count = 1
            if connection.commit_shapes is None or not self._commit(connection, first, received_ns, cells):
                is_done = self._one(connection, first, received_ns)
        else:
            count, is_done = self._produce(connection, frames, received_ns, cells)
        taken_ns = self._ended_ns - received_ns
        if count and (taken_ns > self._slow_ns or self._rest_ns > FIRST_REST_NS):
            self._watch_pace(taken_ns, count)
        return count, is_done

    def _one(self, connection: "Connection", frame: memoryview, received_ns: int) -> bool:
        context = Context(connection, frame, received_ns, 0)
        context.started_ns = received_ns
        context.is_inline = True
        is_done = self._execute(context)
        connection.flush()
        self._ended_ns = now_ns()
        return is_done

    def _commit(self, connection: "Connection", frame: memoryview, received_ns: int, cells: "ThreadCells") -> bool:
        shapes = connection.commit_shapes
        answer = None if shapes is None else shapes.commit(frame)
        if answer is None:
            return False
        done_ns = now_ns()
        connection.write([answer])
        self._ended_ns = sent_ns = now_ns()
        times = (received_ns, received_ns, done_ns, done_ns, sent_ns, sent_ns)
        cells.request(COMMIT_KEY, times)
        if sent_ns - received_ns > LOGGED_FROM_NS:
            log_slow(connection, frame, times)
        return True

    def _produce(
        self, connection: "Connection", frames: Sequence[memoryview], received_ns: int, cells: "ThreadCells"
    ) -> tuple[int, bool]:
        shapes = connection.shapes
        if shapes is None:
            return 0, True
        produce = shapes.produce
        count = 0
        ready: list[bytes] = []
        ends_ns: list[int] = []
        answer: bytes | None = None
        for frame in frames:
            if len(frame) > MAX_FRAME_BYTES:
                break
            answer = produce(frame, cells, may_wait=False)
            if answer is None:
                break
            count += 1
            ends_ns.append(now_ns())
            if answer is CLOSES:
                break
            if answer:
                ready.append(answer)
        if not count:
            return 0, True
        started_ns = received_ns
        if ready:
            connection.write(ready)
        if answer is CLOSES:
            connection.close_answered(ACKS_0_FAILED)
        self._ended_ns = sent_ns = now_ns()
        for done_ns in ends_ns:
            cells.request(PRODUCE_KEY, (received_ns, started_ns, done_ns, done_ns, sent_ns, sent_ns))
            started_ns = done_ns
        if sent_ns - received_ns > LOGGED_FROM_NS:
            # One line for all: they were read, and answered, together.
            log_slow(connection, frames[0], (received_ns, received_ns, started_ns, started_ns, sent_ns, sent_ns))
        return count, answer is not CLOSES

    def _watch_pace(self, taken_ns: int, count: int) -> None:
        at_ns = self._ended_ns
        if taken_ns > self._slow_ns + count * 20_000:
            self._resting_until_ns = at_ns + self._rest_ns
            self._rest_ns = min(2 * self._rest_ns, LONGEST_REST_NS)
        elif self._rest_ns > FIRST_REST_NS and at_ns - self._resting_until_ns > LONGEST_REST_NS:
            self._rest_ns = FIRST_REST_NS
