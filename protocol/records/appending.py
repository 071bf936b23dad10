"""Writing a v2 batch one record at a time, into memory that is used again: a producer's side.

`builder.build_batch` makes a batch of records that are all there; here they come one by one, by the hundred thousand a
second, and the batch's header is written when it is closed. The layout stands at the head of `batch.py`.
"""

from collections.abc import Sequence
from io import BytesIO
from typing import Final

from kavka.protocol.records.compression import Codec, compress
from kavka.protocol.records.header import (
    BATCH_HEADER,
    HEADER_SIZE_BYTES,
    LOG_OVERHEAD_BYTES,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    write_crc,
)
from kavka.protocol.records.record import RecordHeader

MAX_RECORDS: Final = 2**31 - 1
MAX_RECORD_OVERHEAD_BYTES: Final = 5 + 1 + 10 + 5 + 5 + 5 + 5
"""What a record has at most beside its key, value and headers: length, attributes, two deltas, three lengths."""


class BatchWriter:
    """A batch that grows record by record. Owned by whoever holds the lock of what it is in.

    `stream` is the memory, written from its start on; whoever gave it takes it back after `release`.
    """

    __slots__ = (
        "_data",
        "base_timestamp_ms",
        "codec",
        "count",
        "limit_bytes",
        "max_timestamp_ms",
        "size_bytes",
        "stream",
    )

    def __init__(self, stream: BytesIO, limit_bytes: int) -> None:
        """No record is taken beyond `limit_bytes`, which count the header, but for the first, which always is.

        Raises BufferError: somebody still looks at the memory.
        """
        stream.seek(0)
        stream.write(_HEADER_SPACE)
        self.stream: BytesIO | None = stream
        self._data: memoryview | None = None
        self.limit_bytes: Final = limit_bytes
        self.size_bytes = HEADER_SIZE_BYTES
        """Of the records as they came, and a header; `seal` may make them smaller."""
        self.count = 0
        self.base_timestamp_ms = NO_TIMESTAMP
        self.max_timestamp_ms = NO_TIMESTAMP
        self.codec: int = Codec.NONE

    def append(
        self, timestamp_ms: int, key: bytes | None, value: bytes | None, headers: Sequence[RecordHeader] = ()
    ) -> bool:
        """Write one record more; False, and nothing is changed, when there is no room for it.

        `timestamp_ms` is not negative. Not after `seal`.
        """
        count = self.count
        delta = timestamp_ms - self.base_timestamp_ms if count else 0
        try:
            body = _join(
                (
                    b"\0",
                    _LENGTHS[delta] if delta >= 0 else varint(delta),
                    _LENGTHS[count],
                    _NULL if key is None else _LENGTHS[len(key)],
                    key or b"",
                    _NULL if value is None else _LENGTHS[len(value)],
                    value or b"",
                    b"\0" if not headers else packed_headers(headers),
                )
            )
            prefix = _LENGTHS[len(body)]
        except IndexError:
            body = _long_body(delta, count, key, value, headers)
            prefix = varint(len(body))
        end = self.size_bytes + len(prefix) + len(body)
        if end > self.limit_bytes and count:
            return False
        stream = self.stream
        if stream is None:
            raise ValueError("the batch's memory has been given back")
        stream.write(prefix)
        stream.write(body)
        self.size_bytes = end
        self.count = count + 1
        if timestamp_ms > self.max_timestamp_ms:
            self.max_timestamp_ms = timestamp_ms
        if not count:
            self.base_timestamp_ms = timestamp_ms
        return True

    @property
    def is_sealed(self) -> bool:
        """Whether nothing can be appended any more."""
        return self._data is not None

    @property
    def data(self) -> memoryview:
        """The batch as it goes out, after `seal` and until `release`."""
        assert self._data is not None
        return self._data

    def seal(self, codec: int = Codec.NONE, level: int | None = None) -> None:
        """Pack the records; nothing is appended any more. `stamp` makes the batch whole.

        What the codec made larger stays as it was. Raises what `compress` raises.
        """
        assert self.stream is not None
        view = self.stream.getbuffer()
        size = self.size_bytes
        if codec != Codec.NONE:
            packed = compress(codec, view[HEADER_SIZE_BYTES:size], level)
            if len(packed) < size - HEADER_SIZE_BYTES:
                size = HEADER_SIZE_BYTES + len(packed)
                view[HEADER_SIZE_BYTES:size] = packed
                self.codec = codec
        self._data = view[:size]
        view.release()

    def stamp(
        self,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        base_sequence: int = NO_SEQUENCE,
        *,
        transactional: bool = False,
    ) -> None:
        """Write the header of a sealed batch, for the first time or with another producer or sequence."""
        data = self.data
        BATCH_HEADER.pack_into(
            data,
            0,
            0,
            len(data) - LOG_OVERHEAD_BYTES,
            NO_LEADER_EPOCH,
            2,
            0,
            self.codec | TRANSACTIONAL_BIT * transactional,
            self.count - 1,
            self.base_timestamp_ms,
            self.max_timestamp_ms,
            producer_id,
            producer_epoch,
            base_sequence,
            self.count,
        )
        write_crc(data, 0)

    def release(self) -> None:
        """Look at the memory no more, nor keep it: what is known of the batch may live on for long without it.

        It may be used again once those who send it look no more either.
        """
        if self._data is not None:
            self._data.release()
            self._data = None
        self.stream = None


