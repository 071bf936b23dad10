"""How fast replicas that are not in sync may be copied (KIP-73): so that a reassignment leaves room for clients.

`leader.replication.throttled.replicas` and `follower...` of a topic name the replicas (`partition:broker`, or `*`), the
broker's `...throttled.rate` their bytes a second, over `replication.quota.window.num` samples.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kavka.config.values import LONG_MAX

if TYPE_CHECKING:
    from kavka.config.topic_config import TopicConfig
    from kavka.storage.partition_log import PartitionLog

ALL: Final = "*"


class ReplicationThrottle:
    """One direction's limit: what this broker sends as leader, or fetches as follower.

    `limit()` in bytes a second, read anew each time as it is dynamic; `replicas(config)` those that are throttled.
    Threads: any; `_lock` guards the samples.
    """

    __slots__ = ("_broker_id", "_limit", "_lock", "_now_ms", "_replicas", "_sample_ms", "_samples", "_window")

    def __init__(
        self,
        broker_id: int,
        limit: Callable[[], int],
        replicas: Callable[["TopicConfig"], tuple[str, ...]],
        *,
        window_num: int,
        window_size_ms: int,
        now_ms: Callable[[], float] = lambda: time.monotonic() * 1000,
    ) -> None:
        self._broker_id: Final = broker_id
        self._limit: Final = limit
        self._replicas: Final = replicas
        self._window: Final = window_num
        self._sample_ms: Final = window_size_ms
        self._now_ms: Final = now_ms
        self._lock: Final = threading.Lock()
        self._samples: deque[tuple[float, int]] = deque()
        """(when a sample began, bytes in it), at most `window_num` of them."""

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit at all."""
        return self._limit() < LONG_MAX

    def concerns(self, log: "PartitionLog") -> bool:
        """Whether this broker's replica is one of the throttled."""
        replicas = self._replicas(log.config)
        return bool(replicas) and (ALL in replicas or f"{log.partition}:{self._broker_id}" in replicas)

    def is_exceeded(self) -> bool:
        """Whether more went through lately than may."""
        return self.rate() > self._limit()

    def holds_back(self, log: "PartitionLog", *, is_in_sync: bool) -> bool:
        """Whether a replica is to wait: one that is in sync never is, or the ISR would flap."""
        return not is_in_sync and self.is_limited and self.concerns(log) and self.is_exceeded()

    def record(self, log: "PartitionLog", size_bytes: int) -> None:
        """So much went through, of a replica in sync or not: together they are not to exceed the limit."""
        if not self.is_limited or not self.concerns(log):
            return
        now_ms = self._now_ms()
        with self._lock:
            if self._samples and now_ms - self._samples[-1][0] < self._sample_ms:
                began_ms, before_bytes = self._samples.pop()
                self._samples.append((began_ms, before_bytes + size_bytes))
            else:
                self._samples.append((now_ms, size_bytes))
            self._forget_old(now_ms)

    def rate(self) -> float:
        """Bytes a second over the window, or since what is known of it began."""
        now_ms = self._now_ms()
        with self._lock:
            self._forget_old(now_ms)
            if not self._samples:
                return 0.0
            total_bytes = sum(size_bytes for _, size_bytes in self._samples)
            return total_bytes * 1000 / max(now_ms - self._samples[0][0], self._sample_ms)

    def _forget_old(self, now_ms: float) -> None:
        while self._samples and now_ms - self._samples[0][0] >= self._window * self._sample_ms:
            self._samples.popleft()
