"""Where TLS and SASL go into a connection. `client/security` implements them; loaded only where they are asked for."""

from collections.abc import Generator
from typing import Any, Protocol, TypeAlias

from kavka.client.node import Node
from kavka.protocol.schema import Buffer, Request

Exchange: TypeAlias = Generator[Request, Any, float | None]
"""Gives requests and is sent their answers; its end is success, an AuthenticationError that it raises is failure.

What it returns is how long the broker lets the session last, in ms; None or 0: without limit.
"""


class Channel(Protocol):
    """A connected socket, or what stands before one: the part of a socket's ways that a `Link` uses.

    Each call raises BlockingIOError where it would have to wait, and any other OSError when the connection is of no use
    any more. `recv_into` gives less than there is room for only when nothing more has arrived. What was to be sent, and
    was not for lack of room, is what the next call begins with.
    """

    def fileno(self) -> int: ...

    def recv_into(self, buffer: memoryview, /) -> int: ...

    def send(self, data: Buffer, /) -> int: ...

    def sendmsg(self, buffers: list[Buffer], /) -> int: ...

    def getsockopt(self, level: int, name: int, /) -> int: ...

    def close(self) -> None: ...


class SecuredChannel(Channel, Protocol):
    """A channel whose two ends have to agree first. `recv_into` may raise AuthenticationError, too.

    It may have received what the socket does not tell of any more: who stops reading before it has to comes again.
    """

    def handshake(self) -> int:
        """Go on with it: the event of `selectors` to be waited for, or 0 once it is over.

        Raises OSError, or AuthenticationError where one end does not believe the other.
        """

    def let_go(self) -> None:
        """In a forked child: close what is below, and say nothing to the peer, whom the parent goes on to talk to."""


class Securing(Protocol):
    """Makes connections secure, each anew. Called on the client's owning thread, and must not wait."""

    def secured(self, channel: Channel, node: Node) -> SecuredChannel | None:
        """What to go on with once the socket is connected; None: as it is."""

    def authentication(self, node: Node) -> Exchange | None:
        """The exchange by which the client says who it is, after the versions are known and before anything else.

        None where it need not. Also called for connections that are open, when their sessions near their ends.
        """

    def close(self) -> None:
        """No connection is made secure after this."""
