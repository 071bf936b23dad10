"""When a member tries again what has failed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kavka.client.backoff import ExponentialBackoff
from kavka.client.consumer.group.group_settings import GroupSettings


class Retrying:
    """Failures in a row, and how long to wait after them. Threads: the client's."""

    __slots__ = ("_backoff", "_failures", "_now_ms", "not_before_ms")

    def __init__(self, settings: GroupSettings, now_ms: Callable[[], float]) -> None:
        self._backoff: Final = ExponentialBackoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms)
        self._now_ms: Final = now_ms
        self._failures = 0
        self.not_before_ms = 0.0
        """When it may be tried again, on the client's clock."""

    def failed(self) -> None:
        """Again after the back-off."""
        self._failures += 1
        self.not_before_ms = self._now_ms() + self._backoff.delay_ms(self._failures)

    def stumbled(self) -> None:
        """Again at once, as this comes by itself now and then; a broker that goes on so is waited for all the same."""
        self._failures += 1
        if self._failures > 1:
            self.not_before_ms = self._now_ms() + self._backoff.delay_ms(self._failures - 1)

    def noted(self, *, is_success: bool) -> None:
        """Success, or else one more that was stumbled over."""
        if is_success:
            self.succeeded()
        else:
            self.stumbled()

    def succeeded(self) -> None:
        """Whatever fails next is the first."""
        self._failures = 0
        self.not_before_ms = 0.0
