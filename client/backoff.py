"""How long to wait before trying again."""

from collections.abc import Callable
from typing import Final

from kavka.client.dice import DICE

MULTIPLIER: Final = 2
JITTER: Final = 0.2


class ExponentialBackoff:
    """Twice as long after each failure, up to a limit, a fifth more or less by chance (KIP-580).

    The chance keeps many clients that lost the same broker from coming back at one moment. Immutable.
    """

    __slots__ = ("_dice", "_initial_ms", "_max_ms")

    def __init__(self, initial_ms: float, max_ms: float, dice: Callable[[], float] = DICE.random) -> None:
        """A `max_ms` below `initial_ms` is the delay each time. `dice()` gives numbers in [0, 1)."""
        self._initial_ms = min(initial_ms, max_ms)
        self._max_ms = max_ms
        self._dice = dice

    def delay_ms(self, failures: int) -> float:
        """How long to wait after so many failures in a row, one or more. Never above the limit."""
        doubled = min(failures - 1, 62)
        delay_ms = min(self._initial_ms * float(MULTIPLIER**doubled), self._max_ms)
        return min(delay_ms * (1 - JITTER + 2 * JITTER * self._dice()), self._max_ms)
