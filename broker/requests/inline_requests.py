"""Small requests of a known kind, run by the network thread that has just read them.

Handing a request to an I/O thread and back to sleep costs more than running it: with one produce in flight, eleven of
a round trip's twenty system calls were futex calls. So the network thread itself runs requests whose cost is known to
be small, while nobody else is at work on their connection.

Where it is decided whether a request runs here:

    NetworkThread._submit       nothing of its connection runs, waits or is unsent
    InlineRequests.run, below   this thread does not rest; a long one's connection sends such alone
    RequestRunner.run_turn      it is prepared, or small by its kind (`@handles(is_small=True)`, `prepared.py`)

Of a producer that sends in bulk, requests up to a megabyte run here, too, as long as no other connection does so: what
was received just now is in this processor's cache, and handing it over cost a fifth of the broker's time. Those of
several are worth two threads.

It must not wait for a disk, though, or all its connections would: when a run takes long (the kernel throttles writers
whose disk is behind), requests go to the I/O threads for a while, longer each time.
"""

from time import monotonic_ns as now_ns
from typing import TYPE_CHECKING, Final

from kavka.broker.requests.request_runner import MAX_ALONE_BYTES, MAX_INLINE_BYTES, RequestRunner

if TYPE_CHECKING:
    from kavka.broker.metrics.registry import ThreadCells
    from kavka.broker.network.connection import Connection
    from kavka.broker.network.request_queue import RequestQueue
    from kavka.broker.requests.dispatcher import Dispatcher

SLOW_NS: Final = 25_000_000
FIRST_REST_NS: Final = 250_000_000
LONGEST_REST_NS: Final = 4_000_000_000
BULK_NS: Final = 100_000_000
"""For how long a connection counts as one that sends in bulk."""


class InlineRequests(RequestRunner):
    """What one network thread runs itself. Threads: that network thread alone."""

    def __init__(self, queue: "RequestQueue", dispatcher: "Dispatcher", slow_ns: int = SLOW_NS) -> None:
        """A run that takes longer than `slow_ns` sends requests to the I/O threads for a while."""
        super().__init__(queue, dispatcher)
        self._slow_ns = slow_ns
        self._rest_ns = FIRST_REST_NS
        self._resting_until_ns = 0
        self._bulk_id = -1
        self._bulk_until_ns = 0
        self._crowded_until_ns = 0

    def run(self, connection: "Connection", received_ns: int, cells: "ThreadCells") -> int:
        """Run the leading requests that may be run here, and hand on the others: how many were run.

        The caller holds the connection's `running`, which it gives away; nothing of it waits to be answered.
        """
        is_large = connection.pending[0][0].nbytes > MAX_INLINE_BYTES
        if received_ns < self._resting_until_ns or (is_large and not self._sends_alone(connection.id, received_ns)):
            self._queue.put(connection)
            return 0
        count = self.run_turn(connection, cells, received_ns, MAX_ALONE_BYTES if is_large else MAX_INLINE_BYTES)
        if count:
            ended_ns = now_ns()
            if ended_ns - received_ns > self._slow_ns or self._rest_ns > FIRST_REST_NS:
                self._watch_pace(ended_ns, ended_ns - received_ns, count)
        return count

    def _sends_alone(self, connection_id: int, now_ns: int) -> bool:
        """Whether no other connection has sent large requests of late."""
        if connection_id != self._bulk_id:
            if now_ns < self._bulk_until_ns:
                self._crowded_until_ns = now_ns + BULK_NS
            self._bulk_id = connection_id
        self._bulk_until_ns = now_ns + BULK_NS
        return now_ns >= self._crowded_until_ns

    def _watch_pace(self, ended_ns: int, taken_ns: int, count: int) -> None:
        if taken_ns > self._slow_ns + count * 20_000:
            self._resting_until_ns = ended_ns + self._rest_ns
            self._rest_ns = min(2 * self._rest_ns, LONGEST_REST_NS)
        elif self._rest_ns > FIRST_REST_NS and ended_ns - self._resting_until_ns > LONGEST_REST_NS:
            self._rest_ns = FIRST_REST_NS
