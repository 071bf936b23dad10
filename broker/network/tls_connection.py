"""A client's connection with TLS: bytes go through OpenSSL by memory, and the socket stays the network's own.

What is read and written lies in two memory BIOs, 32 KiB at a time: they never shrink, so that a piece's size is what a
connection costs for good. An SSL object may be used by one thread at a time; `tls_lock` sees to it, and is held for
calls of OpenSSL alone, so that answers are encrypted by I/O threads while the network thread decrypts requests.
"""

import os
import socket
import ssl
import threading
from contextlib import suppress
from enum import Enum
from typing import Any, Final, NoReturn, Protocol

from kavka.broker.network.answers import FileSlice, Part, release_parts
from kavka.broker.network.connection import Connection
from kavka.broker.network.peer_certificate import PeerCertificate

PIECE_BYTES: Final = 32 * 1024
TURN_BYTES: Final = 1024 * 1024
"""How much is encrypted before others have their turn."""
MOST_EMPTY_BYTES: Final = 2 * PIECE_BYTES
"""How much may come with nothing to read in it: a record that is not whole yet, and not new keys without end."""
MOST_SAID_BYTES: Final = 64 * 1024
"""What TLS itself has to say (alerts, new keys) to a client that takes nothing; more, and the connection is closed."""


class Secured(Protocol):
    """A listener's certificates, as its connections know them. Threads: any."""

    def wrap(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO) -> ssl.SSLObject:
        """The server's side of a new connection, with the certificates of the moment."""
        ...

    def peer(self, tls: ssl.SSLObject) -> PeerCertificate | None:
        """What the client showed in its handshake. Raises ValueError: nobody can be told from it."""
        ...

    def opened(self, cipher: tuple[str, str]) -> None:
        """TLS is there, by this cipher (OpenSSL's name) and version."""
        ...

    def closed(self, cipher: tuple[str, str]) -> None:
        """A connection of which `opened` was told is no more."""
        ...

    def authenticated(self) -> None:
        """A client's handshake has succeeded."""
        ...

    def refused(self) -> None:
        """A client's handshake has failed."""
        ...


class Stage(Enum):
    """How far a connection is."""

    SILENT = "nothing has come"
    SHAKING = "the client's bytes are awaited, for the handshake"
    STEPPING = "a step of the handshake is done, elsewhere"
    OPEN = "requests are read"
    REFUSED = "the handshake has failed, and the client is told"


class Sealed(bytes):
    """Encrypted bytes that the socket has not taken: nothing may go before them, or be done to them."""


