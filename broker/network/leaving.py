"""What becomes of a connection whose client leaves: `HangUps` tells of it. The owning network thread."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kavka.broker.network.connection import Connection, Owner


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
