"""Consumers that an executor's process keeps between its tasks: connecting anew would cost each batch of a stream."""

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from kavka.client.consumer.consumer import Consumer
from kavka.pipeline.secret_references import resolved_settings

MOST_IDLE: Final = 2
"""A worker runs one task at a time; a query may read two clusters in turns."""


class _Idle(NamedTuple):
    settings: dict[str, Any]
    process_id: int
    consumer: Consumer


class ConsumerPool:
    """Up to `most_idle` consumers that nobody uses. An idle one is assigned nothing: it fetches nothing and holds none.

    Spark ends workers that were idle for a minute, and their consumers' connections with them. Threads: any.
    """

    def __init__(self, most_idle: int = MOST_IDLE) -> None:
        self._most_idle: Final = most_idle
        self._lock: Final = threading.Lock()
        self._idle: list[_Idle] = []

    @contextmanager
    def borrowed(self, settings: Mapping[str, Any]) -> Iterator[Consumer]:
        """A consumer with these settings, to be used by one thread until the block ends.

        One that the block leaves by an error, even by its task's end, is closed. References to secrets are resolved
        here, and the pool keeps the references. Raises ConfigError, SecretError, OSError.
        """
        consumer = self._taken(dict(settings)) or Consumer(resolved_settings(settings))
        try:
            yield consumer
            consumer.unsubscribe()
        except BaseException:
            consumer.close(0)
            raise
        self._give_back(_Idle(dict(settings), os.getpid(), consumer))

    def _taken(self, settings: dict[str, Any]) -> Consumer | None:
        with self._lock:
            for each in self._idle:
                # A consumer from before a fork is the parent's.
                if each.settings == settings and each.process_id == os.getpid():
                    self._idle.remove(each)
                    return each.consumer
        return None

    def _give_back(self, idle: _Idle) -> None:
        with self._lock:
            self._idle.append(idle)
            closed = self._idle[: -self._most_idle]
            self._idle = self._idle[-self._most_idle :]
        for each in closed:
            if each.process_id == os.getpid():
                each.consumer.close()

    def close(self) -> None:
        """Close the idle ones."""
        with self._lock:
            closed, self._idle = self._idle, []
        for each in closed:
            if each.process_id == os.getpid():
                each.consumer.close()
