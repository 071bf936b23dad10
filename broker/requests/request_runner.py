"""Running a connection's requests, in order, a few at a time: on I/O threads, and the small ones on network threads.

Handing a request to an I/O thread and back to sleep costs more than running it: with one produce in flight, eleven of
a round trip's twenty system calls were futex calls. So the network thread that has just read requests runs those itself
whose cost is known to be small, while nobody else is at work on their connection. Where that is decided:

    NetworkThread.submit        nothing of its connection runs, waits or is unsent
    InlineRequests.run          this thread does not rest; a long one's connection sends such alone
    RequestRunner.run_turn      it is prepared, or small by its kind (`@handles(is_small=True)`, `prepared.py`)

Of a producer that sends in bulk, requests up to a megabyte run there, too, as long as no other connection does so: what
was received just now is in this processor's cache, and handing it over cost a fifth of the broker's time. Those of
several are worth two threads.

It must not wait for a disk, though, or all its connections would: when a run takes long (the kernel throttles writers
whose disk is behind), requests go to the I/O threads for a while, longer each time.
"""

import logging
from time import monotonic_ns as now_ns
from typing import TYPE_CHECKING, Final

from kavka.broker.network.connection import LARGE_ANSWER_BYTES
from kavka.broker.requests.handling import Context
from kavka.broker.requests.prepared import CLOSES, HEAD_SIZE_BYTES, Later, Prepared
from kavka.broker.requests.request_log import SLOW_NS, log_slow

# Where it is needed there may be no descriptor to import it with, and what fails there ends the thread.
from kavka.broker.waiting.awaited_answer import MadeAnswer

if TYPE_CHECKING:
    from kavka.broker.metrics.registry import ThreadCells
    from kavka.broker.network.connection import Connection, Received
    from kavka.broker.network.request_queue import RequestQueue
    from kavka.broker.requests.dispatcher import Dispatcher

TURN_REQUESTS: Final = 16
TURN_BYTES: Final = 1024 * 1024
MAX_INLINE_REQUESTS: Final = 64
MAX_INLINE_BYTES: Final = 16 * 1024
"""A network thread runs no longer request the ordinary way, nor a longer prepared one of a connection among others."""
MAX_ALONE_BYTES: Final = TURN_BYTES
"""But where one connection alone sends such, prepared ones up to this."""
ANY_SIZE: Final = 1 << 62
ANY_TIME_NS: Final = 1 << 62
HELD: Final = -1
SLOW_TURN_NS: Final = 25_000_000
"""For a network thread, which is to rest from running requests then."""
USUAL_NS: Final = 20_000
"""What one request may take beside that: many quick ones are no slow turn."""
FIRST_REST_NS: Final = 250_000_000
LONGEST_REST_NS: Final = 4_000_000_000
BULK_NS: Final = 100_000_000
"""For how long a connection counts as one that sends in bulk."""

INCOMPLETE: Final = "a request could not be completed"

log = logging.getLogger(__name__)

Run = tuple[memoryview, int, int, int]
"""A prepared request that was run: its frame, when it was received, started and done (ns)."""


