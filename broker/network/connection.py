"""One client's connection: requests waiting to run, answers waiting to be written, and which thread may do what.

Requests run in order, by one I/O thread at a time (`running`). Answers leave in request order, written by whoever
completes the oldest one (`write_lock`); what the socket does not take belongs to the network thread until it is
drained. Only the owning network thread closes the socket, so nobody ever writes to a reused descriptor.
"""

import logging
import socket
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

from kavka.broker.network.addresses import plain_address
from kavka.broker.network.answers import AnswerQueue, Part, Slot, release_parts
from kavka.broker.network.sending import send_parts
from kavka.protocol.framing import FrameReader, apart

if TYPE_CHECKING:
    from kavka.broker.network.peer_certificate import PeerCertificate
    from kavka.broker.waiting.purgatory import DelayedOperation
    from kavka.protocol.buffer_pool import BufferPool

MAX_UNANSWERED: Final = 256
READ_ON_BELOW: Final = 128
"""Unanswered requests: reading that has paused goes on below this."""
MAX_UNSENT_BYTES: Final = 4 * 1024 * 1024
LARGE_ANSWER_BYTES: Final = 64 * 1024
"""Answers from this size on, and those of parts, count as unsent also while they wait for others before them."""
MAX_PENDING_BYTES: Final = 2 * 1024 * 1024
"""Of requests that have been read and not been run: a connection with so many is not read on. The last frame, however
large, may exceed it. Enough that two of a producer's usual largest batches lie ready while one is written."""

log = logging.getLogger(__name__)


Received = tuple[memoryview, int, int]
"""A frame, when it was received (ns), and how much of the memory pool it was charged."""


class Owner(Protocol):
    """A network thread, as its connections know it. `call`, `defer`, `wake`, `go_on` by any thread."""

    @property
    def buffers(self) -> "BufferPool": ...

    def answered(self, slots: list[Any], /) -> None:
        """The answers of these requests were written, or handed to the thread to be written. Any thread."""

    def call(self, function: Callable[..., object], *arguments: Any) -> None:
        """Run on the thread, soon."""

    def call_later(self, delay_s: float, function: Callable[..., object], *arguments: Any) -> Any:
        """Run on the thread after that time. That thread alone."""

    def defer(
        self, connection: "Connection", work: Callable[[], None], at_end: Callable[[], None] | None = None, /
    ) -> None:
        """See `RequestQueue.defer`."""

    def wake(self, connection: "Connection", /) -> None:
        """See `RequestQueue.wake`. Any thread."""

    def go_on(self, connection: "Connection", /) -> None:
        """See `RequestQueue.go_on`. Any thread."""

    def watch_writable(self, connection: "Connection") -> None: ...

    def close_connection(self, connection: "Connection") -> None: ...

    def finish(self, connection: "Connection") -> None: ...

    def pause(self, connection: "Connection") -> None: ...

    def resume(self, connection: "Connection") -> None: ...


class ClientSession(Protocol):
    """What those who run a connection's requests keep of its client."""

    @property
    def is_authenticated(self) -> bool:
        """Whether it is known who the client is, as far as the listener asks for it."""

    def handshaken(self, peer: "PeerCertificate | None") -> None:
        """TLS is there, and the client showed this, if anything. The owning network thread, before any request."""

    def longest_frame_bytes(self, usual_bytes: int) -> int:
        """How long its first requests may be, where `usual_bytes` is what the broker takes. At the beginning."""
        ...

    def rejected(self, listener_name: str) -> None:
        """The client has sent what makes no sense, and is going to be closed for that. Any thread."""

    def end(self) -> None:
        """Keep nothing any more for requests to come: the connection is closed. The owning network thread."""


