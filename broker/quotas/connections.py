"""How many connections a second an address may open (KIP-612), beyond which they are closed, after a while."""

import logging
import socket
import threading
from collections.abc import Callable, Mapping
from typing import Final

from kavka.broker.network.addresses import plain_address
from kavka.broker.quotas.keys import ip_limit
from kavka.broker.quotas.limits import UNLIMITED, Tags
from kavka.broker.quotas.meters import Meter
from kavka.broker.quotas.samples import Window
from kavka.cluster.znodes.config import DEFAULT_ENTITY, text_of_node
from kavka.config.errors import ConfigError

MANY: Final = 10_000
"""From so many addresses on those that are idle are forgotten."""

log = logging.getLogger(__name__)


class AddressRates:
    """Threads: any; `_lock` guards all."""

    def __init__(self, samples: int, sample_ms: int, now_ms: Callable[[], int]) -> None:
        self._window: Final = Window(samples, sample_ms)
        self._now_ms: Final = now_ms
        self._lock: Final = threading.Lock()
        self._default: int | None = None
        self._limits: dict[str, int] = {}
        self._hosts: dict[str, str] = {}
        """The address that was found for each node's name."""
        self._meters: dict[str, Meter] = {}

    def apply(self, node: str, stored: Mapping[str, str]) -> None:
        """Go by what is stored for `ips/NODE`. Raises ConfigError, and nothing has changed, for what cannot be used."""
        limit = ip_limit(stored)
        address = "" if node == DEFAULT_ENTITY else self._hosts.get(node) or address_of(text_of_node(node))
        with self._lock:
            if not address:
                self._default = limit
            elif limit is None:
                self._limits.pop(address, None)
                self._hosts.pop(node, None)
            else:
                self._limits[address] = limit
                self._hosts[node] = address
            for each, meter in self._meters.items():
                meter.limit = self._limit(each)
        log.info("connection quota changed address=%s rate=%s", address or DEFAULT_ENTITY, limit)

    def throttle_ms(self, address: str) -> int:
        """A connection has come from there: 0 if it may stay, else after how long (ms) it is to be closed."""
        with self._lock:
            if self._limit(address) >= UNLIMITED:
                return 0
            now_ms = self._now_ms()
            meter = self._meters.get(address)
            if meter is None:
                self._make_room(now_ms)
                meter = self._meters[address] = Meter(Tags("", ""), self._window, self._limit(address), now_ms)
            throttle_ms = min(meter.record(1, now_ms), self._window.sample_ms)
            if throttle_ms:
                meter.add(-1, now_ms)
            return throttle_ms

    def readings(self) -> list[tuple[str, float]]:
        """The connections a second of each address that has a limit."""
        with self._lock:
            now_ms = self._now_ms()
            return [(address, meter.measure(now_ms)) for address, meter in self._meters.items()]

    def _limit(self, address: str) -> float:
        limit = self._limits.get(address, self._default)
        return UNLIMITED if limit is None or limit >= 2**31 - 1 else limit

    def _make_room(self, now_ms: int) -> None:
        if len(self._meters) < MANY:
            return
        for address in [each for each, meter in self._meters.items() if meter.is_forgotten(now_ms)]:
            del self._meters[address]
        if len(self._meters) >= MANY:
            # All of them came just now. The first ones had their share, and get it again.
            self._meters.clear()


def address_of(host: str) -> str:
    """The address of a host, as connections have it. Raises ConfigError if there is none."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as failure:
        raise ConfigError("ip", host, "must be an address, or a host that has one") from failure
    return plain_address(str(found[0][4][0]))