class RequestRunner:
    """Runs requests; one a thread, which alone calls `run_turn`."""

    def __init__(self, queue: "RequestQueue", dispatcher: "Dispatcher", longest_turn_ns: int = ANY_TIME_NS) -> None:
        """A turn ends behind the prepared request with which it has taken longer than `longest_turn_ns`.

        Beside that, each request may take `USUAL_NS`.
        """
        self._queue = queue
        self._dispatcher = dispatcher
        self._longest_turn_ns = longest_turn_ns
        self._turn = dispatcher.turns.new()

    def run_turn(self, connection: "Connection", cells: "ThreadCells", started_ns: int, inline_bytes: int = 0) -> int:
        """Run requests of a connection until there are none or its turn is over, and hand on what is left: how many.

        The thread holds the connection's `running`, and gives it away. `inline_bytes`: unless 0, it is the network
        thread, which runs the leading requests only that are known to cost little, and none that is longer.
        """
        if connection.deferred is not None:
            return _do_deferred(connection)
        self._turn.goes_on = True
        pending, answers, session = connection.pending, connection.answers, connection.session
        slots = answers.slots
        is_inline, most_bytes = inline_bytes > 0, inline_bytes or ANY_SIZE
        most_requests = MAX_INLINE_REQUESTS if is_inline else TURN_REQUESTS
        count, size, turn_ends_ns = 0, 0, started_ns + self._longest_turn_ns
        ready: list[bytes] = []
        runs: list[Run] = []
        while pending and count < most_requests and size < TURN_BYTES and started_ns <= turn_ends_ns:
            if (slots or answers.backlog) and connection.congested:
                break
            try:
                frame, received_ns, charged_size_bytes = received = pending.popleft()
            except IndexError:
                # The connection was closed meanwhile.
                break
            answer, prepared, known = None, None, session.prepared  # read once: it may be shut meanwhile
            size_bytes = frame.nbytes
            if HEAD_SIZE_BYTES <= size_bytes <= most_bytes and frame[1] in known:
                prepared = known[frame[1]]
                answer = prepared.run(frame, cells, not is_inline)
            if is_inline and answer is None and not _is_small(prepared, frame):
                pending.appendleft(received)
                break
            count, size = count + 1, size + size_bytes
            turn_ends_ns += USUAL_NS
            connection.taken_bytes += size_bytes
            if answer is not None:
                run = (frame, received_ns, started_ns, now_ns())
                started_ns = run[-1]
                if charged_size_bytes:
                    self._queue.release(charged_size_bytes)
                if answer.__class__ is bytes and not slots:
                    runs.append(run)
                    if answer is not CLOSES:
                        ready += [answer] if answer else []
                        continue
            if runs:
                _write(connection, ready, runs, cells)
                ready, runs = [], []
            if prepared is not None and answer is not None:
                if answer is not CLOSES and _put_in_turn(connection, answer, run, is_inline):
                    continue
                return self._hold(connection, count, prepared.closing_reason if answer is CLOSES else "")
            started_ns = self._run_ordinary(connection, received, started_ns, is_inline)
            if started_ns == HELD:
                return self._hold(connection, count)
            if is_inline:
                break
        if runs:
            _write(connection, ready, runs, cells)
        return self._let_go(connection, count)

    def _run_ordinary(self, connection: "Connection", received: "Received", started_ns: int, is_inline: bool) -> int:
        """Have the dispatcher run a request: when it was done (ns), or HELD if that ends the turn.

        Then whoever answers it goes on with the connection, and holds `running` until then.
        """
        context = Context(connection, *received)
        context.started_ns = started_ns
        context.is_inline = is_inline
        if not self._dispatcher.execute(context):
            return HELD
        answer = context.answer
        if answer is not None and (answer.__class__ is list or len(answer) >= LARGE_ANSWER_BYTES):
            # Counted as unsent before more requests like it run.
            connection.flush()
            if connection.answers.slots:
                connection.hold_up_large(context)
        return context.local_done_ns

    def _hold(self, connection: "Connection", count: int, closing_reason: str = "") -> int:
        """End the turn without letting go of the connection."""
        turn = self._turn
        turn.goes_on = False
        if turn.at_end:
            turn.tell()
        connection.flush()
        if connection.ended:
            # The last answer may have come, and been written here, after who brought it had asked for the close.
            connection.thread.call(connection.thread.resume, connection)
        if closing_reason:
            connection.close_answered(closing_reason)
        return count

    def _let_go(self, connection: "Connection", count: int) -> int:
        turn = self._turn
        turn.goes_on = False
        if turn.at_end:
            turn.tell()
        pending = connection.pending
        queue = self._queue
        if connection.answers.slots:
            connection.flush()
        if pending and not connection.congested:
            queue.put(connection)
        else:
            connection.running.release()
            # A request, or room for its answer, may have come after the last look.
            if pending:
                queue.wake(connection)
        if not connection.reading and connection.may_read_on and queue.has_room_for(connection):
            connection.thread.call(connection.thread.resume, connection)
        return count