class Connection:
    """A client's socket and its state.

    Threads: `reader`, `reading` and the socket's closing belong to the owning network thread, `last_active_ns` (when
    bytes last came or went) too, but that who writes answers moves it forward: an update lost to the other is as good.
    `pending` is filled by it and emptied by the thread that holds `running`, which `session` belongs to; each counts
    its bytes, the one in `received_bytes`, the other in `taken_bytes`. `answers` and the writing side of the socket
    belong to the holder of `write_lock`. `closed` is set under `write_lock`, by the network thread or by a write that
    failed, and never taken back: from then on nothing is written, and who has an answer with pinned files unpins them.
    """

    __slots__ = (
        "answers",
        "charged_size_bytes",
        "closed",
        "closing",
        "deferred",
        "ended",
        "half_closed",
        "id",
        "is_reset",
        "last_active_ns",
        "listener_name",
        "local_host",
        "local_port",
        "muting",
        "on_readable",
        "parked",
        "peer_host",
        "peer_port",
        "pending",
        "reader",
        "reading",
        "received_bytes",
        "running",
        "security_protocol",
        "session",
        "socket",
        "taken_bytes",
        "thread",
        "write_lock",
    )

    def __init__(
        self,
        client_socket: socket.socket,
        thread: "Owner",
        *,
        connection_id: int,
        listener_name: str,
        max_request_size_bytes: int,
        session: ClientSession,
        security_protocol: str = "PLAINTEXT",
    ) -> None:
        self.id: Final = connection_id
        self.socket = client_socket
        self.thread = thread
        self.listener_name = listener_name
        self.security_protocol: Final = security_protocol
        peer: Any = client_socket.getpeername()
        local: Any = client_socket.getsockname()
        self.peer_host, self.peer_port = plain_address(peer[0]), int(peer[1])
        self.local_host, self.local_port = plain_address(local[0]), int(local[1])
        self.session: Any = session
        """What it is to those who run its requests is unknown here."""
        self.reader = FrameReader(max_request_size_bytes, thread.buffers)
        self.on_readable: Callable[[Any], None] = thread.close_connection
        """What the loop calls when the socket has something; set by the owning network thread at the beginning."""
        self.reading = True
        self.pending: deque[Received] = deque()
        self.received_bytes = 0
        self.taken_bytes = 0
        self.running = threading.Lock()
        self.deferred: Callable[[], None] | None = None
        """What the next I/O thread does before it runs requests; belongs to the holder of `running`."""
        self.answers = AnswerQueue()
        self.write_lock = threading.Lock()
        self.parked: dict[DelayedOperation, None] = {}
        self.muting: Callable[[], None] | None = None
        """Set while it is neither read nor run, with `running` held: what to do when it is closed. See `muting.py`."""
        self.charged_size_bytes = 0
        self.last_active_ns = 0
        self.half_closed = False
        """The client sends no more, though what it sent may not have been read yet; set by the network thread."""
        self.ended = False
        """The client sends no more, and all was read; only the owning network thread sets it."""
        self.is_reset = False
        """The client takes no answers any more; only the owning network thread sets it."""
        self.closing = False
        self.closed = False

    @property
    def has_unread(self) -> bool:
        """Whether there is something to read that the socket will not tell of."""
        return False

    @property
    def is_authenticated(self) -> bool:
        """See `ClientSession`."""
        session: ClientSession = self.session
        return session.is_authenticated

    @property
    def congested(self) -> bool:
        """Whether the client must take answers before more of its requests are read or run."""
        answers = self.answers
        return (
            len(answers.slots) >= MAX_UNANSWERED
            or answers.backlog_size_bytes + answers.held_up_size_bytes >= MAX_UNSENT_BYTES
        )

    @property
    def is_at_rest(self) -> bool:
        """Whether a request that came now would run: none does or waits to, and the client takes its answers."""
        return not self.pending and not self.running.locked() and not self.congested

    @property
    def may_read_on(self) -> bool:
        """Whether most of what was read has been worked off, so that reading, where it has paused, may go on."""
        if self.muting is not None:
            return False
        if self.ended or self.parked:
            return not self.pending
        return (
            len(self.pending) + len(self.answers.slots) < READ_ON_BELOW
            and self.received_bytes - self.taken_bytes < MAX_PENDING_BYTES
        )

    def flush(self) -> None:
        """Write the answers that are ready, unless somebody does already or the socket is full. Any thread."""
        answers = self.answers
        while answers.head_ready:
            if not self.write_lock.acquire(blocking=False):
                # Whoever holds it looks at the head again after letting go.
                return
            try:
                if self.closed:
                    answers.drop()
                    return
                self._write_ready()
            finally:
                self.write_lock.release()

    def hold_up_large(self, slot: Slot) -> None:
        """Count a large answer as unsent that `flush` could not write, as others before it are awaited. Any thread."""
        answer = slot.answer
        if answer.__class__ is list or (answer is not None and len(answer) >= LARGE_ANSWER_BYTES):
            with self.write_lock:
                if not self.closed:
                    self.answers.hold_up(slot)
            # Who found the lock taken meanwhile leaves the head to its holder.
            self.flush()

    def put_parts(self, slot: Slot, parts: list[Part]) -> None:
        """Fill a request's slot with an answer that may pin files; `flush` writes it. Any thread.

        When the connection is closed the slot may be gone, and nobody else would unpin them.
        """
        with self.write_lock:
            if not self.closed:
                slot.answer = parts
                return
        release_parts(parts)

    def write(self, answers: list[bytes]) -> None:
        """Write answers to requests that came when no slot was taken. The thread that holds `running`."""
        data = answers[0] if len(answers) == 1 else b"".join(answers)
        with self.write_lock:
            if self.closed:
                return
            if self.answers.backlog:
                self.answers.hold_back([data])
                return
            try:
                sent = self.socket.send(data)
            except BlockingIOError:
                sent = 0
            except OSError as failure:
                self._break(failure)
                return
            if sent < len(data):
                self.answers.hold_back([memoryview(data)[sent:]])
                self.thread.call(self.thread.watch_writable, self)

    def drain(self) -> bool:
        """Write on where the socket was full; True when nothing is left. The owning network thread."""
        with self.write_lock:
            answers = self.answers
            if self.closed:
                return True
            parts = list(answers.backlog)
            answers.backlog.clear()
            answers.backlog_size_bytes = 0
            left = self._send(parts)
            if left:
                answers.hold_back(left)
        self.flush()
        return not self.answers.backlog

    def hurry(self) -> None:
        """The client may have left: let what waits for its sake wait no longer. Kafka keeps it, and the connection."""
        for operation in list(self.parked):
            if operation.waits_for_client:
                operation.expire_soon()

    def close(self, reason: str) -> None:
        """Have the owning thread close the connection. Any thread; nothing happens the second time."""
        if not self.closing:
            self.closing = True
            log.debug("closing connection peer=%s:%d reason=%r", self.peer_host, self.peer_port, reason)
            self.thread.call(self.thread.close_connection, self)

    def close_answered(self, reason: str, slot: Slot | None = None) -> None:
        """Have the owning thread close the connection when the requests before this one are answered, as in Kafka.

        The caller holds `running` and leaves it so. `slot`: that of the request that gets no answer, if it has one.
        """
        log.debug("closing connection peer=%s:%d reason=%r", self.peer_host, self.peer_port, reason)
        if slot is not None:
            with self.write_lock:
                self.answers.withdraw(slot)
        self.flush()
        self.thread.call(self.thread.finish, self)

    def close_socket(self) -> None:
        """Close, drop what waits and cancel what is parked. The owning network thread, once."""
        self.closing = True
        with self.write_lock:
            self.closed = True
            self.answers.drop()
            self.socket.close()
        if self.muting is not None:
            self.muting()
        for operation in list(self.parked):
            operation.cancel()
        self.parked.clear()
        # A request that waits for others, for minutes maybe, keeps this connection until it is answered, and clients
        # come and go meanwhile: what they have brought must not stay.
        self.reader.forget()
        self.session.end()

    def keep_pending_apart(self) -> None:
        """Let what waits to run keep no more memory than it needs. The owning network thread, holding `running`."""
        pending = self.pending
        if pending:
            frames, received_ns, charged = zip(*pending, strict=True)
            pending.clear()
            pending.extend(zip(apart(frames), received_ns, charged, strict=True))

    def drop_pending(self) -> int:
        """Forget the requests that have not run: how much of the memory pool they were charged."""
        charged = 0
        while self.pending:
            try:
                _, _, charged_size_bytes = self.pending.popleft()
            except IndexError:
                # The I/O thread that runs the connection took the last one.
                break
            charged += charged_size_bytes
        return charged

    def _write_ready(self) -> None:
        done: list[Slot] = []
        answers = self.answers
        parts = answers.gather(done)
        if answers.backlog:
            # The socket is full. Here they count as unsent, and the network thread writes them behind the others.
            answers.hold_back(parts)
        elif parts:
            left = self._send(parts)
            if left:
                answers.hold_back(left)
                self.thread.call(self.thread.watch_writable, self)
        if done:
            # The first one held back the others.
            answered_ns = done[0].completed_ns or done[0].local_done_ns
            if answered_ns > self.last_active_ns:
                self.last_active_ns = answered_ns
        self.thread.answered(done)

    def _send(self, parts: list[Part]) -> list[Part]:
        """Write parts until the socket is full: what is left (nothing after a failure, and nothing may follow)."""
        try:
            send_parts(self.socket, parts)
        except OSError as failure:
            release_parts(parts)
            self._break(failure)
            return []
        return parts

    def _break(self, failure: OSError) -> None:
        """Half an answer may be out: write nothing more until the network thread closes. Under the write lock."""
        self.closed = self.closing = True
        self.answers.drop()
        log.debug("write failed peer=%s:%d error=%r", self.peer_host, self.peer_port, str(failure))
        self.thread.call(self.thread.close_connection, self)
