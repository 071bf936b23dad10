"""How a listener's connections are carried: the network's view of security. Nothing here implements TLS."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

from kavka.broker.network.connection import Connection

if TYPE_CHECKING:
    from kavka.broker.network.handshakes import Handshakes


class Transport(NamedTuple):
    """A listener's."""

    security_protocol: str
    """Kafka's name of it, as in `listener.security.protocol.map`."""
    new_connection: Callable[..., Connection]
    """Makes the connection of a client; called as `Connection` is. The network thread."""
    handshakes: "Handshakes | None" = None
    """Who does what costs much when TLS begins; None without TLS."""


def _refuse(*_: Any, **__: Any) -> NoReturn:
    raise ConnectionAbortedError("its listener is closed")


PLAINTEXT: Final = Transport("PLAINTEXT", Connection)
CLOSED: Final = Transport("CLOSED", _refuse)
"""Of a listener that is not known, or any more: nobody is to come in by it without what it asked for."""


def plaintext(listener_name: str) -> Transport:
    """For network threads whose listeners have nothing else."""
    return PLAINTEXT
