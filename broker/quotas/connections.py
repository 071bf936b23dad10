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
from kavka.client.resolver import numeric_addresses
from kavka.cluster.znodes.config import DEFAULT_ENTITY, text_of_node
from kavka.config.errors import ConfigError
from kavka.config.thread_names import thread_name

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
        self._named: dict[str, int | None] = {}
        """The newest limits of hosts that are being looked up."""
        self._meters: dict[str, Meter] = {}

    def apply(self, node: str, stored: Mapping[str, str]) -> None:
        """Go by what is stored for `ips/NODE`; where that is a host's name, once it has been looked up.

        Raises ConfigError, and nothing has changed, for what cannot be used.
        """
        limit = ip_limit(stored)
        host = text_of_node(node)
        address = "" if node == DEFAULT_ENTITY else self._hosts.get(node) or numeric_address(host)
        with self._lock:
            if address is None:
                is_looked_up = node in self._named
                self._named[node] = limit
            else:
                self._set(node, address, limit)
        if address is not None:
            log.info("connection quota changed address=%s rate=%s", address or DEFAULT_ENTITY, limit)
        elif not is_looked_up:
            # All other settings would wait for the resolver with who calls this.
            name = thread_name(f"lookup-{host}")
            thread = threading.Thread(target=self._look_up, args=(node, host), name=name, daemon=True)
            try:
                thread.start()
            except RuntimeError as failure:
                with self._lock:
                    # Else the next change would wait for what this thread finds.
                    del self._named[node]
                raise ConfigError("ip", host, f"cannot be looked up: {failure}") from failure

    def _look_up(self, node: str, host: str) -> None:
        """On a thread of its own, which ends with it: a lookup cannot be broken off."""
        try:
            address = address_of(host)
        except ConfigError as failure:
            with self._lock:
                del self._named[node]
            log.error("a connection quota is not used: %s", failure)
            return
        with self._lock:
            limit = self._named.pop(node)
            self._set(node, address, limit)
        log.info("connection quota changed host=%s address=%s rate=%s", host, address, limit)

    def _set(self, node: str, address: str, limit: int | None) -> None:
        """Lock held. No address: of those that have no limit of their own."""
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


def numeric_address(host: str) -> str | None:
    """The address that this is, as connections have it; None for a name. Never waits."""
    found = numeric_addresses(host, 0)
    return plain_address(str(found[0].sockaddr[0])) if found else None


def address_of(host: str) -> str:
    """The address of a host, as connections have it. May wait for a resolver. Raises ConfigError if there is none."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as failure:
        raise ConfigError("ip", host, "must be an address, or a host that has one") from failure
    return plain_address(str(found[0][4][0]))
