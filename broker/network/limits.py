"""How many connections there may be, in all, by listener and by client address; and how fast new ones may come.

As Kafka's `ConnectionQuotas`. A connection that comes too soon is counted, and its listener waits for so long before it
accepts it; where there are too many it waits for room. The listener between brokers is protected, where there are
others: it has no part in the broker's limits, and one too many there costs another listener the connection that has
been idle for the longest time.
"""

import errno
import importlib
import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from kavka.broker.network.addresses import plain_address
from kavka.config.errors import SettingRefusedError

if TYPE_CHECKING:
    from kavka.broker.metrics.registry import Labels, Metrics
    from kavka.broker.quotas.meters import Meter
    from kavka.broker.quotas.samples import Average
    from kavka.config.broker_config import BrokerConfig

UNLIMITED: Final = 2**31 - 1
_METRICS: Final = "kafka_server_socket_server_metrics_"
ACCEPT_RATE: Final = "connection_accept_rate"
LISTENERS: Final = ""
ADDRESSES: Final = "ip_"
FULL_WAIT_S: Final = 0.05
"""How long an acceptor waits before it looks again whether there is room."""


class ListenerLimits(NamedTuple):
    """What a listener has of its own, beside the broker's limits."""

    max_connections: int = UNLIMITED
    max_creation_rate: int = UNLIMITED


NO_LIMITS: Final = ListenerLimits()


class AddressRates(Protocol):
    """How many connections a second each address may open."""

    def throttle_ms(self, address: str, /) -> int:
        """A connection has come from there: 0 if it may stay, else after how long (ms) it is to be closed."""
        ...

    def readings(self) -> list[tuple[str, float]]:
        """The connections a second of each address that has a limit."""
        ...


class ConnectionSettings:
    """The limits as configured; replaced whole when they change."""

    __slots__ = (
        "by_listener",
        "max_connections",
        "max_creation_rate",
        "max_per_ip",
        "per_ip_overrides",
        "protected_listener",
        "window_num",
        "window_size_s",
    )

    def __init__(
        self,
        *,
        max_connections: int = UNLIMITED,
        max_per_ip: int = UNLIMITED,
        per_ip_overrides: Mapping[str, int] | None = None,
        max_creation_rate: int = UNLIMITED,
        by_listener: Mapping[str, ListenerLimits] | None = None,
        protected_listener: str | None = None,
        window_num: int = 11,
        window_size_s: int = 1,
    ) -> None:
        """`protected_listener`: that between brokers, where there are others. The window is that of the rates."""
        self.max_connections = max_connections
        self.max_per_ip = max_per_ip
        self.per_ip_overrides = dict(per_ip_overrides or {})
        self.max_creation_rate = max_creation_rate
        self.by_listener = dict(by_listener or {})
        self.protected_listener = protected_listener
        self.window_num = window_num
        self.window_size_s = window_size_s


