"""A file's batches, a piece at a time: each begins with a batch, and none is larger than it must be."""

import os
from collections.abc import Iterator
from typing import Final, NamedTuple

from kavka.pipeline.arrow.decoding import CorruptInputError
from kavka.protocol.records.errors import CorruptRecordsError
from kavka.protocol.records.header import LOG_OVERHEAD_BYTES, claimed_size_bytes, read_header, verify_crc

PIECE_BYTES: Final = 4 << 20
BATCH_LIMIT_BYTES: Final = 256 << 20
"""A larger batch is corrupt: who claims to have one makes nobody read it."""


class Piece(NamedTuple):
    """Some bytes of the file; `data` is used again for the next one."""

    data: memoryview
    position: int


class Pieces:
    """Reads one file after the other into one buffer. One thread."""

    def __init__(self) -> None:
        self._buffer = bytearray(PIECE_BYTES)
        self.used_bytes = 0
        """To be set before the next piece is asked for: how much of the last one was whole batches."""
        self.position = 0
        """Where the file's whole batches end, once all pieces were given."""
        self.rest_bytes = 0
        """What lies there behind them: a batch that is cut off, or zeros."""

    def of(self, fd: int, name: str, position: int) -> Iterator[Piece]:
        """The pieces from `position` on, where a batch begins. Raises OSError, CorruptInputError."""
        wanted = PIECE_BYTES
        while True:
            if wanted > len(self._buffer):
                self._buffer = bytearray(wanted)
            data = memoryview(self._buffer)[: _read(fd, memoryview(self._buffer)[:wanted], position)]
            self.used_bytes = 0
            if data:
                yield Piece(data, position)
            rest = data[self.used_bytes :]
            position += self.used_bytes
            self.position, self.rest_bytes = position, len(rest)
            is_end = len(data) < wanted
            wanted = PIECE_BYTES
            if self.used_bytes:
                continue
            claimed = claimed_size_bytes(rest)
            if is_end or claimed <= len(data):
                return
            if claimed > BATCH_LIMIT_BYTES:
                raise CorruptInputError(f"{name} is corrupt at position {position}: a batch of {claimed} bytes")
            wanted = max(claimed, PIECE_BYTES)


def begins_batch(fd: int, position: int, base_offset: int, offset: int) -> bool:
    """Whether a whole batch begins there that may come before the offset, in a segment of that base. Raises OSError."""
    head = os.pread(fd, LOG_OVERHEAD_BYTES, position)
    size = claimed_size_bytes(head)
    if len(head) < LOG_OVERHEAD_BYTES or size > BATCH_LIMIT_BYTES:
        return False
    data = os.pread(fd, size, position)
    try:
        header = read_header(data)
        verify_crc(data, 0, header)
    except CorruptRecordsError:
        return False
    return base_offset <= header.base_offset <= offset


def _read(fd: int, into: memoryview, position: int) -> int:
    """Fill it; how many bytes there were, fewer at the end of the file."""
    got = 0
    while got < len(into):
        count = os.preadv(fd, [into[got:]], position + got)
        if not count:
            break
        got += count
    return got
