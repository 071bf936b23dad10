"""Rates as Apache Kafka measures them, to the digit: samples of some seconds each, and what lies in them.

`Rate`, `Average` and `TokenBucket` do what `org.apache.kafka.common.metrics.stats` of 3.9 does; the tests hold them
against those classes. Times are milliseconds of a clock that nobody sets back. Threads: their owners keep them apart.
"""

from typing import Final


class Window:
    """How long is looked back: so many samples of so many milliseconds each (`quota.window.num`, `...size.seconds`)."""

    __slots__ = ("expire_ms", "sample_ms", "samples")

    def __init__(self, samples: int, sample_ms: int) -> None:
        self.samples: Final = samples
        self.sample_ms: Final = sample_ms
        self.expire_ms: Final = samples * sample_ms


class _Sample:
    __slots__ = ("count", "last_ms", "start_ms", "value")

    def __init__(self, now_ms: int) -> None:
        self.reset(now_ms)

    def reset(self, now_ms: int) -> None:
        self.value = 0.0
        self.count = 0
        self.start_ms = self.last_ms = now_ms


class Samples:
    """What was recorded in the window (`SampledStat` with a sum): one sample more is kept than the window has."""

    __slots__ = ("_current", "_list", "_other", "window")

    def __init__(self, window: Window) -> None:
        self.window: Final = window
        self._list: list[_Sample] = []
        self._current = 0
        self._other = 0.0
        """At least what all samples but the current one have."""

    def record(self, value: float, now_ms: int) -> float:
        """Add `value`; gives at least what lies in the window, and mostly just that."""
        samples = self._list
        if not samples:
            samples.append(_Sample(now_ms))
        sample = samples[self._current]
        if now_ms - sample.start_ms >= self.window.sample_ms:
            sample = self._advance(now_ms)
        sample.value += value
        sample.count += 1
        sample.last_ms = now_ms
        return self._other + sample.value

    def add(self, value: float, at_ms: int) -> None:
        """Add to the current sample what was used a while ago, in its time."""
        sample = self._list[self._current]
        sample.value += value
        sample.count += 1
        sample.last_ms = max(sample.last_ms, at_ms)

    @property
    def last_ms(self) -> int:
        """Until when the current sample goes, that moment included."""
        return self._list[self._current].start_ms + self.window.sample_ms - 1 if self._list else 0

    def total(self, now_ms: int) -> float:
        """What lies in the window, added up in Kafka's order."""
        self._purge(now_ms)
        total = 0.0
        for sample in self._list:
            total += sample.value
        if self._list:
            self._count_others()
        return total

    def count(self) -> int:
        """How often was recorded; behind `total`."""
        return sum([sample.count for sample in self._list])

    def elapsed_ms(self, now_ms: int) -> int:
        """How long ago the oldest sample that counts began."""
        self._purge(now_ms)
        if not self._list:
            self._list.append(_Sample(now_ms))
        return now_ms - min([sample.start_ms for sample in self._list])

    def _advance(self, now_ms: int) -> _Sample:
        samples = self._list
        self._current = (self._current + 1) % (self.window.samples + 1)
        if self._current >= len(samples):
            samples.append(_Sample(now_ms))
        else:
            samples[self._current].reset(now_ms)
        self._count_others()
        return samples[self._current]

    def _count_others(self) -> None:
        current = self._list[self._current]
        self._other = sum([max(each.value, 0.0) for each in self._list if each is not current])

    def _purge(self, now_ms: int) -> None:
        oldest_ms = now_ms - self.window.expire_ms
        for sample in self._list:
            if sample.last_ms <= oldest_ms:
                sample.reset(now_ms)


class Rate:
    """A rate a second over the window (`Rate` over `WindowedSum`)."""

    __slots__ = ("_samples", "add", "record", "window")

    def __init__(self, window: Window) -> None:
        self.window: Final = window
        self._samples: Final = Samples(window)
        self.record: Final = self._samples.record
        """See `Samples.record`; values may be negative."""
        self.add: Final = self._samples.add
        """See `Samples.add`."""

    @property
    def last_ms(self) -> int:
        """See `Samples.last_ms`."""
        return self._samples.last_ms

    def measure(self, now_ms: int) -> float:
        """The rate a second."""
        total = self._samples.total(now_ms)
        return total / (self.window_ms(now_ms) / 1000.0)

    def window_ms(self, now_ms: int) -> int:
        """Over how long the rate is taken: what has not been yet counts as time in which nothing came."""
        window = self.window
        elapsed_ms = self._samples.elapsed_ms(now_ms)
        full = elapsed_ms // window.sample_ms
        least = window.samples - 1
        if full < least:
            elapsed_ms += (least - full) * window.sample_ms
        return max(elapsed_ms, 1)


class Average:
    """The mean of what was recorded in the window (`Avg`)."""

    __slots__ = ("_samples",)

    def __init__(self, window: Window) -> None:
        self._samples: Final = Samples(window)

    def record(self, value: float, now_ms: int) -> None:
        self._samples.record(value, now_ms)

    def measure(self, now_ms: int) -> float:
        """The mean; NaN where nothing was recorded."""
        total = self._samples.total(now_ms)
        count = self._samples.count()
        return total / count if count else float("nan")


class Maximum:
    """The largest of what was recorded in the window (`Max`)."""

    __slots__ = ("_samples", "_window")

    def __init__(self, window: Window) -> None:
        self._window: Final = window
        self._samples: list[tuple[int, int, float]] = []
        """When each began and had its last value, and its largest; one more than the window has at most."""

    def record(self, value: float, now_ms: int) -> None:
        self._purge(now_ms)
        if self._samples and now_ms - self._samples[-1][0] < self._window.sample_ms:
            start_ms, _, largest = self._samples.pop()
            self._samples.append((start_ms, now_ms, max(largest, value)))
        else:
            self._samples.append((now_ms, now_ms, value))

    def measure(self, now_ms: int) -> float:
        """The largest; NaN where nothing was recorded."""
        self._purge(now_ms)
        return max([largest for _, _, largest in self._samples], default=float("nan"))

    def _purge(self, now_ms: int) -> None:
        oldest_ms = now_ms - self._window.expire_ms
        self._samples = [each for each in self._samples if each[1] > oldest_ms][-self._window.samples :]


class TokenBucket:
    """Tokens that come back at a rate, a window's worth at most; a burst may leave a debt (`TokenBucket`, KIP-599)."""

    __slots__ = ("_tokens", "_updated_ms", "window")

    def __init__(self, window: Window, now_ms: int) -> None:
        """Full: Kafka's has been filled since 1970."""
        self.window: Final = window
        self._tokens = float("inf")
        self._updated_ms = now_ms

    def record(self, value: float, rate: float, now_ms: int) -> None:
        """Take `value` tokens, which there may not be."""
        self._tokens = min(self._burst(rate), self.measure(rate, now_ms) - value)

    def measure(self, rate: float, now_ms: int) -> float:
        """How many there are; below nothing is a debt."""
        self._tokens = min(self._burst(rate), self._tokens + rate * ((now_ms - self._updated_ms) / 1000.0))
        self._updated_ms = now_ms
        return self._tokens

    def _burst(self, rate: float) -> float:
        return self.window.samples * (self.window.sample_ms / 1000.0) * rate
