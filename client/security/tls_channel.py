"""TLS before a socket, by two buffers of OpenSSL's, which never sees the socket: who has it may wait for it."""

import selectors
import ssl
from typing import Final

from kavka.client.errors import SslAuthenticationError
from kavka.client.node import Node
from kavka.client.security_port import Channel
from kavka.protocol.schema import Buffer

PIECE_BYTES: Final = 32 * 1024
"""What is encrypted or decrypted at a time. OpenSSL's buffers never shrink: larger ones would stay large."""


class TlsChannel:
    """A SecuredChannel. `room` has PIECE_BYTES for what arrives, and may be shared by one thread's channels.

    Threads: the client's owner alone.
    """

    __slots__ = (
        "_arriving",
        "_channel",
        "_has_heard",
        "_is_agreed",
        "_leaving",
        "_node",
        "_owed_bytes",
        "_room",
        "_tls",
        "_unsent",
    )

    def __init__(self, channel: Channel, context: ssl.SSLContext, node: Node, room: memoryview) -> None:
        """The name is checked against the certificate where the context says so. Raises SslAuthenticationError."""
        self._channel: Final = channel
        self._node: Final = node
        self._room: Final = room
        self._arriving: Final = ssl.MemoryBIO()
        self._leaving: Final = ssl.MemoryBIO()
        try:
            self._tls: Final = context.wrap_bio(self._arriving, self._leaving, server_hostname=node.host)
        except ValueError as failure:
            raise SslAuthenticationError(f"node {node}: no name that a certificate could have: {failure}") from failure
        self._unsent: memoryview = memoryview(b"")
        """Encrypted, and not taken by the socket."""
        self._owed_bytes = 0
        """Of what is to be sent, those that are encrypted and not reported as sent."""
        self._is_agreed = False
        self._has_heard = False
        """Whether anything was received: in TLS 1.3 a server refuses a certificate only after the handshake."""

    def fileno(self) -> int:
        return self._channel.fileno()

    def getsockopt(self, level: int, name: int, /) -> int:
        return self._channel.getsockopt(level, name)

    def handshake(self) -> int:
        while True:
            try:
                self._flush()
            except BlockingIOError:
                return selectors.EVENT_WRITE
            if self._is_agreed:
                return 0
            try:
                self._tls.do_handshake()
                self._is_agreed = True
            except ssl.SSLWantReadError:
                if not self._leaving.pending and not self._arrived():
                    return selectors.EVENT_READ
            except ssl.SSLError as failure:
                self._say_farewell()
                raise self._refusal(failure) from failure

    def recv_into(self, buffer: memoryview, /) -> int:
        size, room = 0, len(buffer)
        while size < room:
            try:
                read = self._tls.read(room - size, buffer[size:])
            except ssl.SSLWantReadError:
                if not self._arrived():
                    break
                continue
            except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
                return size
            except ssl.SSLError as failure:
                if not self._has_heard:
                    raise self._refusal(failure) from failure
                raise
            if not read:
                return size
            self._has_heard = True
            size += int(read)
        if self._leaving.pending:
            # The peer wants other keys to be used, which is answered.
            self._flush_if_it_can()
        if not size:
            raise BlockingIOError
        return size

    def send(self, data: Buffer, /) -> int:
        self._flush()
        if not self._owed_bytes:
            self._owed_bytes = self._tls.write(memoryview(data)[:PIECE_BYTES])
            self._flush()
        sent, self._owed_bytes = self._owed_bytes, 0
        return sent

    def sendmsg(self, buffers: list[Buffer], /) -> int:
        first = buffers[0]
        if len(first) >= PIECE_BYTES or self._owed_bytes:
            return self.send(first)
        pieces: list[Buffer] = []
        left = PIECE_BYTES
        for buffer in buffers:
            if left <= 0:
                break
            pieces.append(memoryview(buffer)[:left])
            left -= len(buffer)
        return self.send(b"".join(pieces))

    def close(self) -> None:
        self._say_farewell()
        self._channel.close()

    def let_go(self) -> None:
        # A farewell would end the parent's connection, and what it has encrypted and not sent yet would be sent twice.
        self._channel.close()

    def _arrived(self) -> bool:
        """Take what the socket has, up to a piece; False when it has nothing. Raises OSError."""
        try:
            size = self._channel.recv_into(self._room)
        except BlockingIOError:
            return False
        if size:
            self._arriving.write(self._room[:size])
        elif self._is_agreed:
            self._arriving.write_eof()
        else:
            raise ConnectionResetError("it was closed during the TLS handshake: does that listener speak TLS?")
        return True

    def _flush(self) -> None:
        """Have the socket take what is encrypted. Raises BlockingIOError as long as it does not, or another OSError."""
        while True:
            if not self._unsent:
                if not self._leaving.pending:
                    return
                self._unsent = memoryview(self._leaving.read())
            self._unsent = self._unsent[self._channel.send(self._unsent) :]

    def _flush_if_it_can(self) -> None:
        try:
            self._flush()
        except BlockingIOError:
            # The next bytes that are sent go out behind these.
            return

    def _say_farewell(self) -> None:
        """Tell the peer that this is the end, or why, if the socket takes it."""
        try:
            if self._is_agreed:
                self._tls.unwrap()
        except ssl.SSLError:
            # The peer's own farewell is not waited for.
            pass
        try:
            self._flush()
        except OSError:
            return

    def _refusal(self, failure: ssl.SSLError) -> SslAuthenticationError:
        return SslAuthenticationError(f"the TLS handshake with node {self._node} failed: {failure}")
