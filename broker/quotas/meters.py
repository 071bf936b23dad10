"""What clients use of a quota, and how long they have to pause for it (`ClientQuotaManager`)."""

import math
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from kavka.broker.network.muting import mute
from kavka.broker.quotas.limits import Entity, Limits, Tags
from kavka.broker.quotas.samples import Average, Rate, TokenBucket, Window
from kavka.broker.quotas.tally import DELAY_MS, FAR, NS_PER_MS, SHARE, Tally

if TYPE_CHECKING:
    from kavka.broker.network.connection import Connection

MOST_MS: Final = 2**31 - 1
"""A throttle time is an int32. Kafka's wraps around where it would be more, and ends up as none."""
MANY_METERS: Final = 10_000
"""From here on those that are idle go. Client ids are any client's choice."""
MOST_METERS: Final = 50_000
"""Beyond that all that are new and have the same quota share a meter."""
EXPIRE_MS: Final = 3_600_000
"""Who has done nothing for so long is shown no more, as in Kafka."""
FEW_TALLIES: Final = 64
"""More than these, and those are looked for that are not used any more."""
USUAL_WINDOW: Final = Window(2, 30_000)
"""Over which is shown what no quota is for: `metrics.num.samples`, `metrics.sample.window.ms`."""


class Meter:
    """What those behind one pair of tags have used. Threads: any; `_lock` guards all that changes."""

    __slots__ = (
        "_far",
        "_limit",
        "_lock",
        "_most_tallies",
        "_pausing",
        "_record",
        "_safe",
        "_tallies",
        "_throttle_times",
        "last_ms",
        "rate",
        "tags",
        "window",
    )

    def __init__(
        self,
        tags: Tags,
        window: Window,
        limit: float,
        now_ms: int,
        pausing: Callable[[int], None] = lambda count: None,
    ) -> None:
        """`pausing`: see `Meters.pausing`."""
        self.tags: Final = tags
        self._pausing: Final = pausing
        self.window: Final = window
        self.rate: Final = Rate(window)
        self._record: Final = self.rate.record
        self.last_ms = now_ms
        self._lock: Final = threading.Lock()
        self._throttle_times: Average | None = None
        self._tallies: set[Tally] = set()
        """Those that may have something to tell."""
        self._most_tallies = FEW_TALLIES
        self.limit = limit

    @property
    def limit(self) -> float:
        """The quota."""
        return self._limit

    @limit.setter
    def limit(self, limit: float) -> None:
        with self._lock:
            self._limit = limit
            # The rate is taken over that long at least: nothing that is less needs a closer look.
            self._safe = limit * (self.window.samples - 1) * self.window.sample_ms / 1000 * 0.999999
            self._far = self._safe * FAR
            for tally in self._tallies:
                tally.most = 0.0

    def record(self, value: float, now_ms: int) -> int:
        """Count `value`; for how long (ms) the client is to pause, 0 for not at all."""
        with self._lock:
            return self._recorded(value, now_ms)

    def tell(self, tally: Tally, value: float, now_ms: int) -> int:
        """As `record`, for a connection that counts for itself where it may: `value` is not in its tally yet."""
        with self._lock:
            self._fetch(tally)
            tally.used += value
            tally.told = tally.used
            throttle_ms = self._recorded(value, now_ms)
            # With nothing it says what is in use, and nothing else.
            if throttle_ms or self._record(0.0, now_ms) > self._far:
                tally.most = 0.0
                return throttle_ms
            if len(self._tallies) > self._most_tallies:
                self._collect(now_ms)
                self._most_tallies = max(FEW_TALLIES, 2 * len(self._tallies))
            self._tallies.add(tally)
            tally.due_ms = min(now_ms + DELAY_MS, self.rate.last_ms + 1)
            tally.most = tally.used + self._safe * SHARE / len(self._tallies)
            return 0

    def add(self, value: float, now_ms: int) -> None:
        """Count `value`, which may be negative, and throttle nobody for it."""
        with self._lock:
            self.last_ms = now_ms
            self.rate.record(value, now_ms)

    def measure(self, now_ms: int) -> float:
        """What is used a second."""
        with self._lock:
            self._collect(now_ms)
            return self.rate.measure(now_ms)

    def pause(self, connection: "Connection", throttle_ms: int, now_ms: int) -> None:
        """Have a connection pause for so long. The caller holds its `running`, and leaves it so."""
        with self._lock:
            if self._throttle_times is None:
                self._throttle_times = Average(USUAL_WINDOW)
            self._throttle_times.record(throttle_ms, now_ms)
        self._pausing(1)
        mute(connection, throttle_ms, lambda: self._pausing(-1))

    def throttle_time_ms(self, now_ms: int) -> float:
        """The mean of the throttle times of the last minute; NaN if there were none."""
        with self._lock:
            return math.nan if self._throttle_times is None else self._throttle_times.measure(now_ms)

    def is_forgotten(self, now_ms: int) -> bool:
        """Whether a new meter would say the same: nothing has been used for longer than is looked back."""
        return now_ms - self.last_ms > self.window.expire_ms + self.window.sample_ms

    def _recorded(self, value: float, now_ms: int) -> int:
        """Under `_lock`, as what is below."""
        self.last_ms = now_ms
        if self._tallies and now_ms > self.rate.last_ms:
            # What was used before belongs to the sample that ends.
            self._collect(now_ms)
        used = self._record(value, now_ms)
        if used <= self._far:
            return 0
        if self._tallies:
            self._collect(now_ms)
            for tally in self._tallies:
                tally.most = 0.0
            self._tallies.clear()
            used = self._record(0.0, now_ms)
        if used <= self._safe:
            return 0
        measured = self.rate.measure(now_ms)
        if measured <= self._limit:
            return 0
        return pause_ms(measured, self._limit, self.rate.window_ms(now_ms))

    def _collect(self, now_ms: int) -> None:
        """Count what connections have not told, and forget those that had their time and nothing to tell."""
        idle = [tally for tally in self._tallies if not self._fetch(tally) and tally.due_ms <= now_ms]
        for tally in idle:
            tally.most = 0.0
        self._tallies.difference_update(idle)

    def _fetch(self, tally: Tally) -> bool:
        """Count what one connection has not told, all of the current sample's time; False if that is nothing."""
        used = tally.used
        untold, tally.told = used - tally.told, used
        if untold:
            self.rate.add(untold, tally.used_ns // NS_PER_MS)
        return untold > 0


class MutationMeter(Meter):
    """Partitions that were created and deleted: a bucket of tokens decides, the rate is only shown (KIP-599)."""

    __slots__ = ("_bucket",)

    def __init__(
        self,
        tags: Tags,
        window: Window,
        limit: float,
        now_ms: int,
        pausing: Callable[[int], None] = lambda count: None,
    ) -> None:
        super().__init__(tags, window, limit, now_ms, pausing)
        self._bucket: Final = TokenBucket(window, now_ms)

    def tokens(self, now_ms: int) -> float:
        """How many partitions may be created or deleted now."""
        with self._lock:
            return self._bucket.measure(self.limit, now_ms)

    def take(self, partitions: int, now_ms: int) -> int:
        """Count so many, though it may make a debt; for how long (ms) the client is to pause then."""
        with self._lock:
            self._take(partitions, now_ms)
            return self._debt_ms(now_ms)

    def take_strictly(self, partitions: int, now_ms: int) -> int:
        """Count so many unless there is a debt: then nothing is counted, and how long (ms) it takes is the answer."""
        with self._lock:
            owed_ms = self._debt_ms(now_ms)
            if not owed_ms:
                self._take(partitions, now_ms)
            return owed_ms

    def is_forgotten(self, now_ms: int) -> bool:
        # A debt may take longer than the window; a full bucket is as a new one.
        return super().is_forgotten(now_ms) and self.tokens(now_ms) >= TokenBucket(self.window, now_ms).measure(
            self.limit, now_ms
        )

    def _take(self, partitions: int, now_ms: int) -> None:
        self.last_ms = now_ms
        self.rate.record(partitions, now_ms)
        self._bucket.record(partitions, self.limit, now_ms)

    def _debt_ms(self, now_ms: int) -> int:
        tokens = self._bucket.measure(self.limit, now_ms)
        if tokens >= 0:
            return 0
        return rounded_ms(-tokens / self.limit * 1000) if self.limit else MOST_MS


M = TypeVar("M", bound=Meter)


class Meters(Generic[M]):
    """The meters of one kind of quota, and the quotas. Threads: any; `_lock` guards quotas and the set of meters."""

    def __init__(self, make: Callable[[Tags, Window, float, int, Callable[[int], None]], M], window: Window) -> None:
        self._make: Final = make
        self._window: Final = window
        self._lock: Final = threading.Lock()
        self._limits: Final = Limits()
        self._meters: dict[Tags, M] = {}
        self._shared: dict[float, M] = {}
        self.paused = 0
        """How many connections pause now for this kind of quota; see `pausing`."""

    @property
    def is_limited(self) -> bool:
        """Whether anybody has a quota."""
        return len(self._limits) > 0

    def update(self, entity: Entity, limit: float | None) -> bool:
        """Set a quota, or with None take it away; False if that changes nothing."""
        with self._lock:
            if not self._limits.update(entity, limit):
                return False
            # Whose use counts together may be another now: who is in no group any more has nothing that counts.
            for tags, meter in self._meters.items():
                meter.limit = self._limits.limit(tags)
            self._shared.clear()
            return True

    def meter_of(self, user: str, client: str, now_ms: int) -> M | None:
        """That of a user and client id, as names of nodes; None while nobody has a quota."""
        with self._lock:
            if not len(self._limits):
                return None
            tags = self._limits.tags(user, client)
            meter = self._meters.get(tags)
            if meter is None:
                limit = self._limits.limit(tags)
                if len(self._meters) >= MOST_METERS:
                    shared = self._make(Tags("", ""), self._window, limit, now_ms, self.pausing)
                    return self._shared.setdefault(limit, shared)
                meter = self._meters[tags] = self._make(tags, self._window, limit, now_ms, self.pausing)
            return meter

    def pausing(self, count: int) -> None:
        """So many connections begin to pause, or if negative, go on."""
        with self._lock:
            self.paused += count

    def sweep(self, now_ms: int) -> bool:
        """Forget meters that nobody would miss, if there are many or they are old; True if there were any."""
        with self._lock:
            meters = self._meters
            many = len(meters) >= MANY_METERS
            old = [
                tags
                for tags, meter in meters.items()
                if (many or now_ms - meter.last_ms > EXPIRE_MS) and meter.is_forgotten(now_ms)
            ]
            for tags in old:
                del meters[tags]
            return bool(old)

    def all(self) -> list[M]:
        """The meters there are."""
        with self._lock:
            return list(self._meters.values())


def pause_ms(measured: float, limit: float, window_ms: int) -> int:
    """How long nothing may come until a rate is down at its limit (`QuotaUtils.throttleTime`); never below 0."""
    if limit == 0:
        return MOST_MS
    return max(0, rounded_ms((measured - limit) / limit * window_ms))


def rounded_ms(milliseconds: float) -> int:
    """As Java's `Math.round`, and within what an answer can carry.

    Of any number there is, for quotas below nothing, or next to it, bring them all about: what is raised here ends the
    thread that runs the request.
    """
    if -MOST_MS < milliseconds < MOST_MS:
        return math.floor(milliseconds + 0.5)
    if milliseconds >= MOST_MS:
        return MOST_MS
    return -MOST_MS if milliseconds < 0 else 0
