"""How long a consumer has not polled: `max.poll.interval.ms`."""

from __future__ import annotations

from typing import Final


class PollClock:
    """Tells the client's thread whether the consumer is alive, and not its heartbeats only (KIP-62).

    The interval begins anew whenever a poll looks what there is to do, and when it returns; while a poll just waits for
    news it does not run. So who is stuck in a listener or a deserializer is as late as who never polls again.

    Threads: `began`, `waits` and `ended` by the one that polls, the rest by any: each attribute is a value read whole.
    """

    __slots__ = ("_interval_ms", "_since_ms", "is_waiting")

    def __init__(self, interval_ms: float) -> None:
        self._interval_ms: Final = interval_ms
        self._since_ms = 0.0
        self.is_waiting = False

    def began(self, now_ms: float) -> None:
        """A poll begins, or goes on after it has waited."""
        self._since_ms = now_ms
        self.is_waiting = False

    def waits(self) -> None:
        """The poll has nothing to do, however long, until there is news."""
        self.is_waiting = True

    def ended(self, now_ms: float) -> None:
        """The poll returns."""
        self._since_ms = now_ms
        self.is_waiting = False

    def left_ms(self, now_ms: float) -> float:
        """How long until the next poll is too late: 0 or less when it is."""
        return self._interval_ms if self.is_waiting else self._since_ms + self._interval_ms - now_ms
