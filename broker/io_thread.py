"""An I/O thread: takes connections from the queue and runs their requests, in order, a few at a time."""

import threading
from collections.abc import Callable
from time import monotonic_ns as now_ns
from typing import TYPE_CHECKING, Final

from kavka.broker.handling import Context
from kavka.broker.network.connection import LARGE_ANSWER_BYTES, MAX_UNANSWERED, MAX_UNSENT_BYTES
from kavka.broker.produce_shapes import ACKS_0_FAILED, CLOSES
from kavka.broker.request_log import SLOW_NS, log_slow

if TYPE_CHECKING:
    from kavka.broker.dispatcher import Dispatcher
    from kavka.broker.metrics import Metrics, ThreadCells
    from kavka.broker.network.connection import Connection
    from kavka.broker.request_queue import RequestQueue

TURN_REQUESTS: Final = 16
TURN_BYTES: Final = 1024 * 1024
PRODUCE_KEY: Final = 0

Run = tuple[memoryview, int, int, int]
"""A request of a known shape that was run: its frame, when it was received, started and done (ns)."""


class IoThread:
    """Runs handlers. Started by `start`, joined by `stop`.

    Threads: `finished_count` is written by this thread only.
    """

    def __init__(
        self,
        index: int,
        queue: "RequestQueue",
        dispatcher: "Dispatcher",
        metrics: "Metrics",
        on_death: Callable[[BaseException], None],
    ) -> None:
        self._queue = queue
        self._dispatcher = dispatcher
        self._metrics = metrics
        self._on_death = on_death
        self._thread = threading.Thread(target=self._run, name=f"io-{index}", daemon=True)
        self.finished_count = 0

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def join(self) -> None:
        """Wait for the thread to end: it takes one None from the queue and goes."""
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        get = self._queue.get
        cells = self._metrics.enlist("io")
        try:
            while (connection := get()) is not None:
                started_ns = now_ns()
                self.run_turn(connection, cells, started_ns)
                cells.busy_ns += now_ns() - started_ns
        except BaseException as failure:
            self._on_death(failure)
            raise

    def run_turn(self, connection: "Connection", cells: "ThreadCells", started_ns: int) -> None:
        """Run requests of a connection, whose `running` this thread holds, until there are none or its turn is over."""
        if connection.deferred is not None:
            _do_deferred(connection)
            return
        pending = connection.pending
        answers = connection.answers
        slots = answers.slots
        count = size = 0
        ready: list[bytes] = []
        runs: list[Run] = []
        while pending:
            unsent_size_bytes = answers.backlog_size_bytes + answers.held_up_size_bytes
            if len(slots) >= MAX_UNANSWERED or unsent_size_bytes >= MAX_UNSENT_BYTES:
                break
            try:
                frame, received_ns, charged_size_bytes = pending.popleft()
            except IndexError:
                # The connection was closed meanwhile.
                break
            count += 1
            frame_size_bytes = frame.nbytes
            size += frame_size_bytes
            connection.taken_bytes += frame_size_bytes
            self.finished_count += 1
            shapes = connection.shapes
            answer = shapes.produce(frame, cells) if shapes is not None and not slots else None
            if answer is not None:
                done_ns = now_ns()
                if charged_size_bytes:
                    self._queue.release(charged_size_bytes)
                runs.append((frame, received_ns, started_ns, done_ns))
                started_ns = done_ns
                if answer is CLOSES:
                    self._hold(connection, ready, runs, cells)
                    connection.close_answered(ACKS_0_FAILED)
                    return
                if answer:
                    ready.append(answer)
            else:
                if runs:
                    _write(connection, ready, runs, cells)
                    ready, runs = [], []
                context = Context(connection, frame, received_ns, charged_size_bytes)
                context.started_ns = started_ns
                if not self._dispatcher.execute(context):
                    # Whoever answers the request goes on with the connection, and holds `running` until then.
                    self._hold(connection, ready, runs, cells)
                    return
                started_ns = context.local_done_ns
                answer = context.answer
                if answer is not None and (answer.__class__ is list or len(answer) >= LARGE_ANSWER_BYTES):
                    _write_large(connection, context)
            if count >= TURN_REQUESTS or size >= TURN_BYTES:
                break
        if runs:
            _write(connection, ready, runs, cells)
        if slots:
            connection.flush()
        self._end_turn(connection)

    def _hold(self, connection: "Connection", ready: list[bytes], runs: list[Run], cells: "ThreadCells") -> None:
        """End the turn without letting go of the connection."""
        if runs:
            _write(connection, ready, runs, cells)
        connection.flush()
        if connection.ended:
            # The last answer may have come, and been written here, after who brought it had asked for the close.
            connection.thread.call(connection.thread.resume, connection)

    def _end_turn(self, connection: "Connection") -> None:
        pending = connection.pending
        queue = self._queue
        answers = connection.answers
        unsent_size_bytes = answers.backlog_size_bytes + answers.held_up_size_bytes
        is_congested = len(answers.slots) >= MAX_UNANSWERED or unsent_size_bytes >= MAX_UNSENT_BYTES
        if pending and not is_congested:
            queue.put(connection)
        else:
            connection.running.release()
            # A request, or room for its answer, may have come after the last look.
            if pending:
                queue.wake(connection)
        if not connection.reading and connection.may_read_on and queue.has_room_for(connection):
            connection.thread.call(connection.thread.resume, connection)


def _write_large(connection: "Connection", context: Context) -> None:
    """Let a large answer be counted as unsent before more requests like it run."""
    connection.flush()
    if connection.answers.slots:
        connection.hold_up_large(context)


def _do_deferred(connection: "Connection") -> None:
    """Complete what holds the connection; who watches for that goes on with it, or lets go."""
    work, connection.deferred = connection.deferred, None
    if work is not None and not connection.closed:
        work()


def _write(connection: "Connection", ready: list[bytes], runs: list[Run], cells: "ThreadCells") -> None:
    """Write answers that were made at once, and count their requests."""
    if ready:
        connection.write(ready)
    sent_ns = now_ns()
    for frame, received_ns, started_ns, done_ns in runs:
        times = (received_ns, started_ns, done_ns, done_ns, sent_ns, sent_ns)
        cells.request(PRODUCE_KEY, times)
        if sent_ns - received_ns > SLOW_NS:
            log_slow(connection, frame, times)
