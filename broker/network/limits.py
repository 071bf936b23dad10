"""How many connections there may be: in all, on one listener, from one address, and new ones a second (KIP-612)."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

UNLIMITED: Final = 2**31 - 1
FULL_WAIT_S: Final = 0.05
"""How long an acceptor waits before it looks again whether there is room."""


class ListenerLimits(NamedTuple):
    """What a listener has of its own, beside the broker's limits."""

    max_connections: int = UNLIMITED
    max_creation_rate: int = UNLIMITED


NO_LIMITS: Final = ListenerLimits()


class ConnectionSettings:
    """The limits as configured; replaced whole when they change."""

    __slots__ = ("by_listener", "max_connections", "max_creation_rate", "max_per_ip", "per_ip_overrides")

    def __init__(
        self,
        *,
        max_connections: int = UNLIMITED,
        max_per_ip: int = UNLIMITED,
        per_ip_overrides: Mapping[str, int] | None = None,
        max_creation_rate: int = UNLIMITED,
        by_listener: Mapping[str, ListenerLimits] | None = None,
    ) -> None:
        self.max_connections = max_connections
        self.max_per_ip = max_per_ip
        self.per_ip_overrides = dict(per_ip_overrides or {})
        self.max_creation_rate = max_creation_rate
        self.by_listener = dict(by_listener or {})


class ConnectionLimits:
    """Counts connections and says which ones are one too many.

    Threads: acceptors ask, network threads give back; `_lock` guards the counts. `settings` is replaced by one
    assignment.
    """

    def __init__(self, settings: ConnectionSettings, now_s: Callable[[], float] = time.monotonic) -> None:
        self.settings = settings
        self._now_s = now_s
        self._lock = threading.Lock()
        self._total = 0
        self._by_listener: Counter[str] = Counter()
        self._by_ip: Counter[str] = Counter()
        self._began_s = now_s()
        self._rate = _Rate(self._began_s)
        self._listener_rates: dict[str, _Rate] = {}

    @property
    def total(self) -> int:
        """How many connections there are."""
        return self._total

    def by_listener(self) -> dict[str, int]:
        """How many connections each listener has."""
        with self._lock:
            return dict(self._by_listener)

    def wait_s(self, listener_name: str) -> float:
        """How long an acceptor has to wait before it accepts: for room, or for a creation rate; 0 when it may."""
        with self._lock:
            return self._wait_s(listener_name)

    def take_place(self, listener_name: str) -> bool:
        """Count a connection in that is about to be accepted; False when there is no room, or it comes too soon.

        Looking and counting are one step, as acceptors of several listeners see the last place at the same time. Who
        accepts nobody then gives the place back.
        """
        with self._lock:
            if self._wait_s(listener_name):
                return False
            self._rate.take()
            self._rate_of(listener_name).take()
            self._by_listener[listener_name] += 1
            self._total += 1
            return True

    def give_place_back(self, listener_name: str) -> None:
        """The client was gone before it was accepted."""
        with self._lock:
            self._leave(listener_name)

    def admit(self, listener_name: str, ip: str) -> bool:
        """Whether a connection that has a place may keep it; False, and the place is free, if its address has too many.

        Such a connection must be closed.
        """
        settings = self.settings
        with self._lock:
            if self._by_ip[ip] >= settings.per_ip_overrides.get(ip, settings.max_per_ip):
                self._leave(listener_name)
                return False
            self._by_ip[ip] += 1
            return True

    def released(self, listener_name: str, ip: str) -> None:
        """A connection that was admitted is closed: its place is free."""
        with self._lock:
            self._leave(listener_name)
            self._by_ip[ip] -= 1
            if self._by_ip[ip] <= 0:
                del self._by_ip[ip]

    def _leave(self, listener_name: str) -> None:
        self._total -= 1
        self._by_listener[listener_name] -= 1

    def _wait_s(self, listener_name: str) -> float:
        settings = self.settings
        own = settings.by_listener.get(listener_name, NO_LIMITS)
        if self._total >= settings.max_connections or self._by_listener[listener_name] >= own.max_connections:
            return FULL_WAIT_S
        if settings.max_creation_rate >= UNLIMITED and own.max_creation_rate >= UNLIMITED:
            return 0.0
        now_s = self._now_s()
        return max(
            self._rate.wait_s(settings.max_creation_rate, now_s),
            self._rate_of(listener_name).wait_s(own.max_creation_rate, now_s),
        )

    def _rate_of(self, listener_name: str) -> "_Rate":
        return self._listener_rates.setdefault(listener_name, _Rate(self._began_s))


class _Rate:
    """Tokens of a creation rate: one a connection. Under its owner's lock."""

    __slots__ = ("_refilled_s", "_tokens")

    def __init__(self, now_s: float) -> None:
        self._tokens = 0.0
        self._refilled_s = now_s

    def wait_s(self, rate: int, now_s: float) -> float:
        """How long until there is a token; 0 if there is one, or no limit."""
        if rate >= UNLIMITED:
            self._tokens = 1.0
            self._refilled_s = now_s
            return 0.0
        # One second's worth may be used at once, as in Kafka's rate quota with its first window.
        self._tokens = min(max(rate, 1), self._tokens + (now_s - self._refilled_s) * rate)
        self._refilled_s = now_s
        if self._tokens >= 1:
            return 0.0
        return min((1 - self._tokens) / rate, 1.0) if rate else 1.0

    def take(self) -> None:
        # Without a limit nobody fills it up, and there may be one later.
        self._tokens = max(0.0, self._tokens - 1)
