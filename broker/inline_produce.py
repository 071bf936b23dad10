"""Small produce requests of a known shape, run by the network thread that has just read them.

Handing a request to an I/O thread and back to sleep costs more than running it: on one connection with one request in
flight, eleven futex calls of a round trip's twenty system calls. So the network thread runs those requests itself
whose cost is
known to be small: produce requests that repeat their shape, little data, nobody else at work on the connection. It
must not
wait for a disk, though, or all its connections would: when a run takes long (the kernel throttles writers whose disk is
behind), requests go to the I/O threads for a while, longer each time.
"""

from time import monotonic_ns as now_ns
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kavka.broker.metrics import ThreadCells
    from kavka.broker.network.connection import Connection

MAX_FRAME_BYTES: Final = 16 * 1024
MAX_FRAMES: Final = 64
SLOW_NS: Final = 25_000_000
FIRST_REST_NS: Final = 250_000_000
LONGEST_REST_NS: Final = 4_000_000_000
PRODUCE_KEY: Final = 0


class InlineProduce:
    """What one network thread may run itself. Threads: that network thread alone."""

    __slots__ = ("_rest_ns", "_resting_until_ns")

    def __init__(self) -> None:
        self._rest_ns = FIRST_REST_NS
        self._resting_until_ns = 0

    def run(
        self, connection: "Connection", frames: "Sequence[memoryview]", received_ns: int, cells: "ThreadCells"
    ) -> int:
        """Run the leading frames that may be run here, and write their answers: how many.

        The caller holds the connection's `running`, and nothing of the connection waits to run or to be answered.
        """
        shapes = connection.shapes
        if shapes is None or received_ns < self._resting_until_ns or len(frames) > MAX_FRAMES:
            return 0
        produce = shapes.produce
        count = 0
        ready: list[bytes] = []
        times: list[int] = []
        for frame in frames:
            if len(frame) > MAX_FRAME_BYTES:
                break
            answer = produce(frame, cells)
            if answer is None:
                break
            count += 1
            if answer:
                ready.append(answer)
            times.append(now_ns())
        if not count:
            return 0
        started_ns = received_ns
        if ready:
            connection.write(ready)
        sent_ns = now_ns()
        for done_ns in times:
            cells.request(PRODUCE_KEY, (received_ns, started_ns, done_ns, done_ns, sent_ns, sent_ns))
            started_ns = done_ns
        self._watch_pace(sent_ns - received_ns, sent_ns, count)
        return count

    def _watch_pace(self, taken_ns: int, at_ns: int, count: int) -> None:
        if taken_ns > SLOW_NS + count * 20_000:
            self._resting_until_ns = at_ns + self._rest_ns
            self._rest_ns = min(2 * self._rest_ns, LONGEST_REST_NS)
        elif self._rest_ns > FIRST_REST_NS and at_ns - self._resting_until_ns > LONGEST_REST_NS:
            self._rest_ns = FIRST_REST_NS
