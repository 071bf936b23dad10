"""An I/O thread: takes connections from the queue and runs their requests."""

import threading
from collections.abc import Callable
from time import monotonic_ns as now_ns
from typing import TYPE_CHECKING

from kavka.broker.requests.request_runner import RequestRunner
from kavka.config.thread_names import thread_name

if TYPE_CHECKING:
    from kavka.broker.metrics.registry import Metrics
    from kavka.broker.network.request_queue import RequestQueue
    from kavka.broker.requests.dispatcher import Dispatcher


class IoThread(RequestRunner):
    """Runs handlers. Started by `start`, joined by `join`."""

    def __init__(
        self,
        index: int,
        queue: "RequestQueue",
        dispatcher: "Dispatcher",
        metrics: "Metrics",
        on_death: Callable[[BaseException], None],
        plane: str = "",
    ) -> None:
        super().__init__(queue, dispatcher)
        self._metrics = metrics
        self._on_death = on_death
        self._thread = threading.Thread(target=self._run, name=thread_name(f"{plane}io-{index}"), daemon=True)

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
