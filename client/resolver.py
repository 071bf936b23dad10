"""Hosts' names to addresses, without making the thread wait that asks.

A resolver that does not answer takes tens of seconds to say so: a thread that serves all brokers would serve none for
so long because one of them has a name that cannot be looked up.
"""

import logging
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final, NamedTuple

CLOSING_S: Final = 0.5
"""How long a client's end waits for the system's resolver, which mostly answers much sooner."""

log = logging.getLogger(__name__)


class Address(NamedTuple):
    """Where a socket connects to, as `getaddrinfo` has it."""

    family: int
    sockaddr: Any


class Lookup(NamedTuple):
    """What came of looking up a host: its addresses, or why there are none."""

    host: str
    port: int
    addresses: list[Address]
    failure: OSError | None


def numeric_addresses(host: str, port: int) -> list[Address]:
    """The address that `host` is, or none when it is a name. Never waits."""
    try:
        return _look_up(host, port, socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return []


class Resolver:
    """Looks names up, each on a thread of its own that ends with it; one that is being looked up is not begun again.

    Threads: all by the client's owner, whose `_going_on` and `_threads` are; `_found` is filled by the lookups' threads
    (a deque's append is atomic). A lookup cannot be broken off: one that outlasts the wait of `close` ends by itself,
    as a daemon, when the system's resolver gives up, and its result is dropped.
    """

    __slots__ = ("_found", "_going_on", "_on_found", "_threads")

    def __init__(self, on_found: Callable[[], None]) -> None:
        """`on_found` is called on a lookup's thread when there is something for `finished`."""
        self._on_found: Final = on_found
        self._found: Final[deque[Lookup]] = deque()
        self._going_on: Final[set[tuple[str, int]]] = set()
        self._threads: list[threading.Thread] = []
        """Those that may not have ended."""

    def look_up(self, host: str, port: int) -> None:
        """Begin, unless it has begun; the result comes by `finished`."""
        if (host, port) in self._going_on:
            return
        self._going_on.add((host, port))
        thread = threading.Thread(target=self._run, args=(host, port), name=f"lookup-{host}", daemon=True)
        try:
            thread.start()
        except RuntimeError as failure:
            self._end(Lookup(host, port, [], OSError(str(failure))))
            return
        self._threads = [*filter(threading.Thread.is_alive, self._threads), thread]

    def finished(self) -> list[Lookup]:
        """The lookups that have ended since the last call."""
        found = self._found
        if not found:
            return []
        ended = [found.popleft() for _ in range(len(found))]
        self._going_on.difference_update((each.host, each.port) for each in ended)
        return ended

    def close(self) -> None:
        """Wait for the lookups that are going on, for CLOSING_S at most; nothing is asked of this after."""
        deadline = time.monotonic() + CLOSING_S
        for thread in self._threads:
            thread.join(max(deadline - time.monotonic(), 0.0))
            if thread.is_alive():
                log.info("a lookup goes on that nobody waits for any more thread='%s'", thread.name)

    def _run(self, host: str, port: int) -> None:
        try:
            lookup = Lookup(host, port, _look_up(host, port, 0), None)
        except OSError as failure:
            lookup = Lookup(host, port, [], failure)
        except UnicodeError as failure:
            lookup = Lookup(host, port, [], OSError(f"no name of a host: {failure}"))
        self._end(lookup)

    def _end(self, lookup: Lookup) -> None:
        self._found.append(lookup)
        self._on_found()


def _look_up(host: str, port: int, flags: int) -> list[Address]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP, flags=flags)
    return [Address(family, sockaddr) for family, _, _, _, sockaddr in found]