class CountedBatchWriter(BatchWriter):
    """One that takes so many records and no more."""

    __slots__ = ("_limit_records",)

    def __init__(self, stream: BytesIO, limit_bytes: int, limit_records: int) -> None:
        super().__init__(stream, limit_bytes)
        self._limit_records: Final = limit_records

    def append(
        self, timestamp_ms: int, key: bytes | None, value: bytes | None, headers: Sequence[RecordHeader] = ()
    ) -> bool:
        """As `BatchWriter.append`; the first record is always taken."""
        if self.count >= self._limit_records and self.count:
            return False
        return super().append(timestamp_ms, key, value, headers)


def record_size_bound(key: bytes | None, value: bytes | None, headers: Sequence[RecordHeader] = ()) -> int:
    """What a batch of this record alone may take at most, its header included."""
    size = HEADER_SIZE_BYTES + MAX_RECORD_OVERHEAD_BYTES
    size += (0 if key is None else len(key)) + (0 if value is None else len(value))
    return size + (len(packed_headers(headers)) if headers else 0)


def packed_headers(headers: Sequence[RecordHeader]) -> bytes:
    """A record's headers as they stand in it, their number first."""
    parts = [varint(len(headers))]
    for key, value in headers:
        name = key.encode("utf-8", "surrogateescape")
        parts += (varint(len(name)), name)
        if value is None:
            parts.append(_NULL)
        else:
            parts += (varint(len(value)), value)
    return _join(parts)


def varint(value: int) -> bytes:
    """`value` in zigzag: the same bytes for 32 and 64 bits."""
    unsigned = value << 1 if value >= 0 else (-value << 1) - 1
    out = bytearray()
    while unsigned >= 0x80:
        out.append(unsigned & 0x7F | 0x80)
        unsigned >>= 7
    out.append(unsigned)
    return bytes(out)


def _long_body(
    delta: int, index: int, key: bytes | None, value: bytes | None, headers: Sequence[RecordHeader]
) -> bytes:
    """A record without its length where a number in it is not in the table."""
    parts = [b"\0", varint(delta), varint(index)]
    for part in (key, value):
        if part is None:
            parts.append(_NULL)
        else:
            parts += (varint(len(part)), part)
    parts.append(packed_headers(headers) if headers else b"\0")
    return _join(parts)


_join: Final = b"".join
_NULL: Final = varint(-1)
_LENGTHS: Final = tuple(varint(number) for number in range(8192))
"""All that take two bytes at most: looked up, a varint is nearly free."""
_HEADER_SPACE: Final = bytes(HEADER_SIZE_BYTES)
