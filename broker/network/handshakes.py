"""TLS handshakes, on threads of their own: a step costs up to a millisecond of a processor, and no client waits for it.

Each connection has at most one step that waits, so the connections' limits bound them. Listeners take turns: whoever
floods one of them with connections does not keep others waiting, that between brokers least of all.
"""

import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Final

from kavka.config.thread_names import thread_name

Step = Callable[[], object]
"""One step of a handshake. Raises nothing that is not meant to end the thread."""


class Handshakes:
    """The threads. Started by `start`; `stop` lets what runs end, forgets the rest and joins.

    Threads: `take` by any; `_lock` guards `_waiting`.
    """

    def __init__(self, threads: int, on_death: Callable[[BaseException], None], plane: str = "") -> None:
        """`on_death` is told, on the thread, what ended it that should not have."""
        self._calls: Final[SimpleQueue[bool]] = SimpleQueue()
        """True for each step that waits; False ends a thread."""
        self._lock: Final = threading.Lock()
        self._waiting: Final[dict[str, deque[Step]]] = {}
        """The steps of each listener that has any, in the order of their turns."""
        self._on_death: Final = on_death
        self._threads: Final = [
            threading.Thread(target=self._run, name=thread_name(f"{plane}handshake-{index}"), daemon=True)
            for index in range(threads)
        ]
        self._is_stopping = False

    def start(self) -> None:
        """Start the threads that do not run yet. Raises RuntimeError if there cannot be so many; then try it again."""
        for thread in self._threads:
            if thread.ident is None:
                thread.start()

    def take(self, listener_name: str, step: Step) -> None:
        """Have a step taken of a connection to that listener."""
        with self._lock:
            self._waiting.setdefault(listener_name, deque()).append(step)
        self._calls.put(True)

    def stop(self) -> None:
        """End the threads."""
        self._is_stopping = True
        for _ in self._threads:
            self._calls.put(False)
        for thread in self._threads:
            if thread.is_alive():
                thread.join()

    def _run(self) -> None:
        try:
            while self._calls.get() and not self._is_stopping:
                self._next()()
        except BaseException as failure:
            self._on_death(failure)
            raise

    def _next(self) -> Step:
        with self._lock:
            name = next(iter(self._waiting))
            steps = self._waiting.pop(name)
            step = steps.popleft()
            if steps:
                # Behind all others.
                self._waiting[name] = steps
        return step