class InlineRequests(RequestRunner):
    """What one network thread runs itself. Threads: that network thread alone."""

    def __init__(self, queue: "RequestQueue", dispatcher: "Dispatcher", slow_ns: int = SLOW_TURN_NS) -> None:
        """A turn that takes longer than `slow_ns` ends, and sends requests to the I/O threads for a while."""
        super().__init__(queue, dispatcher, longest_turn_ns=slow_ns)
        self._slow_ns = slow_ns
        self._rest_ns = FIRST_REST_NS
        self._resting_until_ns = 0
        self._bulk_id = -1
        self._bulk_until_ns = 0
        self._crowded_until_ns = 0

    def run(self, connection: "Connection", received_ns: int, cells: "ThreadCells") -> None:
        """Run the leading requests that may be run here, and hand on the others.

        The caller holds the connection's `running`, which it gives away; nothing of it waits to be answered.
        """
        is_large = connection.pending[0][0].nbytes > MAX_INLINE_BYTES
        if received_ns < self._resting_until_ns or (is_large and not self._sends_alone(connection.id, received_ns)):
            self._queue.put(connection)
            return
        try:
            count = self.run_turn(connection, cells, received_ns, MAX_ALONE_BYTES if is_large else MAX_INLINE_BYTES)
        except BaseException:
            # That costs the connection. The thread goes on, and may have nothing to run for long.
            self._turn.goes_on = False
            self._turn.tell()
            raise
        if count:
            ended_ns = now_ns()
            if ended_ns - received_ns > self._slow_ns or self._rest_ns > FIRST_REST_NS:
                self._watch_pace(ended_ns, ended_ns - received_ns, count)

    def _sends_alone(self, connection_id: int, now_ns: int) -> bool:
        """Whether no other connection has sent large requests of late."""
        if connection_id != self._bulk_id:
            if now_ns < self._bulk_until_ns:
                self._crowded_until_ns = now_ns + BULK_NS
            self._bulk_id = connection_id
        self._bulk_until_ns = now_ns + BULK_NS
        return now_ns >= self._crowded_until_ns

    def _watch_pace(self, ended_ns: int, taken_ns: int, count: int) -> None:
        if taken_ns > self._slow_ns + count * USUAL_NS:
            self._resting_until_ns = ended_ns + self._rest_ns
            self._rest_ns = min(2 * self._rest_ns, LONGEST_REST_NS)
        elif self._rest_ns > FIRST_REST_NS and ended_ns - self._resting_until_ns > LONGEST_REST_NS:
            self._rest_ns = FIRST_REST_NS


def _is_small(prepared: Prepared | None, frame: memoryview) -> bool:
    return prepared is not None and frame.nbytes <= MAX_INLINE_BYTES and prepared.is_small(frame)


def _do_deferred(connection: "Connection") -> int:
    """Complete what holds the connection; who watches for that goes on with it, or lets go."""
    work, connection.deferred = connection.deferred, None
    if work is not None and not connection.closed:
        try:
            work()
        except Exception:
            # One request's failure costs its connection, never the thread. So below.
            log.exception("a request could not be completed")
            connection.close(INCOMPLETE)
    return 0


def _put_in_turn(connection: "Connection", answer: bytes | Later, run: Run, is_inline: bool) -> bool:
    """Give an answer its place behind those that others wait for. False: the connection waits for it."""
    if not isinstance(answer, bytes):
        try:
            goes_on = answer.park(connection, *run[1:], is_inline)
        except Exception:
            log.exception("a request could not be completed")
            connection.close(INCOMPLETE)
            return False
    else:
        # Also an empty one: it is counted in its turn.
        connection.answers.slots.append(MadeAnswer(answer, connection, *run))
        goes_on = True
    connection.flush()
    return goes_on


def _write(connection: "Connection", ready: list[bytes], runs: list[Run], cells: "ThreadCells") -> None:
    """Write answers that were made at once, and count their requests."""
    if ready:
        connection.write(ready)
    sent_ns = now_ns()
    cells.ran(runs, sent_ns)
    # The first was received before the others.
    if sent_ns - runs[0][1] > SLOW_NS:
        for frame, received_ns, started_ns, done_ns in runs:
            if sent_ns - received_ns > SLOW_NS:
                log_slow(connection, frame, (received_ns, started_ns, done_ns, done_ns, sent_ns, sent_ns))