class Arrivals:
    """How many connections come a second, and how long some have to wait of late: a broker's, on all its planes.

    Threads: any; `_lock` guards all, `_address_rates` is one assignment.
    """

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s: Final = now_s
        self._lock: Final = threading.Lock()
        self._window: tuple[int, int] = (11, 1)
        """How many samples of how many seconds each."""
        self._counts: Final[dict[str, deque[tuple[int, int]]]] = {}
        """By listener: which sample, and how many came in it."""
        self._waits: Final[dict[tuple[str, str], Average]] = {}
        """By the prefix of the metric's name, and by listener."""
        self._address_rates: AddressRates | None = None

    def register(self, metrics: "Metrics") -> None:
        """Have them shown."""
        metrics.gauge(f"{_METRICS}broker_{ACCEPT_RATE}", "Connections a second that are accepted.", self._rate)
        metrics.gauge(_METRICS + ACCEPT_RATE, "Connections a second that are accepted.", self._rates)
        text = "For how many ms connections had to wait for their rates, on average of those that had to."
        for prefix in (LISTENERS, ADDRESSES):
            metrics.gauge(f"{_METRICS}{prefix}connection_accept_throttle_time", text, partial(self._throttles, prefix))

    def arrived(self, listener_name: str, samples: int, sample_s: int) -> None:
        """A connection is accepted; the window is that of the rates."""
        with self._lock:
            self._window = samples, sample_s
            number = int(self._now_s()) // sample_s
            counts = self._counts.setdefault(listener_name, deque())
            count = counts.pop()[1] if counts and counts[-1][0] == number else 0
            counts.append((number, count + 1))
            while counts[0][0] <= number - samples:
                counts.popleft()

    def throttled(self, prefix: str, listener_name: str, wait_ms: float) -> None:
        """One has to wait so long, by a listener's rate or an address'."""
        from kavka.broker.quotas.samples import Average, Window

        with self._lock:
            waits = self._waits.setdefault((prefix, listener_name), Average(Window(2, 30_000)))
            waits.record(wait_ms, int(self._now_s() * 1000))

    def follow(self, rates: AddressRates | None) -> None:
        """Show these rates of addresses, too."""
        self._address_rates = rates

    def _by_listener(self) -> dict[str, float]:
        with self._lock:
            samples, sample_s = self._window
            now_s = self._now_s()
            number = int(now_s) // sample_s
            # As Kafka has it: what has not been yet counts as time in which nothing came.
            window_s = max((samples - 1) * sample_s + now_s % sample_s, float(sample_s))
            return {
                name: sum([count for each, count in counts if each > number - samples]) / window_s
                for name, counts in self._counts.items()
            }

    def _rate(self) -> float:
        return sum(self._by_listener().values())

    def _rates(self) -> "list[tuple[Labels, float]]":
        rates = self._address_rates
        by_address = [] if rates is None else rates.readings()
        return [
            *(({"listener": name}, rate) for name, rate in self._by_listener().items()),
            *(({"ip": address}, rate) for address, rate in by_address),
        ]

    def _throttles(self, prefix: str) -> "list[tuple[Labels, float]]":
        with self._lock:
            now_ms = int(self._now_s() * 1000)
            return [
                ({"listener": name}, waits.measure(now_ms))
                for (each, name), waits in self._waits.items()
                if each == prefix
            ]


def arrivals_of(metrics: "Metrics") -> Arrivals:
    """Those of a broker, which its metrics show."""
    mine = Arrivals()
    arrivals = metrics.shared(mine)
    if arrivals is mine:
        arrivals.register(metrics)
    return arrivals


class ConnectionLimits:
    """Counts connections and says which ones are one too many.

    Threads: acceptors ask, network threads give back; `_lock` guards the counts and the rates. `settings` and what
    `follow` is given are replaced by one assignment each.
    """

    def __init__(
        self,
        settings: ConnectionSettings,
        now_s: Callable[[], float] = time.monotonic,
        arrivals: Arrivals | None = None,
    ) -> None:
        """`arrivals`: where to count; None: nowhere that anybody sees."""
        self.settings = settings
        self._arrivals = Arrivals(now_s) if arrivals is None else arrivals
        self._now_s = now_s
        self._lock = threading.Lock()
        self._total = 0
        self._by_listener: Counter[str] = Counter()
        self._by_ip: Counter[str] = Counter()
        self._rates: dict[str | None, Meter] = {}
        """By listener; None: the broker's. Made when there is a limit first."""
        self._address_rates: AddressRates | None = None

    @property
    def total(self) -> int:
        """How many connections there are."""
        return self._total

    @property
    def excess(self) -> int:
        """By how many there are too many, where listeners may have to give some up."""
        return max(0, self._total - self.settings.max_connections)

    def by_listener(self) -> dict[str, int]:
        """How many connections each listener has."""
        with self._lock:
            return dict(self._by_listener)

    def follow(self, rates: AddressRates | None) -> None:
        """Go by these rates of addresses."""
        self._address_rates = rates
        self._arrivals.follow(rates)

    def arrive(self, listener_name: str) -> float:
        """Count a connection that waits to be accepted: for how long (s) it has to, as too many have come of late."""
        settings = self.settings
        own = settings.by_listener.get(listener_name, NO_LIMITS).max_creation_rate
        general = settings.max_creation_rate if listener_name != settings.protected_listener else UNLIMITED
        if own >= UNLIMITED and general >= UNLIMITED:
            return 0.0
        with self._lock:
            now_ms = self._now_ms()
            longest_ms = 0
            for name, limit in ((None, general), (listener_name, own)):
                if limit < UNLIMITED:
                    longest_ms = max(longest_ms, self._rate(name, limit, now_ms).record(1, now_ms))
            wait_s = min(longest_ms / 1000, float(settings.window_size_s))
        if wait_s:
            self._arrivals.throttled(LISTENERS, listener_name, wait_s * 1000)
        return wait_s

    def take_place(self, listener_name: str) -> bool:
        """Count a connection in that is about to be accepted; False when there is no room.

        Looking and counting are one step, as acceptors of several listeners see the last place at the same time. Who
        accepts nobody then gives the place back.
        """
        settings = self.settings
        own = settings.by_listener.get(listener_name, NO_LIMITS)
        with self._lock:
            if self._by_listener[listener_name] >= own.max_connections or (
                self._total >= settings.max_connections and listener_name != settings.protected_listener
            ):
                return False
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
        self._arrivals.arrived(listener_name, settings.window_num, settings.window_size_s)
        with self._lock:
            if self._by_ip[ip] >= settings.per_ip_overrides.get(ip, settings.max_per_ip):
                self._leave(listener_name)
                return False
            self._by_ip[ip] += 1
            return True

    def throttle_ms(self, listener_name: str, ip: str) -> int:
        """Of a connection that has a place: 0 if its address has not opened too many of late (KIP-612).

        Else its place is free, it does not count, and it is to be closed after so many ms.
        """
        rates = self._address_rates
        delay_ms = 0 if rates is None else rates.throttle_ms(ip)
        if delay_ms:
            self._arrivals.throttled(ADDRESSES, listener_name, delay_ms)
            with self._lock:
                self._leave(listener_name)
                now_ms = self._now_ms()
                general = None if listener_name != self.settings.protected_listener else listener_name
                for name in {general, listener_name} & self._rates.keys():
                    self._rates[name].add(-1, now_ms)
        return delay_ms

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

    def _rate(self, listener_name: str | None, limit: int, now_ms: int) -> "Meter":
        meter = self._rates.get(listener_name)
        if meter is None:
            from kavka.broker.quotas.limits import Tags
            from kavka.broker.quotas.meters import Meter
            from kavka.broker.quotas.samples import Window

            settings = self.settings
            window = Window(settings.window_num, settings.window_size_s * 1000)
            meter = self._rates[listener_name] = Meter(Tags("", ""), window, limit, now_ms)
        if meter.limit != limit:
            meter.limit = limit
        return meter

    def _now_ms(self) -> int:
        return int(self._now_s() * 1000)


