"""Reading connections with TLS: handshakes first, then requests, decrypted where they would have been received.

What has come and is not decrypted, because reading paused in the middle, lies in the connection and not in the socket:
`NetworkThread.resume` has it read on. Garbage, and clients that speak something else, are told of in one line.
"""

import logging
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from kavka.broker.network.tls_connection import PIECE_BYTES, Stage, TlsConnection
from kavka.protocol.errors import DecodeError
from kavka.protocol.framing import what_speaks

if TYPE_CHECKING:
    from kavka.broker.metrics.registry import ThreadCells
    from kavka.broker.network.connection import Connection
    from kavka.broker.network.handshakes import Handshakes
    from kavka.protocol.framing import Arena

READ_BUDGET_BYTES: Final = 512 * 1024
"""Half of a plaintext connection's: decrypting takes its time."""
TURN_NS: Final = 10_000_000
"""Nor is a connection read for longer, before others have their turn: new keys in each record cost a hundred times what
they weigh."""
HANDSHAKE_RECORD: Final = 0x16
PARTING_S: Final = 1.0
"""How long a refused client may take to read why."""
FIRST_BYTES: Final = 4
SUCCEEDED: Final = "kavka_tls_handshakes"
FAILED: Final = "kavka_tls_failed_handshakes"

log = logging.getLogger(__name__)


class ReadingThread(Protocol):
    """The network thread, as reading with TLS knows it. All but `call` on that thread."""

    arena: "Arena"
    cells: "ThreadCells"

    def call(self, function: Callable[..., object], *arguments: Any) -> None: ...

    def call_later(self, delay_s: float, function: Callable[..., object], *arguments: Any) -> object: ...

    def submit(self, connection: "Connection", frames: Sequence[memoryview], now_ns: int) -> None: ...

    def has_memory(self, connection: "Connection") -> bool: ...

    def pause(self, connection: "Connection") -> None: ...

    def end(self, connection: "Connection") -> None: ...

    def resume(self, connection: "Connection") -> None: ...

    def close_connection(self, connection: "Connection") -> None: ...


