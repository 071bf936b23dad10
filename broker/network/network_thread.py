"""A network thread: a uvloop loop that reads its connections' requests and drains what I/O threads could not write."""

import logging
import socket
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kavka.broker.network.connection import (
    MAX_PENDING_BYTES,
    MAX_UNANSWERED,
    MAX_UNSENT_BYTES,
    ClientSession,
    Connection,
)
from kavka.broker.network.departure import Departure, came_to, is_owed_nothing
from kavka.broker.network.expiry import Expiry
from kavka.broker.network.hang_ups import HangUps, client_ended, client_reset, read_out
from kavka.broker.network.loop_thread import LoopThread
from kavka.broker.network.settings import NetworkSettings
from kavka.broker.network.transports import PLAINTEXT, Transport, plaintext
from kavka.protocol.buffer_pool import BufferPool
from kavka.protocol.errors import DecodeError
from kavka.protocol.framing import BUFFERS_KEPT_BYTES, Arena, apart

if TYPE_CHECKING:
    from kavka.broker.metrics.registry import Metrics, ThreadCells
    from kavka.broker.network.authentication import Authentications
    from kavka.broker.network.limits import ConnectionLimits
    from kavka.broker.network.request_queue import RequestQueue
    from kavka.broker.network.tls_reading import TlsReading

READ_BUDGET_BYTES: Final = 1024 * 1024

RunInline = Callable[[Connection, int, "ThreadCells"], None]
"""Runs the leading requests that need no I/O thread, and hands on what is left.

Given the connection, whose `running` the caller holds and gives away, and when its requests were received (ns). Here
`InlineRequests.run`, of broker/requests/request_runner.py; `SocketServer` makes one for each thread.
"""

log = logging.getLogger(__name__)


