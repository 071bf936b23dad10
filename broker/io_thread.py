"""An I/O thread: takes connections from the queue and runs their requests, in order, a few at a time."""

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kavka.broker.dispatcher import Dispatcher
    from kavka.broker.network.connection import Connection
    from kavka.broker.request_queue import RequestQueue

TURN_REQUESTS: Final = 16
TURN_BYTES: Final = 1024 * 1024
READ_ON_BELOW: Final = 128

log = logging.getLogger(__name__)


class IoThread:
    """Runs handlers. Started by `start`, joined by `stop`.

    Threads: `finished_count` is written by this thread only.
    """

    def __init__(
        self,
        index: int,
        queue: "RequestQueue",
        dispatcher: "Dispatcher",
        on_death: Callable[[BaseException], None],
    ) -> None:
        self._queue = queue
        self._dispatcher = dispatcher
        self._on_death = on_death
        self._thread = threading.Thread(target=self._run, name=f"io-{index}", daemon=True)
        self.finished_count = 0
        self.stopping = False

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def join(self) -> None:
        """Wait for the thread to end: it takes one None from the queue and goes."""
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        get = self._queue.get
        try:
            while (connection := get()) is not None:
                self.run_turn(connection)
        except BaseException as failure:
            self._on_death(failure)
            raise

    def run_turn(self, connection: "Connection") -> None:
        """Run requests of a connection, whose `running` this thread holds, until there are none or its turn is over."""
        pending = connection.pending
        execute = self._dispatcher.execute
        count = size = 0
        while pending:
            if connection.congested:
                break
            try:
                context = pending.popleft()
            except IndexError:
                # The connection was closed meanwhile.
                break
            frame = context.frame
            size += len(frame) if frame is not None else 0
            count += 1
            released = execute(context)
            self.finished_count += 1
            if not released:
                # Whoever answers the request goes on with the connection, and holds `running` until then.
                connection.flush()
                return
            if count >= TURN_REQUESTS or size >= TURN_BYTES:
                connection.flush()
                if pending:
                    self._queue.put(connection)
                    self._after_turn(connection)
                    return
                break
        connection.flush()
        connection.running.release()
        # A request, or room for its answer, may have come after the last look.
        self._queue.wake(connection)
        self._after_turn(connection)

    def _after_turn(self, connection: "Connection") -> None:
        self._queue.relieved()
        if not connection.reading and len(connection.pending) + len(connection.answers.slots) < READ_ON_BELOW:
            connection.thread.call(connection.thread.resume_if_light, connection)
