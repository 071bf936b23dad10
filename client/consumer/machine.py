"""What the consumer's thread does, in turns: its group, positions, fetches, and questions of its user."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kavka.client.api_errors import ClientClosedError
from kavka.client.consumer.fetcher import Fetcher
from kavka.client.consumer.group.port import GroupPort
from kavka.client.consumer.offset_lookup import OffsetLookups
from kavka.client.consumer.position_finding import PositionFinder
from kavka.client.consumer.questions import Questions


class ConsumerMachine:
    """A `Machine` of the client's thread. Each part finds by itself what it can do."""

    def __init__(
        self,
        fetcher: Fetcher,
        finder: PositionFinder,
        lookups: OffsetLookups,
        questions: Questions,
        group: GroupPort | None,
        on_end: Callable[[], None],
    ) -> None:
        """`on_end` is called when the thread ends, whatever ended it."""
        self._fetcher: Final = fetcher
        self._finder: Final = finder
        self._lookups: Final = lookups
        self._questions: Final = questions
        self._group: Final = group
        self._on_end: Final = on_end

    def work(self, now_ms: float) -> float:
        wait_ms = self._group.work(now_ms) if self._group is not None else float("inf")
        # What lookups have come to first, then what is to be looked up, and then what can be fetched with it.
        self._lookups.work(now_ms)
        return min(
            wait_ms,
            self._finder.work(now_ms),
            self._lookups.work(now_ms),
            self._fetcher.work(now_ms),
            self._questions.work(now_ms),
        )

    def closing(self, now_ms: float) -> None:
        """The polling thread has left the group already: only the fetch sessions are left."""
        self._fetcher.closing()

    def is_idle(self) -> bool:
        return True

    def closed(self) -> None:
        error = ClientClosedError("the consumer was closed")
        self._lookups.closed(error)
        self._questions.closed(error)
        if self._group is not None:
            self._group.closed()
        self._on_end()