def connection_settings(config: "BrokerConfig", per_ip_overrides: Mapping[str, int]) -> ConnectionSettings:
    """The limits that a configuration has; `per_ip_overrides` by address, where it has them by host. Raises OSError."""
    by_listener = {listener.name: _listener_limits(config, listener.name) for listener in config.listeners}
    if min(config.max_connection_creation_rate, *[each.max_creation_rate for each in by_listener.values()]) < UNLIMITED:
        # What counts them. An acceptor that had no descriptor left to import it with would end, and the broker with it.
        importlib.import_module("kavka.broker.quotas.meters")
    return ConnectionSettings(
        max_connections=config.max_connections,
        max_per_ip=config.max_connections_per_ip,
        per_ip_overrides=per_ip_overrides,
        max_creation_rate=config.max_connection_creation_rate,
        protected_listener=_protected(config),
        window_num=config.quota_window_num,
        window_size_s=config.quota_window_size_seconds,
        by_listener=by_listener,
    )


def _protected(config: "BrokerConfig") -> str | None:
    """The listener between brokers, if clients have another one."""
    if len(config.listeners) < 2:
        return None
    return config.inter_broker_listener_name


def _listener_limits(config: "BrokerConfig", name: str) -> ListenerLimits:
    most, rate = (config.listener_given(name, each) for each in ("max.connections", "max.connection.creation.rate"))
    return ListenerLimits(UNLIMITED if most is None else most, UNLIMITED if rate is None else rate)


def limits_by_address(most_by_host: Mapping[str, int]) -> dict[str, int]:
    """Hosts' limits, by their addresses. Asks the resolver. Raises OSError for a host that has no address."""
    return {address: most for host, most in most_by_host.items() for address in _addresses_of(host)}


def _addresses_of(host: str) -> set[str]:
    try:
        return {plain_address(str(found[4][0])) for found in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError) as failure:
        reason = failure.strerror if isinstance(failure, OSError) else "no host's name"
        name = "max.connections.per.ip.overrides"
        raise SettingRefusedError(name, errno.EINVAL, f"{name}: host {host} has no address: {reason}") from failure
