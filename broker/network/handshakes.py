"""TLS handshakes, on threads of their own: a step costs up to a millisecond of a processor, and no client waits for it.

Each connection is in the queue at most once, so the connections' limits bound it.
"""

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Final

from kavka.config.thread_names import thread_name

Step = Callable[[], object]
"""One step of a handshake. Raises nothing that is not meant to end the thread."""


class Handshakes:
    """The threads. Started by `start`; `stop` lets what runs end, forgets the rest and joins. `take` by any thread."""

    def __init__(self, threads: int, on_death: Callable[[BaseException], None], plane: str = "") -> None:
        """`on_death` is told, on the thread, what ended it that should not have."""
        self._queue: SimpleQueue[Step | None] = SimpleQueue()
        self.take: Final = self._queue.put
        self._on_death: Final = on_death
        self._threads: Final = [
            threading.Thread(target=self._run, name=thread_name(f"{plane}handshake-{index}"), daemon=True)
            for index in range(threads)
        ]
        self._is_stopping = False

    def start(self) -> None:
        """Start the threads. Raises RuntimeError if there cannot be so many."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End the threads."""
        self._is_stopping = True
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            if thread.is_alive():
                thread.join()

    def _run(self) -> None:
        try:
            while (step := self._queue.get()) is not None and not self._is_stopping:
                step()
        except BaseException as failure:
            self._on_death(failure)
            raise
