"""Averages, maxima and rates over the last while, for the price of a few additions.

A measure keeps a window of `window_ms` that is being filled, and those before it, `samples` in all, as Kafka's do
(metrics.num.samples, metrics.sample.window.ms). What is counted is rather the batch or the request than the record.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

NAN: Final = float("nan")
_LOWEST: Final = float("-inf")


Tags: TypeAlias = tuple[tuple[str, str], ...]
"""Of a metric, in the order of their names."""


class Metric(NamedTuple):
    """One number: where it stands among Kafka's, and how it is read."""

    group: str
    name: str
    tags: Tags
    read: Callable[[], float]


class _Window(NamedTuple):
    began_ms: float
    values: int
    total: float
    maximum: float


class _Windows(NamedTuple):
    """Those that are over, and where the one being filled began: in time, and in all values and their sum."""

    past: tuple[_Window, ...]
    began_ms: float
    values_before: int
    total_before: float


class Measure:
    """Values as they come. Threads: one records; any reads, and may miss what is being recorded.

    The totals only ever grow, whoever looks at them: who goes by their growth takes anything else for a restart.
    """

    __slots__ = ("_ends_ms", "_kept", "_maximum", "_window_ms", "_windows", "count", "total")

    def __init__(self, now_ms: float, window_ms: float = 30_000, samples: int = 2) -> None:
        self._window_ms: Final = max(window_ms, 1.0)
        self._kept: Final = max(samples - 1, 1)
        self._windows = _Windows((), now_ms, 0, 0.0)
        """Replaced as a whole, so that a reader sees those before a turn or those after it."""
        self._ends_ms = now_ms + self._window_ms
        self._maximum = _LOWEST
        self.count = 0
        """Of all values ever."""
        self.total = 0.0
        """Of all values ever."""

    def record(self, value: float, now_ms: float) -> None:
        """A value."""
        if now_ms >= self._ends_ms:
            self._turn(now_ms)
        self.count += 1
        self.total += value
        if value > self._maximum:
            self._maximum = value

    def all_count(self) -> float:
        """How many values there ever were."""
        return self.count

    def all_total(self) -> float:
        """Their sum."""
        return self.total

    def average(self, now_ms: float) -> float:
        """Of the values of the last windows; NaN without any."""
        windows = self._recent(now_ms)
        count = sum(window.values for window in windows)
        return sum(window.total for window in windows) / count if count else NAN

    def maximum(self, now_ms: float) -> float:
        """Of the values of the last windows; NaN without any."""
        maximum = max((window.maximum for window in self._recent(now_ms)), default=_LOWEST)
        return NAN if maximum == _LOWEST else maximum

    def rate(self, now_ms: float) -> float:
        """The sum of the values, a second."""
        windows = self._recent(now_ms)
        return sum(window.total for window in windows) / self._elapsed_s(windows, now_ms)

    def count_rate(self, now_ms: float) -> float:
        """How many values come in a second."""
        windows = self._recent(now_ms)
        return sum(window.values for window in windows) / self._elapsed_s(windows, now_ms)

    def _recent(self, now_ms: float) -> list[_Window]:
        """The windows that are not too old, the one being filled last."""
        windows = self._windows
        oldest_ms = now_ms - self._window_ms * (len(windows.past) + 1)
        return [window for window in (*windows.past, self._present(windows)) if window.began_ms >= oldest_ms]

    def _present(self, windows: _Windows) -> _Window:
        return _Window(
            windows.began_ms, self.count - windows.values_before, self.total - windows.total_before, self._maximum
        )

    def _elapsed_s(self, windows: list[_Window], now_ms: float) -> float:
        """Since the oldest one began, but not less than all but the last window: a few values are no rate yet."""
        least_ms = self._window_ms * self._kept
        elapsed_ms = now_ms - windows[0].began_ms if windows else 0.0
        return max(elapsed_ms, least_ms) / 1_000

    def _turn(self, now_ms: float) -> None:
        windows = self._windows
        past = (*windows.past, self._present(windows))[-self._kept :]
        self._windows = _Windows(past, now_ms, self.count, self.total)
        self._ends_ms = now_ms + self._window_ms
        self._maximum = _LOWEST


class RateOfTotal:
    """How fast a number grows that something else counts: between readings, over a window at least.

    Threads: any. `_lock` guards the readings; what is read takes no locks.
    """

    __slots__ = ("_lock", "_read", "_samples", "_window_ms")

    def __init__(self, read: Callable[[], float], now_ms: float, window_ms: float = 30_000) -> None:
        self._read: Final = read
        self._window_ms: Final = window_ms
        self._lock: Final = threading.Lock()
        self._samples: Final[deque[tuple[float, float]]] = deque([(now_ms, read())], maxlen=64)

    def rate(self, now_ms: float) -> float:
        """Growth a second since the newest reading that is a window old, or else the oldest one."""
        samples = self._samples
        with self._lock:
            total = self._read()
            while len(samples) > 1 and now_ms - samples[1][0] >= self._window_ms:
                samples.popleft()
            began_ms, began = samples[0]
            if now_ms - samples[-1][0] >= self._window_ms / 32:
                samples.append((now_ms, total))
        elapsed_ms = now_ms - began_ms
        return (total - began) * 1_000 / elapsed_ms if elapsed_ms > 0 else 0.0
