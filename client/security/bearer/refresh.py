"""When a token is replaced: Kafka's rule (KIP-255)."""

from collections.abc import Callable
from typing import Final, NamedTuple

from kavka.client.dice import DICE
from kavka.client.security.bearer.token import BearerToken

AFTER_FAILURE_MS: Final = 10_000
"""A token could not be replaced: it is tried again."""


class RefreshSchedule(NamedTuple):
    """Named after the settings sasl.login.refresh.*; their defaults. Immutable."""

    window_factor: float = 0.8
    window_jitter: float = 0.05
    min_period_ms: float = 60_000
    buffer_ms: float = 300_000
    chance: Callable[[], float] = DICE.random

    def next_ms(self, token: BearerToken, now_ms: float) -> float:
        """When to replace the token; times are since 1970."""
        ends_ms = token.ends_ms
        if now_ms > ends_ms:
            return now_ms + AFTER_FAILURE_MS
        share = self.window_factor + self.window_jitter * self.chance()
        if now_ms + self.min_period_ms + self.buffer_ms > ends_ms:
            # There is no room for both.
            return now_ms + (ends_ms - now_ms) * share
        begins_ms = now_ms if token.begins_ms is None else token.begins_ms
        proposed_ms = min(begins_ms + (ends_ms - begins_ms) * share, ends_ms - self.buffer_ms)
        return max(proposed_ms, now_ms + self.min_period_ms)
