"""Lines of a stream of bytes, however long the stream is; a line has a limit."""

from collections.abc import Iterator
from typing import BinaryIO, Final

MAX_LINE_BYTES: Final = 128 * 1024 * 1024
"""What a broker takes as one record is far less by default; a line beyond this one is passed over."""


def lines_of(stream: BinaryIO, max_bytes: int = MAX_LINE_BYTES) -> Iterator[tuple[int, bytes | None]]:
    """(number from 1 on, line without its end); None for a line that is too long. Raises OSError."""
    number = 0
    while line := stream.readline(max_bytes + 2):
        number += 1
        if line.endswith(b"\n"):
            line = line[:-1].removesuffix(b"\r")
        elif len(line) > max_bytes:
            _skip(stream)
            yield number, None
            continue
        yield number, line if len(line) <= max_bytes else None


def _skip(stream: BinaryIO) -> None:
    """Read on until the line ends."""
    while part := stream.readline(1 << 20):
        if part.endswith(b"\n"):
            return
