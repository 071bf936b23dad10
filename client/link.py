"""A node's socket: bytes of a `Connection` in and out, and no thought of their meaning."""

import enum
import errno
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kavka.client.call import Call
from kavka.client.connection import Connection
from kavka.client.counts import ClientCounts
from kavka.client.dice import DICE
from kavka.client.node import Node, NodeKey
from kavka.client.reconnecting import Reconnecting
from kavka.client.resolver import Address
from kavka.client.security_port import Channel, Exchange, SecuredChannel, Securing
from kavka.client.settings import ClientSettings
from kavka.protocol.buffer_pool import BufferPool
from kavka.protocol.framing import Arena
from kavka.protocol.schema import Buffer

READ_AT_ONCE_BYTES: Final = 1024 * 1024
"""A node that sends without end is left after this, for others to have their turn."""
IOV_MAX: Final = 64
REAUTHENTICATED_AFTER: Final = (0.85, 0.95)
"""From which to which share of a session's time a connection is authenticated anew, as Kafka's client does it."""


class Stage(enum.Enum):
    """How far a link is.

    IDLE: nothing goes on; `ready` begins, once the back-off is over. RESOLVING: the host's name is looked up.
    CONNECTING: the socket's own connecting. SECURING: both sides agree on keys, where there is TLS. NEGOTIATING: the
    broker is asked for its versions. AUTHENTICATING: the client says who it is, where it has to. OPEN: requests go out.
    Whatever goes wrong in any of them leads to IDLE.
    """

    IDLE = "idle"
    RESOLVING = "resolving"
    CONNECTING = "connecting"
    SECURING = "securing"
    NEGOTIATING = "negotiating"
    AUTHENTICATING = "authenticating"
    OPEN = "open"


class ConnectionEndedError(Exception):
    """The peer closed its side."""


