"""Writing answers to a socket: those in memory with as few calls as may be, pieces of files by sendfile."""

import errno
import os
import socket
from typing import Final

from kavka.broker.network.answers import FileSlice, Part

FILE_FAILED: Final = frozenset({errno.EIO, errno.ESTALE, errno.EBADMSG, errno.EUCLEAN})
"""What sendfile says of the file it reads, and never of the socket."""
IOV_MAX: Final = 1024
JOIN_LIMIT_BYTES: Final = 64 * 1024
IN_MEMORY: Final = (bytes, memoryview)
"""For `isinstance`: a union of types would be made anew for each answer."""


def send_parts(out: socket.socket, parts: list[Part]) -> None:
    """Write to a non-blocking socket until it is full; what was taken is removed from `parts`, files released.

    Raises OSError: the first part may have been written in part.
    """
    while parts:
        first = parts[0]
        if isinstance(first, IN_MEMORY):
            taken = _send_memory(out, parts)
        else:
            taken = _send_file(out, first)
            if taken:
                del parts[0]
        if not taken:
            return


def _send_memory(out: socket.socket, parts: list[Part]) -> bool:
    """Write the leading run of in-memory parts, removing what was taken; False when the socket is full."""
    if len(parts) == 1:
        data = parts[0]
        assert isinstance(data, IN_MEMORY)
        try:
            sent = out.send(data)
        except BlockingIOError:
            return False
        if sent == len(data):
            parts.clear()
            return True
        parts[0] = memoryview(data)[sent:]
        return False
    vector: list[bytes | memoryview] = []
    size = 0
    for part in parts[:IOV_MAX]:
        if not isinstance(part, IN_MEMORY):
            break
        vector.append(part)
        size += len(part)
    flags = socket.MSG_MORE if len(vector) < len(parts) else 0
    try:
        sent = out.send(b"".join(vector), flags) if size <= JOIN_LIMIT_BYTES else out.sendmsg(vector, (), flags)
    except BlockingIOError:
        return False
    if sent == size:
        del parts[: len(vector)]
        return True
    _consume(parts, sent)
    return False


def _send_file(out: socket.socket, piece: FileSlice) -> bool:
    """Send a file slice, advancing it; True when all of it is gone, False when the socket is full."""
    if piece.size_bytes:
        try:
            sent = os.sendfile(out.fileno(), piece.fileno(), piece.position, piece.size_bytes)
        except BlockingIOError:
            return False
        except OSError as failure:
            if failure.errno in FILE_FAILED:
                piece.failed(failure)
            raise
        if sent == 0:
            piece.failed(None)
            raise OSError("the segment file is shorter than what was to be sent of it")
        piece.position += sent
        piece.size_bytes -= sent
        if piece.size_bytes:
            # Asking again would only hear that the socket is full; it says when it is not.
            return False
    piece.release()
    return True


def _consume(parts: list[Part], sent: int) -> None:
    """Remove the first `sent` bytes from in-memory parts."""
    while sent:
        first = parts[0]
        assert isinstance(first, IN_MEMORY)
        if sent < len(first):
            parts[0] = memoryview(first)[sent:]
            return
        sent -= len(first)
        del parts[0]