class TlsReading:
    """One network thread's. Threads: that one alone, but `_step`, which a handshake thread runs."""

    def __init__(
        self,
        thread: ReadingThread,
        handshakes: "Handshakes",
        on_rejected: Callable[["Connection", str], None],
        count: Callable[[str], None],
    ) -> None:
        self._thread: Final = thread
        self._handshakes: Final = handshakes
        self._on_rejected: Final = on_rejected
        self._count: Final = count
        self._piece: Final = memoryview(bytearray(PIECE_BYTES))

    def on_readable(self, connection: TlsConnection) -> None:
        """The socket has something, or what came before is to be read on."""
        if connection.closed:
            # Reading on was asked for, and then it was closed: what is left of it is nobody's.
            return
        started_ns = time.monotonic_ns()
        try:
            if connection.stage is Stage.OPEN:
                self._read(connection, started_ns)
            elif connection.stage is Stage.REFUSED:
                self._read_away(connection)
            elif connection.stage is not Stage.STEPPING:
                self._shake_hands(connection, started_ns)
        except DecodeError as failure:
            self._on_rejected(connection, str(failure))
            self._thread.end(connection)
        except OSError as failure:
            self._broke(connection, failure)
        except Exception:
            log.exception("reading failed peer=%s:%d", connection.peer_host, connection.peer_port)
            self._thread.close_connection(connection)
        self._thread.cells.busy_ns += time.monotonic_ns() - started_ns

    def _shake_hands(self, connection: TlsConnection, now_ns: int) -> None:
        try:
            size = connection.socket.recv_into(self._piece)
        except BlockingIOError:
            if connection.is_reset:
                # The error was told to a writer: there is no end to be read.
                self._thread.close_connection(connection)
            return
        if not size:
            log.debug("client left in its handshake peer=%s:%d", connection.peer_host, connection.peer_port)
            self._thread.close_connection(connection)
            return
        if connection.stage is Stage.SILENT and self._piece[0] != HANDSHAKE_RECORD:
            spoken = what_speaks(bytes(self._piece[: min(size, FIRST_BYTES)])) or "something else"
            if not self._piece[0]:
                # The size of a request: none of those that come first has 16 MiB.
                spoken = "Kafka's protocol without it"
            self._on_rejected(connection, f"this listener is for TLS, and the client speaks {spoken}")
            self._count(FAILED)
            connection.secured.refused()
            self._thread.close_connection(connection)
            return
        connection.last_active_ns = now_ns
        connection.feed(self._piece[:size])
        connection.stage = Stage.STEPPING
        self._thread.pause(connection)
        self._handshakes.take(connection.listener_name, partial(self._step, connection))

    def _step(self, connection: TlsConnection) -> None:
        if connection.closed:
            # It left, or had to, while others had their turns.
            return
        connection.take_step()
        self._thread.call(self._stepped, connection)

    def _stepped(self, connection: TlsConnection) -> None:
        """A step is done: send what it says, and go on."""
        if connection.closed:
            return
        connection.stage = Stage.SHAKING
        connection.say()
        if connection.failure is not None:
            self._refuse(connection, connection.failure)
        elif connection.has_finished:
            self._count(SUCCEEDED)
            connection.secured.authenticated()
            _acknowledge(connection)
            connection.open()
            connection.session.handshaken(connection.peer)
        self._thread.resume(connection)

    def _refuse(self, connection: TlsConnection, failure: Exception) -> None:
        """Close, but let the client read first why: while it has sent more than was read the system would reset it."""
        self._count(FAILED)
        connection.secured.refused()
        log.info(
            "failed authentication peer=%s:%d listener=%s reason=%r",
            connection.peer_host,
            connection.peer_port,
            connection.listener_name,
            getattr(failure, "reason", None) or str(failure),
        )
        connection.stage = Stage.REFUSED
        with suppress(OSError):
            connection.socket.shutdown(socket.SHUT_WR)
        self._thread.call_later(PARTING_S, self._thread.close_connection, connection)

    def _read_away(self, connection: TlsConnection) -> None:
        """What a refused client still sends, until it has gone."""
        try:
            if connection.socket.recv_into(self._piece):
                return
        except BlockingIOError:
            if not connection.is_reset:
                return
        self._thread.close_connection(connection)

    def _broke(self, connection: TlsConnection, failure: OSError) -> None:
        log.debug("connection broke peer=%s:%d error=%r", connection.peer_host, connection.peer_port, str(failure))
        if connection.stage is not Stage.OPEN:
            self._thread.close_connection(connection)
            return
        # The alert, by which an honest client learns what is wrong with what it sent.
        connection.say()
        connection.is_reset = True
        self._thread.end(connection)

    def _read(self, connection: TlsConnection, now_ns: int) -> None:
        """Receive and decrypt until the socket is empty or the budget is spent, and hand on every whole frame."""
        if connection.has_unread and not self._decrypt(connection, now_ns):
            return
        budget = READ_BUDGET_BYTES
        ends_ns = now_ns + TURN_NS
        while budget > 0 and now_ns < ends_ns:
            try:
                size = connection.socket.recv_into(self._piece)
            except BlockingIOError:
                if connection.is_reset:
                    # The error was told to a writer: there is no end to be read.
                    self._thread.end(connection)
                return
            if size == 0:
                self._thread.end(connection)
                return
            budget -= size
            connection.feed(self._piece[:size])
            if not self._decrypt(connection, now_ns) or size < PIECE_BYTES:
                return
            now_ns = time.monotonic_ns()

    def _decrypt(self, connection: TlsConnection, now_ns: int) -> bool:
        """Hand on what lies in the connection, as far as it may be read; False if there is more, or nothing comes."""
        reader, arena = connection.reader, self._thread.arena
        while True:
            own = reader.buffer is not None
            space = reader.own_space() if own else arena.space()
            size = connection.decrypt(space)
            if connection.has_to_say:
                # Whether or not there was something to read: a client may be owed an alert for each byte that it sends.
                connection.say()
            if size is None:
                return True
            if size == 0:
                self._thread.end(connection)
                return False
            if own:
                # The buffer may grow only while no view of it is alive.
                del space
                frame = reader.arrived_own(size)
                frames: Sequence[memoryview] = [frame] if frame is not None else ()
            else:
                frames = reader.arrived(space[:size])
                if frames:
                    arena.keep(size)
            connection.last_active_ns = now_ns
            if frames:
                self._thread.submit(connection, frames, now_ns)
            if reader.failure is not None:
                raise reader.failure
            if reader.buffer is not None and not self._thread.has_memory(connection):
                return False
            if not connection.reading:
                return False
            if not connection.has_unread:
                return True


def _acknowledge(connection: TlsConnection) -> None:
    """Say at once that the handshake's last bytes have come: there is no answer to them that would say it.

    Else a client that leaves Nagle's algorithm on, as librdkafka does, holds its first request back for 40 ms.
    """
    with suppress(OSError):
        connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