class TlsConnection(Connection):
    """See `Connection`, whose rules hold.

    Threads: `tls` and both BIOs belong to the holder of `tls_lock`, which is taken under `write_lock` or by itself.
    While its stage is STEPPING, what is of the handshake belongs to who takes the step.
    What is taken from `outgoing` is taken under `write_lock`, so that records leave in the order they were made in.
    """

    __slots__ = (
        "cipher",
        "empty_bytes",
        "failure",
        "has_ended",
        "has_finished",
        "has_to_say",
        "incoming",
        "outgoing",
        "peer",
        "secured",
        "stage",
        "tls",
        "tls_lock",
    )

    def __init__(self, client_socket: socket.socket, thread: Any, *, secured: Secured, **others: Any) -> None:
        """`others` as for `Connection`."""
        super().__init__(client_socket, thread, **others)
        self.secured: Final = secured
        self.incoming = ssl.MemoryBIO()
        self.outgoing = ssl.MemoryBIO()
        self.tls = secured.wrap(self.incoming, self.outgoing)
        self.tls_lock: Final = threading.Lock()
        self.stage = Stage.SILENT
        """Belongs to the owning network thread."""
        self.has_finished = False
        """The handshake; so are `peer` and `failure` of who takes a step."""
        self.peer: PeerCertificate | None = None
        self.failure: Exception | None = None
        """What ended the handshake, or will end the reading behind what was read."""
        self.cipher: tuple[str, str] | None = None
        """Its name and TLS's version, once that is there. Belongs to the owning network thread."""
        self.empty_bytes = 0
        """How much has come since there was something to read in it."""
        self.has_ended = False
        """The client has said that nothing more comes."""
        self.has_to_say = False
        """Whether TLS itself had something to say when the client's bytes were last read. For `say`."""

    @property
    def may_read_on(self) -> bool:
        """See `Connection`; never while a step of the handshake is done elsewhere."""
        return self.stage is not Stage.STEPPING and super().may_read_on

    @property
    def is_authenticated(self) -> bool:
        """See `Connection`."""
        return self.stage is Stage.OPEN and super().is_authenticated

    @property
    def has_unread(self) -> bool:
        """Whether bytes that have come wait to be decrypted: the socket says nothing of them."""
        if self.incoming.pending or self.has_ended or self.failure is not None:
            return True
        with self.tls_lock:
            return self.stage is Stage.OPEN and self.tls.pending() > 0

    def take_step(self) -> None:
        """One step of the handshake, as far as the client's bytes go; what came of it is then in the connection.

        The thread that the connection was handed to.
        """
        try:
            with self.tls_lock:
                self.tls.do_handshake()
            self.peer = self.secured.peer(self.tls)
            self.has_finished = True
        except ssl.SSLWantReadError:
            pass
        except (OSError, ValueError) as failure:
            # Without the frames it came through, which have this connection, and it may be closed already.
            self.failure = failure.with_traceback(None)

    def open(self) -> None:
        """The handshake has been finished: requests may come. The owning network thread."""
        self.stage = Stage.OPEN
        cipher = self.tls.cipher()
        if cipher is not None:
            self.cipher = cipher[:2]
            self.secured.opened(self.cipher)

    def feed(self, data: memoryview) -> None:
        """Bytes of the socket. The owning network thread.

        Never its end: OpenSSL would take one without goodbye for an attack, and write no answers any more.
        """
        self.empty_bytes += len(data)
        with self.tls_lock:
            self.incoming.write(data)

    def decrypt(self, space: memoryview) -> int | None:
        """Read what there is into `space`: how much; 0 at the end, None if more has to come first.

        The owning network thread. Raises OSError, an ssl.SSLError mostly.
        """
        if self.failure is not None:
            raise self.failure
        if self.has_ended:
            return 0
        filled = 0
        try:
            with self.tls_lock:
                try:
                    while filled < len(space):
                        # A number, where there is a buffer: typeshed knows bytes alone.
                        size: Any = self.tls.read(len(space) - filled, space[filled:] if filled else space)
                        if not size:
                            self.has_ended = True
                            break
                        filled += size
                        if not self.incoming.pending and not self.tls.pending():
                            break
                finally:
                    # Under the lock: else it might be what is just being encrypted.
                    self.has_to_say = self.outgoing.pending > 0
        except ssl.SSLWantReadError:
            if not filled and self.empty_bytes > MOST_EMPTY_BYTES:
                raise OSError("records without content, one after the other") from None
        except ssl.SSLError as failure:
            if not filled:
                raise
            self.failure = failure
        if filled:
            self.empty_bytes = 0
        return filled if filled or self.has_ended else None

    def say(self) -> None:
        """Send what TLS itself has to say. The owning network thread."""
        if not self.outgoing.pending:
            return
        with self.write_lock:
            answers = self.answers
            if self.closed:
                return
            if answers.backlog:
                # It goes before what is encrypted next.
                if self.outgoing.pending > MOST_SAID_BYTES:
                    self._break(OSError("the client takes nothing of what TLS has to say"))
                return
            left = self._send([])
            if left:
                answers.hold_back(left)
                self.thread.call(self.thread.watch_writable, self)

    def write(self, answers: list[bytes]) -> None:
        """See `Connection`."""
        parts: list[Part] = [*answers]
        with self.write_lock:
            if self.closed:
                return
            if self.answers.backlog:
                self.answers.hold_back(parts)
                return
            left = self._send(parts)
            if left:
                self.answers.hold_back(left)
                self.thread.call(self.thread.watch_writable, self)

    def close_socket(self) -> None:
        """See `Connection`; with TLS's goodbye, by which the client knows that nothing was cut off."""
        with self.write_lock:
            if self.stage is Stage.OPEN and not self.closed and not self.answers.backlog:
                with suppress(OSError), self.tls_lock:
                    self.tls.unwrap()
                with suppress(OSError):
                    self.socket.send(self.outgoing.read())
        if self.cipher is not None:
            self.secured.closed(self.cipher)
        # Once raised it knows frames that have this connection: 60 KB until the garbage collector comes by, which
        # counts objects and not bytes.
        self.failure = None
        super().close_socket()
        # As much again, where a request waits for minutes yet, and keeps the connection.
        with self.tls_lock:
            self.tls, self.incoming, self.outgoing = _GONE, ssl.MemoryBIO(), ssl.MemoryBIO()

    def _send(self, parts: list[Part]) -> list[Part]:
        try:
            self._seal_and_send(parts)
        except OSError as failure:
            release_parts(parts)
            self._break(failure)
            return []
        return parts

    def _seal_and_send(self, parts: list[Part]) -> None:
        """Write parts until the socket is full or the turn is over; what was taken is removed. Raises OSError."""
        left_bytes = TURN_BYTES
        while parts and left_bytes > 0:
            first = parts[0]
            if isinstance(first, Sealed):
                data: bytes = first
                del parts[0]
            else:
                piece = _next_piece(parts)
                if not piece:
                    continue
                data = self._seal(piece)
            left_bytes -= len(data)
            if not self._send_sealed(data, parts):
                return
        if not parts and self.outgoing.pending:
            with self.tls_lock:
                data = self.outgoing.read()
            self._send_sealed(data, parts)

    def _send_sealed(self, data: bytes, parts: list[Part]) -> bool:
        try:
            sent = self.socket.send(data)
        except BlockingIOError:
            sent = 0
        if sent < len(data):
            parts.insert(0, Sealed(memoryview(data)[sent:]))
            return False
        return True

    def _seal(self, piece: bytes | memoryview) -> bytes:
        with self.tls_lock:
            sealed = self.tls.write(piece)
            if sealed < len(piece):
                view = memoryview(piece)
                while sealed < len(piece):
                    sealed += self.tls.write(view[sealed:])
            return self.outgoing.read()


