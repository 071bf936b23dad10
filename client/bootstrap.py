"""The addresses by which a cluster is found at first, and again when all brokers that were known are gone (KIP-899)."""

import re
import socket
import threading
from collections.abc import Callable, Sequence
from typing import Final

from kavka.client.node import Node
from kavka.config.errors import ConfigError

_NAME: Final = "bootstrap.servers"
_ADDRESS: Final = re.compile(r"(?:[A-Za-z0-9_]+://)?(?:\[([0-9a-zA-Z\-%._:]+)\]|([0-9a-zA-Z\-%._]+)):([0-9]{1,5})")


def bootstrap_nodes(servers: Sequence[str], name: str = _NAME) -> tuple[Node, ...]:
    """The nodes of `host:port` addresses, with ids from -1 downwards; a name's addresses are all tried in turn.

    Raises ConfigError for an address that is none, or for no address at all.
    """
    nodes: list[Node] = []
    for server in servers:
        if not server:
            continue
        match = _ADDRESS.fullmatch(server)
        if match is None or not 0 < int(match[3]) < 65536:
            raise ConfigError(name, server, "Expected host:port, an IPv6 address in brackets")
        nodes.append(Node(-1 - len(nodes), match[1] or match[2], int(match[3])))
    if not nodes:
        raise ConfigError(name, ",".join(servers), "No bootstrap urls given")
    return tuple(nodes)


class Bootstrap:
    """Gives the nodes to begin with.

    With `canonical` each address of each name is a node of its own, by the name that it has itself
    (client.dns.lookup=resolve_canonical_bootstrap_servers_only); names are looked up anew for each `begin`.

    Threads: the client's owner; a lookup has a thread of its own, which sets `_found` and calls `on_found`.
    """

    def __init__(self, nodes: tuple[Node, ...], *, canonical: bool = False, on_found: Callable[[], None]) -> None:
        self._given: Final = nodes
        self._on_found: Final = on_found
        self._canonical: Final = canonical
        self._found: tuple[Node, ...] | None = None if canonical else nodes
        self._is_looking = False

    def begin(self) -> None:
        """From the start again: the addresses may be others by now."""
        if self._canonical:
            self._found = None

    def nodes(self) -> tuple[Node, ...]:
        """The nodes; none while canonical names are looked up."""
        found = self._found
        if found is None:
            if not self._is_looking:
                # By itself: of a thread that cannot be started another one is to be had by the next call.
                looking = threading.Thread(target=self._look_up, name="lookup-bootstrap", daemon=True)
                self._is_looking = True
                try:
                    looking.start()
                except RuntimeError:
                    self._is_looking = False
                    raise
            return ()
        return found

    def _look_up(self) -> None:
        try:
            found = [pair for node in self._given for pair in _canonical_names(node)]
            distinct = list(dict.fromkeys(found))
            self._found = tuple(Node(-1 - i, host, port) for i, (host, port) in enumerate(distinct))
        finally:
            self._is_looking = False
            self._on_found()


def _canonical_names(node: Node) -> list[tuple[str, int]]:
    """Each address's own name; the name that was given, where there is none to be found."""
    try:
        found = socket.getaddrinfo(node.host, node.port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
        return [(socket.getnameinfo(each[4], socket.NI_NUMERICSERV)[0], node.port) for each in found]
    except (OSError, UnicodeError):
        return [(node.host, node.port)]