class Link:
    """What a client has of one node: its stage, its back-off, and from CONNECTING on a socket and a connection.

    Threads: the client's owner alone.
    """

    __slots__ = (
        "_connection",
        "_secured",
        "_socket",
        "addresses",
        "exchange",
        "exchange_began_ms",
        "ids",
        "is_held",
        "is_stale",
        "is_throttled",
        "node",
        "reauthenticate_ms",
        "reconnecting",
        "setup_deadline_ms",
        "stage",
        "step",
        "throttled_until_ms",
        "unanswered",
        "used_ms",
        "written",
    )

    def __init__(self, node: Node, settings: ClientSettings, ids: Iterator[int]) -> None:
        self.node = node
        self.ids: Final = ids
        """Of requests, on over connections as in Kafka's client: a broker can tell which of two was sent first. The
        node's own: with others' they would begin again below after some weeks, and what came then would look late."""
        self.stage = Stage.IDLE
        self.addresses: list[Address] = []
        """Those of the last lookup that have not been tried."""
        self.reconnecting = Reconnecting(settings)
        self.setup_deadline_ms = float("inf")
        self.written = True
        """Whether the socket has taken all there was."""
        self.unanswered: Call | None = None
        """What is being written and will not be answered."""
        self.used_ms = 0.0
        """When the last request was sent, or the connection opened."""
        self.is_throttled = False
        self.throttled_until_ms = 0.0
        self.exchange: Exchange | None = None
        """While AUTHENTICATING, and while an open connection does it again."""
        self.exchange_began_ms = 0.0
        self.step: Call | None = None
        """The exchange's request that is on its way."""
        self.reauthenticate_ms = float("inf")
        """When the session nears its end (KIP-368)."""
        self.is_stale = False
        """Whether it does: the client has to say who it is before anything else is sent."""
        self.is_held = False
        """Whether reading ended before there was nothing more, where the socket may not tell of the rest."""
        self._socket: Channel | None = None
        self._secured: SecuredChannel | None = None
        """What stands before the socket, and is `_socket` then."""
        self._connection: Connection | None = None

    @property
    def socket(self) -> Channel:
        """Only from CONNECTING on."""
        assert self._socket is not None
        return self._socket

    @property
    def connection(self) -> Connection:
        """Only from CONNECTING on."""
        assert self._connection is not None
        return self._connection

    @property
    def has_socket(self) -> bool:
        return self._socket is not None

    @property
    def takes_another(self) -> bool:
        """Whether a request may be sent now."""
        connection = self._connection
        return (
            connection is not None
            and self.stage is Stage.OPEN
            and not self.is_throttled
            and not self.is_stale
            and connection.takes_another
        )

    @property
    def deadline_ms(self) -> float:
        """When the node is too late with what it has to do now."""
        connection = self._connection
        if connection is None or self.stage is not Stage.OPEN:
            return self.setup_deadline_ms
        if self.unanswered is not None:
            return min(self.unanswered.deadline_ms, connection.deadline_ms)
        return connection.deadline_ms

    def connect(self, address: Address, settings: ClientSettings, pool: BufferPool) -> None:
        """Begin to connect. Raises OSError; then nothing is left open."""
        opened = socket.socket(address.family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            opened.setblocking(False)
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if settings.send_buffer_bytes >= 0:
                opened.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, settings.send_buffer_bytes)
            if settings.receive_buffer_bytes >= 0:
                opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, settings.receive_buffer_bytes)
            code = opened.connect_ex(address.sockaddr)
            if code not in (0, errno.EINPROGRESS):
                raise OSError(code, os.strerror(code))
        except BaseException:
            opened.close()
            raise
        self._socket = opened
        self._connection = Connection(
            client_id=settings.client_id,
            max_in_flight=settings.max_in_flight,
            max_answer_bytes=settings.max_answer_bytes,
            discover_versions=settings.discover_versions,
            pool=pool,
            ids=self.ids,
        )
        self.stage = Stage.CONNECTING

    def connected(self, security: Securing | None) -> None:
        """The socket became writable: it is connected, or the OSError says why not."""
        code = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise OSError(code, os.strerror(code))
        self._secured = None if security is None else security.secured(self.socket, self.node)
        if self._secured is not None:
            self._socket = self._secured
            self.stage = Stage.SECURING

    def handshake(self) -> int:
        """Go on with it: what event of the socket's has to be waited for, 0 once it is over, or where there is none.

        Raises OSError, or the AuthenticationError of a peer that is not the one it should be.
        """
        return 0 if self._secured is None else self._secured.handshake()

    def authenticated(self, security: Securing | None, answer: Any, now_ms: float, deadline_ms: float) -> bool:
        """One step of the exchange, by the last step's answer. Whether it is over. Raises AuthenticationError."""
        if self.exchange is None:
            self.exchange = None if security is None else security.authentication(self.node)
            self.exchange_began_ms = now_ms
            if self.exchange is None:
                return True
            if self.stage is not Stage.OPEN:
                self.stage = Stage.AUTHENTICATING
        try:
            request = self.exchange.send(answer)
        except StopIteration as end:
            self.exchange = self.step = None
            self.is_stale = False
            # Not all of a client's connections at once, and before the broker's clock and the network say it is late.
            share = DICE.uniform(*REAUTHENTICATED_AFTER)
            self.reauthenticate_ms = now_ms + end.value * share if end.value else float("inf")
            return True
        self.step = Call(request, _nobody, deadline_ms=deadline_ms)
        self.connection.request(self.step)
        return False

    def write(self, counts: ClientCounts) -> None:
        """Write what the socket takes; `written` says whether that is all. Raises OSError."""
        unsent = self.connection.unsent
        self.written = False
        while unsent:
            try:
                sent = self.socket.send(unsent[0]) if len(unsent) == 1 else self.socket.sendmsg(unsent[:IOV_MAX])
            except BlockingIOError:
                return
            counts.sent_bytes += sent
            _drop(unsent, sent)
        self.written = True

    def frames(self, arena: Arena, counts: ClientCounts) -> Iterator[memoryview]:
        """The frames that have come, as far as they are whole.

        Raises OSError, ConnectionEndedError, or the DecodeError of a lying size; what came before is given first.
        """
        left = READ_AT_ONCE_BYTES
        reader = self.connection.reader
        self.is_held = False
        while left > 0:
            space = arena.space() if reader.buffer is None else reader.own_space()
            try:
                size = self.socket.recv_into(space)
            except BlockingIOError:
                return
            if size == 0:
                raise ConnectionEndedError
            left -= size
            counts.received_bytes += size
            if reader.buffer is None:
                arena.keep(size)
                yield from reader.arrived(space[:size])
            else:
                frame = reader.arrived_own(size)
                if frame is not None:
                    yield frame
            if reader.failure is not None:
                raise reader.failure
            if size < len(space):
                return
        self.is_held = self._secured is not None

    def let_go(self) -> None:
        """In a forked child: close its copy of the socket, whose other end must not hear of it."""
        if self._secured is not None:
            self._secured.let_go()
        elif self._socket is not None:
            self._socket.close()

    def close(self) -> Connection | None:
        """Close the socket, if there is one; the connection that ended with it."""
        ended = self._connection
        if self._socket is not None:
            self._socket.close()
        self._socket = self._secured = None
        self._connection = None
        self.exchange = self.step = None
        self.reauthenticate_ms = float("inf")
        self.is_stale = self.is_held = False
        self.unanswered = None
        self.is_throttled = False
        self.throttled_until_ms = 0.0
        self.stage = Stage.IDLE
        self.setup_deadline_ms = float("inf")
        self.written = True
        return ended


def _nobody(_answer: Any) -> None:
    """An exchange's answers are its own."""


def _drop(parts: list[Buffer], size_bytes: int) -> None:
    """Remove what was written from the front of `parts`."""
    while parts and size_bytes >= len(parts[0]):
        size_bytes -= len(parts.pop(0))
    if size_bytes:
        parts[0] = memoryview(parts[0])[size_bytes:]


def least_loaded_of(links: Mapping[NodeKey, Link], nodes: Sequence[Node], now_ms: float) -> Node | None:
    """See `NetworkClient.least_loaded`."""
    best: tuple[tuple[int, float], Node] | None = None
    for node in DICE.sample(nodes, len(nodes)):
        rank = _rank(links.get(node.key), now_ms)
        if rank is not None and (best is None or rank < best[0]):
            best = rank, node
    return best[1] if best is not None else None


def _rank(link: Link | None, now_ms: float) -> tuple[int, float] | None:
    """The lower, the rather is a node asked; None for one that is not to be asked now."""
    if link is None:
        return 2, 0.0
    if link.takes_another:
        return 0, link.connection.in_flight
    if link.stage is Stage.OPEN and not link.is_stale:
        # Full.
        return None
    if link.stage is not Stage.IDLE:
        return 1, 0.0
    return (2, link.reconnecting.not_before_ms) if now_ms >= link.reconnecting.not_before_ms else None