class _Gone:
    """Stands for the TLS of a connection that is closed: there is nothing in it, and nothing works with it."""

    def pending(self) -> int:
        return 0

    def __getattr__(self, name: str) -> NoReturn:
        raise OSError(f"no {name}: the connection is closed")


_GONE: Final[Any] = _Gone()


def _next_piece(parts: list[Part]) -> bytes | memoryview:
    """Take up to PIECE_BYTES from the head of parts, from memory and files alike. Raises OSError."""
    taken: list[bytes | memoryview] = []
    room = PIECE_BYTES
    while parts and room:
        part = parts[0]
        if not isinstance(part, bytes | memoryview):
            data: bytes | memoryview = _read_file(part, room)
            if not part.size_bytes:
                part.release()
                del parts[0]
        elif len(part) <= room:
            data = part
            del parts[0]
        else:
            view = memoryview(part)
            data, parts[0] = view[:room], view[room:]
        taken.append(data)
        room -= len(data)
    return taken[0] if len(taken) == 1 else b"".join(taken)


def _read_file(piece: FileSlice, most_bytes: int) -> bytes:
    """Advance a file slice by what was read of it. Raises OSError."""
    size_bytes = min(most_bytes, piece.size_bytes)
    if not size_bytes:
        return b""
    try:
        data = os.pread(piece.fileno(), size_bytes, piece.position)
    except OSError as failure:
        piece.failed(failure)
        raise
    if not data:
        piece.failed(None)
        raise OSError("the segment file is shorter than what was to be sent of it")
    piece.position += len(data)
    piece.size_bytes -= len(data)
    return data
