"""Clients that leave: heard of at once, and whatever their connections are doing.

The loop's own watch is not enough. A connection that is not read has none, and libuv gives up watching a descriptor
when an error comes together with data: a reset right behind a request would never be noticed, and the connection would
stay for good. So each connection is in an epoll of its own kind too, which tells once of each such change, and which
the loop watches like a socket: connections that are well cost nothing.
"""

import select
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kavka.broker.network.connection import Connection, Owner

EVENTS: Final = select.EPOLLRDHUP | select.EPOLLET
"""EPOLLHUP and EPOLLERR, a reset, are always told of."""


class HangUps:
    """The connections of one network thread whose clients have not left yet.

    Threads: that one alone; it is made before and closed after it.
    """

    def __init__(self, on_end: "Callable[[Connection], None]", on_reset: "Callable[[Connection], None]") -> None:
        """`on_end`: the client sends no more, but there may be more to read, and it may take answers. `on_reset`: it
        does neither. Raises OSError."""
        self._on_end = on_end
        self._on_reset = on_reset
        self._epoll = select.epoll()
        self._connections: dict[int, Connection] = {}

    def fileno(self) -> int:
        """A descriptor that is readable when `look` has something to tell."""
        return self._epoll.fileno()

    def watch(self, connection: "Connection") -> None:
        """Tell of this client, also if it has left already. Raises OSError."""
        file_descriptor = connection.socket.fileno()
        self._epoll.register(file_descriptor, EVENTS)
        self._connections[file_descriptor] = connection

    def forget(self, connection: "Connection") -> None:
        """The connection's socket is about to be closed.

        The kernel would forget it by that alone, but not while a forked child has the socket too: what becomes of it
        would be told of the next connection with that number.
        """
        file_descriptor = connection.socket.fileno()
        if self._connections.pop(file_descriptor, None) is not None:
            self._epoll.unregister(file_descriptor)

    def look(self) -> None:
        """Tell of those that have left since the last look."""
        for file_descriptor, events in self._epoll.poll(0):
            connection = self._connections.get(file_descriptor)
            if connection is None:
                # Closed by what was told of another one just now.
                continue
            if events & (select.EPOLLHUP | select.EPOLLERR):
                self._on_reset(connection)
            else:
                self._on_end(connection)

    def close(self) -> None:
        """Give the descriptor back."""
        self._epoll.close()


def client_ended(connection: "Connection") -> None:
    """The client sends no more. What it sent runs, and then the end is read; it may have left for good, though."""
    connection.half_closed = True
    connection.hurry()


def client_reset(thread: "Owner", connection: "Connection") -> None:
    """Nobody takes answers any more. What the client sent before runs, as in Kafka: acks=0 needs no answers."""
    connection.is_reset = True
    client_ended(connection)
    if connection.congested:
        thread.close_connection(connection)
    elif connection.reading:
        read_out(connection)
    else:
        thread.resume(connection)


def read_out(connection: "Connection") -> None:
    """Read on until the end, or until reading pauses: the loop may watch a connection no more that was reset."""
    while connection.reading and not connection.closed:
        connection.on_readable(connection)
