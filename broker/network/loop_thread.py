"""A thread that runs an event loop, and what ends it."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any, Final

import uvloop

from kavka.config.thread_names import thread_name


class LoopThread:
    """A uvloop loop on a thread of its own.

    Threads: `call` and `start` may be called by any, `_begin` runs on it. `_waiting_lock` guards `_waiting` and
    `_has_ended`.
    """

    def __init__(self, name: str, on_death: Callable[[BaseException], None]) -> None:
        """`on_death` is told, on the thread, what ended it that should not have."""
        self._on_death: Final = on_death
        self._loop = uvloop.new_event_loop()
        self._fatal: BaseException | None = None
        self._waiting_lock: Final = threading.Lock()
        self._waiting: Final[set[threading.Event]] = set()
        """Who waits for what they called, or for the thread's end."""
        self._has_ended = False
        self._thread = threading.Thread(target=self._run, name=thread_name(name), daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def call(self, function: Callable[..., object], *arguments: Any) -> None:
        """Run `function(*arguments)` on the loop. Any thread; ignored once the loop is closed."""
        try:
            self._loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:
            if not self._loop.is_closed():
                raise

    def call_later(self, delay_s: float, function: Callable[..., object], *arguments: Any) -> asyncio.TimerHandle:
        """Run `function(*arguments)` on the loop after that time. The loop's thread alone."""
        return self._loop.call_later(delay_s, function, *arguments)

    def call_and_wait(self, function: Callable[[], object]) -> None:
        """As `call`, and wait until it has run, and with it all that the loop was at; or until the thread has ended.

        Any thread but this one.
        """
        done = threading.Event()

        def run() -> None:
            try:
                function()
            finally:
                done.set()

        with self._waiting_lock:
            if self._has_ended or not self._thread.is_alive():
                return
            self._waiting.add(done)
        self.call(run)
        done.wait()
        with self._waiting_lock:
            self._waiting.discard(done)

    def _begin(self) -> None:
        """What the thread does before its loop runs."""

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.set_exception_handler(self._callback_failed)
            self._begin()
            self._loop.run_forever()
            if self._fatal is not None:
                raise self._fatal
        except BaseException as failure:
            self._on_death(failure)
            raise
        finally:
            with self._waiting_lock:
                self._has_ended = True
                for done in self._waiting:
                    done.set()

    def _callback_failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """The loop hands on what a callback raised and would go on: not with what is meant to end a thread."""
        failure = context.get("exception")
        if failure is None or isinstance(failure, Exception):
            loop.default_exception_handler(context)
        else:
            self._fatal = failure
            loop.stop()
