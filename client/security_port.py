"""Where TLS and SASL go into a connection. Nothing here implements them: clients refuse any protocol but PLAINTEXT."""

from collections.abc import Generator
from typing import Any, Protocol, TypeAlias

from kavka.client.node import Node
from kavka.protocol.schema import Buffer, Request

Exchange: TypeAlias = Generator[Request, Any, None]
"""Gives requests and is sent their answers; its end is success, an AuthenticationError that it raises is failure."""


class Channel(Protocol):
    """A connected socket, or what stands before one: the part of a socket's ways that a `Link` uses.

    Each call raises BlockingIOError where it would have to wait, and any other OSError when the connection is of no use
    any more. `recv_into` gives less than there is room for only when nothing more has arrived.
    """

    def fileno(self) -> int: ...

    def recv_into(self, buffer: memoryview, /) -> int: ...

    def send(self, data: Buffer, /) -> int: ...

    def sendmsg(self, buffers: list[Buffer], /) -> int: ...

    def getsockopt(self, level: int, name: int, /) -> int: ...

    def close(self) -> None: ...


class Securing(Protocol):
    """Makes connections secure, each anew. Called on the client's owning thread, and must not wait."""

    def secured(self, channel: Channel, node: Node) -> Channel:
        """What to go on with once the socket is connected: encrypts, where it is to be encrypted."""

    def authentication(self, node: Node) -> Exchange:
        """The exchange by which the client says who it is, after the versions are known and before anything else."""
