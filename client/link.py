"""A node's socket: bytes of a `Connection` in and out, and no thought of their meaning."""

import enum
import errno
import os
import socket
from collections.abc import Iterator
from typing import Final

from kavka.client.connection import Connection
from kavka.client.counts import ClientCounts
from kavka.client.node import Node
from kavka.client.reconnecting import Reconnecting
from kavka.client.resolver import Address
from kavka.client.settings import ClientSettings
from kavka.protocol.framing import Arena
from kavka.protocol.schema import Buffer

READ_AT_ONCE_BYTES: Final = 1024 * 1024
"""A node that sends without end is left after this, for others to have their turn."""
IOV_MAX: Final = 64


class Stage(enum.Enum):
    """How far a link is.

    IDLE: nothing goes on; `ready` begins, once the back-off is over. RESOLVING: the host's name is looked up.
    CONNECTING: the socket's own connecting. NEGOTIATING: the broker is asked for its versions. OPEN: requests go out.
    Whatever goes wrong in any of them leads to IDLE.
    """

    IDLE = "idle"
    RESOLVING = "resolving"
    CONNECTING = "connecting"
    NEGOTIATING = "negotiating"
    OPEN = "open"


class ConnectionEndedError(Exception):
    """The peer closed its side."""


class Link:
    """What a client has of one node: its stage, its back-off, and from CONNECTING on a socket and a connection.

    Threads: the client's owner alone.
    """

    __slots__ = (
        "_connection",
        "_socket",
        "addresses",
        "ids",
        "node",
        "reconnecting",
        "setup_deadline_ms",
        "stage",
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
        self._socket: socket.socket | None = None
        self._connection: Connection | None = None

    @property
    def socket(self) -> socket.socket:
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
        return self.stage is Stage.OPEN and self.connection.takes_another

    @property
    def deadline_ms(self) -> float:
        """When the node is too late with what it has to do now."""
        if self.stage is Stage.OPEN:
            return self.connection.deadline_ms
        return self.setup_deadline_ms

    def connect(self, address: Address, connection: Connection, settings: ClientSettings) -> None:
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
        self._connection = connection
        self.stage = Stage.CONNECTING

    def connected(self) -> None:
        """The socket became writable: it is connected, or the OSError says why not."""
        code = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise OSError(code, os.strerror(code))

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

    def close(self) -> Connection | None:
        """Close the socket, if there is one; the connection that ended with it."""
        ended = self._connection
        if self._socket is not None:
            self._socket.close()
        self._socket = None
        self._connection = None
        self.stage = Stage.IDLE
        self.setup_deadline_ms = float("inf")
        self.written = True
        return ended


def _drop(parts: list[Buffer], size_bytes: int) -> None:
    """Remove what was written from the front of `parts`."""
    while parts and size_bytes >= len(parts[0]):
        size_bytes -= len(parts.pop(0))
    if size_bytes:
        parts[0] = memoryview(parts[0])[size_bytes:]