class NetworkThread(LoopThread):
    """Owns a loop and the connections dealt to it. Started by `start`, joined by `stop`.

    Threads: everything runs on the loop's thread but `call`, `adopt`, `answered`, `waiting_count`, `start` and `stop`.
    `_gate` guards `_stopped`.
    """

    def __init__(
        self,
        index: int,
        queue: "RequestQueue",
        settings: NetworkSettings,
        limits: "ConnectionLimits",
        run_inline: "RunInline",
        new_session: Callable[[str], ClientSession],
        metrics: "Metrics",
        on_answered: "Callable[[list[Any]], None]",
        on_rejected: Callable[[Connection, str], None],
        on_death: Callable[[BaseException], None],
        plane: str = "",
        transport_of: Callable[[str], Transport] = plaintext,
    ) -> None:
        super().__init__(f"{plane}network-{index}", on_death)
        self.index: Final = index
        self._queue = queue
        self.settings = settings
        self._limits = limits
        self._run_inline = run_inline
        self._new_session = new_session
        self._metrics = metrics
        self.answered: Final = on_answered
        """`RequestLog.answered`, of the one that `broker/server.py` makes."""
        self.defer: Final = queue.defer
        self.wake: Final = queue.wake
        self.go_on: Final = queue.go_on
        self._on_rejected = on_rejected
        self._gate = threading.Lock()
        self._stopped = False
        self.arena = Arena()
        self.buffers = BufferPool(BUFFERS_KEPT_BYTES)
        self.connections: dict[int, Connection] = {}
        try:
            self._hang_ups = HangUps(client_ended, partial(client_reset, self))
        except OSError:
            # Nobody will stop a thread that was never made.
            self._loop.close()
            raise
        self._departure = Departure(self.pause, self._close_or_log, self.call_later)
        self._expiry = Expiry(self.connections, lambda: self.settings.max_idle_ms, self._close_or_log, self.call_later)
        self._transport_of = transport_of
        self._authentications: Authentications | None = None
        self._tls: TlsReading | None = None
        self._next_id = 0

    @property
    def waiting_count(self) -> int:
        """How many requests of its connections have been read and not been run. Any thread."""
        return sum([len(connection.pending) for connection in list(self.connections.values())])

    def retire(self) -> None:
        """Take no more connections, let those there are go with their answers, and end. `stop` it later. Any thread."""
        with self._gate:
            self._stopped = True
        self.call(self._retire)

    def stop(self) -> None:
        """Close all connections, those not yet taken too, stop the loop and join the thread."""
        with self._gate:
            self._stopped = True
        if self._thread.is_alive():
            self.call(self._shut_down)
            self._thread.join()
        # What a thread that died has left.
        self.close_all()
        self._loop.close()
        self._hang_ups.close()

    def adopt(self, client: socket.socket, peer_host: str, listener_name: str) -> None:
        """Take a freshly accepted, non-blocking socket, which `ConnectionLimits` has admitted. Any thread."""
        with self._gate:
            if not self._stopped:
                self.call(self._register, client, peer_host, listener_name)
                return
        # The acceptor chose this thread just before it was to go.
        client.close()
        self._limits.released(listener_name, peer_host)

    def close_connection(self, connection: Connection) -> None:
        """Close a connection and forget it."""
        if self.connections.pop(connection.id, None) is None:
            return
        self._hang_ups.forget(connection)
        file_descriptor = connection.socket.fileno()
        self._loop.remove_reader(file_descriptor)
        self._loop.remove_writer(file_descriptor)
        connection.close_socket()
        self._queue.forget_charge(connection)
        self._drop_pending(connection)
        self._limits.released(connection.listener_name, connection.peer_host)

    def finish(self, connection: Connection) -> None:
        """Close a connection when it has its answers, and run nothing more. Whoever ran it has stopped for that."""
        if not connection.closed:
            self._drop_pending(connection)
            connection.running.release()
            self.end(connection)

    def close_listener(self, name: str, host: str, port: int) -> None:
        """Close the connections that came to an address that is no more, each when it has its answers."""
        came = [each for each in self.connections.values() if came_to(each, name, host, port)]
        self._departure.let_go(came, lambda: None)

    def stop_reading(self) -> None:
        """Take no further requests from any connection: the broker stops."""
        for connection in self.connections.values():
            self.pause(connection)
            connection.closing = True

    def watch_writable(self, connection: Connection) -> None:
        """The socket was full: drain as it empties."""
        if not connection.closed:
            self._loop.add_writer(connection.socket.fileno(), self._on_writable, connection)

    def resume(self, connection: Connection) -> None:
        """Read again if no reason to pause is left, or close what ended and is answered. Who ends a reason calls it."""
        if connection.reading or connection.closed or connection.closing:
            return
        if connection.ended:
            if is_owed_nothing(connection):
                self.close_connection(connection)
            return
        if connection.congested or not connection.may_read_on or not self._queue.has_room_for(connection):
            return
        if connection.reader.buffer is not None and not self.has_memory(connection):
            return
        connection.reading = True
        self._loop.add_reader(connection.socket.fileno(), connection.on_readable, connection)
        if connection.is_reset:
            read_out(connection)
        elif connection.has_unread:
            self.call(connection.on_readable, connection)

    def _drop_pending(self, connection: Connection) -> None:
        self._queue.release(connection.drop_pending())

    def _begin(self) -> None:
        self.cells = self._metrics.enlist("network")
        self._loop.add_reader(self._hang_ups.fileno(), self._hang_ups.look)
        self._loop.call_soon(self._expiry.close_idle)

    def _shut_down(self) -> None:
        self.close_all()
        self._loop.stop()

    def close_all(self) -> None:
        """Close every connection, whatever it still has to be answered."""
        for connection in list(self.connections.values()):
            self._close_or_log(connection)

    def _close_or_log(self, connection: Connection) -> None:
        """One of several: what goes wrong with it is not to keep the others, or who waits for all of them."""
        try:
            self.close_connection(connection)
        except Exception:
            log.exception("closing failed peer=%s:%d", connection.peer_host, connection.peer_port)

    def _retire(self) -> None:
        self._departure.let_go(list(self.connections.values()), self._loop.stop)

    def _register(self, client: socket.socket, peer_host: str, listener_name: str) -> None:
        self._next_id += 1
        session = self._new_session(listener_name)
        transport = self._transport_of(listener_name)
        try:
            connection = transport.new_connection(
                client,
                self,
                connection_id=self._next_id,
                listener_name=listener_name,
                max_request_size_bytes=session.longest_frame_bytes(self.settings.max_request_size_bytes),
                session=session,
                security_protocol=transport.security_protocol,
            )
            self._hang_ups.watch(connection)
        except OSError:
            # Mostly it was reset before we got to it: there is no peer name any more.
            client.close()
            self._limits.released(listener_name, peer_host)
            return
        connection.last_active_ns = time.monotonic_ns()
        connection.on_readable = self._on_readable
        if transport is not PLAINTEXT:
            self._secure(connection, transport)
        self.connections[connection.id] = connection
        self._loop.add_reader(client.fileno(), connection.on_readable, connection)

    def _secure(self, connection: Connection, transport: Transport) -> None:
        """A client that has to say who it is, and by TLS maybe, comes first to those who see to it: few brokers do."""
        if self._authentications is None:
            from kavka.broker.network.authentication import Authentications

            self._authentications = Authentications(lambda: self.settings, self._close_or_log, self.call_later)
        self._authentications.watch(connection)
        if transport.handshakes is not None:
            if self._tls is None:
                from kavka.broker.network.tls_reading import TlsReading

                self._tls = TlsReading(self, transport.handshakes, self._on_rejected, self._metrics.count)
            connection.on_readable = self._tls.on_readable

    def _on_readable(self, connection: Connection) -> None:
        started_ns = time.monotonic_ns()
        try:
            self._read(connection, started_ns)
        except DecodeError as failure:
            self._on_rejected(connection, str(failure))
            self.end(connection)
        except OSError as failure:
            log.debug("connection broke peer=%s:%d error=%r", connection.peer_host, connection.peer_port, str(failure))
            connection.is_reset = True
            self.end(connection)
        except Exception:
            log.exception("reading failed peer=%s:%d", connection.peer_host, connection.peer_port)
            self.close_connection(connection)
        self.cells.busy_ns += time.monotonic_ns() - started_ns

    def _read(self, connection: Connection, now_ns: int) -> None:
        """Receive until the socket is empty or the budget is spent, and hand on every whole frame."""
        reader = connection.reader
        budget = READ_BUDGET_BYTES
        while budget > 0:
            own = reader.buffer is not None
            space = reader.own_space() if own else self.arena.space()
            try:
                size = connection.socket.recv_into(space)
            except BlockingIOError:
                if connection.is_reset:
                    # The error was told to a writer: there is no end to be read.
                    self.end(connection)
                return
            if size == 0:
                self.end(connection)
                return
            short = size < len(space)
            budget -= size
            if own:
                # The buffer may grow only while no view of it is alive.
                del space
                frame = reader.arrived_own(size)
                frames = [frame] if frame is not None else ()
            else:
                frames = reader.arrived(space[:size])
                if frames:
                    self.arena.keep(size)
            connection.last_active_ns = now_ns
            if frames:
                self.submit(connection, frames, now_ns)
            if reader.failure is not None:
                raise reader.failure
            if reader.buffer is not None and not self.has_memory(connection):
                return
            if not connection.reading or short:
                return
            now_ns = time.monotonic_ns()

    def has_memory(self, connection: Connection) -> bool:
        """Whether the frame that has begun may be held; if not, reading is paused until it may.

        A large frame is let in when it can run as soon as it is whole. What runs before it may wait for minutes, and
        its part of the memory pool would be missing all others meanwhile. In Kafka, too, a connection's next request is
        read only when the one before has been answered.
        """
        queue = self._queue
        size_bytes = connection.reader.partial_size_bytes
        if not queue.is_chargeable(connection, size_bytes):
            return True
        if not connection.is_at_rest:
            # Whoever ends that resumes.
            if connection.reading:
                self._pause_for_now(connection)
            return False
        if queue.charge(connection, size_bytes):
            return True
        self.pause(connection)
        queue.wait_for_memory(connection)
        return False

    def end(self, connection: Connection) -> None:
        """Nothing more can be read. What came before is run and answered first, as in Kafka."""
        connection.ended = True
        self.pause(connection)
        self.resume(connection)

    def submit(self, connection: Connection, frames: "Sequence[memoryview]", now_ns: int) -> None:
        pending = connection.pending
        answers = connection.answers
        # Only a frame with a buffer of its own is charged, and such a frame comes alone.
        charged, connection.charged_size_bytes = connection.charged_size_bytes, 0
        has_turn = connection.running.acquire(False)
        if not has_turn and any([each.waits_for_client for each in list(connection.parked)]):
            # Behind a fetch that waits, for minutes maybe; not where records are on their way.
            frames = apart(frames)
        is_at_rest = not pending
        for frame in frames:
            pending.append((frame, now_ns, charged))
            connection.received_bytes += frame.nbytes
        if has_turn and is_at_rest and not charged and answers.backlog_size_bytes < MAX_UNSENT_BYTES:
            self._run_inline(connection, now_ns, self.cells)
            if not pending:
                return
        elif has_turn or connection.running.acquire(False):
            self._queue.put(connection)
        if (
            len(pending) + len(answers.slots) >= MAX_UNANSWERED
            or answers.backlog_size_bytes + answers.held_up_size_bytes >= MAX_UNSENT_BYTES
            or connection.received_bytes - connection.taken_bytes >= MAX_PENDING_BYTES
            or (self._queue.qsize() >= self._queue.max_requests and len(pending) > 1)
            # A fetch may wait for long, and what is read behind it keeps its memory as long: one request is enough.
            or (connection.parked and pending)
        ):
            self._pause_for_now(connection)

    def _pause_for_now(self, connection: Connection) -> None:
        self.pause(connection)
        # What made it so may have gone between the look and the pause.
        self.call(self.resume, connection)

    def pause(self, connection: Connection) -> None:
        """Read no more of a connection until `resume`."""
        if connection.reading:
            connection.reading = False
            self._loop.remove_reader(connection.socket.fileno())

    def _on_writable(self, connection: Connection) -> None:
        if connection.closed:
            return
        started_ns = time.monotonic_ns()
        try:
            self._drain(connection)
        except Exception:
            # Else it would be tried again at once, and for ever.
            log.exception("writing failed peer=%s:%d", connection.peer_host, connection.peer_port)
            self.close_connection(connection)
        connection.last_active_ns = now_ns = time.monotonic_ns()
        self.cells.busy_ns += now_ns - started_ns

    def _drain(self, connection: Connection) -> None:
        if connection.drain():
            self._loop.remove_writer(connection.socket.fileno())
            if connection.answers.backlog:
                # An answer came between the drain and the removal, and its writer found the socket full.
                self.watch_writable(connection)
            self._queue.wake(connection)
            self.resume(connection)
