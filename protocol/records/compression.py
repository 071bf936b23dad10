"""The codecs, each with a bound on what it may unpack.

    codec     framing                                        the bound is kept by
    1 gzip    RFC 1952, members back to back                 `max_length` of zlib
    2 snappy  raw, or xerial: "\\x82SNAPPY\\0", version i32,  the size claimed in front of each block, counted before
              compatible version i32, then blocks of         the library allocates by it
              (size i32, raw snappy)
    3 lz4     LZ4 frame, independent blocks                  its size and the best ratio; where that is not enough,
                                                             `max_length` of lz4, in pieces (it allocates them whole)
    4 zstd    frames back to back                            reading a stream in pieces

Raw snappy comes from librdkafka and others, xerial from Java clients; both are read, xerial is written: all read that.
In magic 0 the header checksum of an lz4 frame is wrong by tradition (KAFKA-3160): it covers the frame's magic too. It
is written so, and on reading magic 0 it is ignored, as Kafka does.

The libraries load on first use. Everything here may be called by any thread.
"""

import struct
import zlib
from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import Final

from kavka.protocol.records.errors import CompressionLimitError, CorruptRecordsError, UnsupportedCodecError
from kavka.protocol.records.header import BytesLike
from kavka.protocol.records.xxhash32 import xxh32

DECOMPRESSED_LIMIT_BYTES: Final = 128 * 1024 * 1024
"""What one batch may unpack to when the caller names no limit of its own."""


class Codec(IntEnum):
    """Bits 0 to 2 of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def compress(codec: int, data: BytesLike, level: int | None = None, *, magic: int = 2) -> bytes:
    """`data` packed by `codec`; `level` as in Kafka's `compression.*.level`, None its default.

    Raises UnsupportedCodecError for an unknown codec, or zstd below magic 2.
    """
    _check_codec(codec, magic)
    if codec == Codec.LZ4:
        return _compress_lz4(data, level, broken_checksum=magic == 0)
    return _COMPRESSORS[codec](data, level)


def decompress(codec: int, data: BytesLike, *, limit_bytes: int = DECOMPRESSED_LIMIT_BYTES, magic: int = 2) -> bytes:
    """What `data` unpacks to, at most `limit_bytes`; about twice that is the most memory used on the way.

    Raises CompressionLimitError beyond the limit, UnsupportedCodecError as `compress` does, CorruptRecordsError for
    what isn't the codec's format, has something behind its end or ends early (the last not with zstd, whose reader
    can't tell: a batch's record count does).
    """
    unpack = _DECOMPRESSORS.get(codec)
    if unpack is None or magic < 2:
        _check_codec(codec, magic)
        if codec == Codec.LZ4 and magic == 0:
            data = _with_lz4_header_checksum(data, broken=False)
        unpack = _DECOMPRESSORS[codec]
    return unpack(data, limit_bytes)


def _check_codec(codec: int, magic: int) -> None:
    if not 0 <= codec <= Codec.ZSTD:
        raise UnsupportedCodecError(f"codec {codec} is unknown")
    if codec == Codec.ZSTD and magic < 2:
        raise UnsupportedCodecError(f"zstd needs magic 2, not {magic} (KIP-110)")


def _over(limit_bytes: int, codec: str) -> CompressionLimitError:
    return CompressionLimitError(f"{codec} data unpacks to more than {limit_bytes} bytes")


def _corrupt(codec: str, reason: object) -> CorruptRecordsError:
    return CorruptRecordsError(f"not valid {codec} data: {reason}")


# None ----------------------------------------------------------------------------------------------------------------


def _copy(data: BytesLike, level: int | None) -> bytes:
    return bytes(data)


def _copy_within(data: BytesLike, limit_bytes: int) -> bytes:
    if len(data) > limit_bytes:
        raise CompressionLimitError(f"{len(data)} bytes are more than {limit_bytes}")
    return bytes(data)


# gzip ----------------------------------------------------------------------------------------------------------------

_GZIP_WINDOW: Final = 16 + zlib.MAX_WBITS
_GZIP_PIECE_BYTES: Final = 2 * 1024 * 1024
"""zlib puts together what it unpacks in one go without letting other threads run."""
_GZIP_MAX_MEMBERS: Final = 16
"""Clients write one. Each costs a copy of the rest, so that a megabyte of empty ones would take seconds."""


def _compress_gzip(data: BytesLike, level: int | None) -> bytes:
    packer = zlib.compressobj(zlib.Z_DEFAULT_COMPRESSION if level is None else level, zlib.DEFLATED, _GZIP_WINDOW)
    return packer.compress(data) + packer.flush()


def _decompress_gzip(data: BytesLike, limit_bytes: int) -> bytes:
    pieces: list[bytes] = []
    room = limit_bytes
    rest: BytesLike = data
    for _ in range(_GZIP_MAX_MEMBERS):
        unpacker = zlib.decompressobj(_GZIP_WINDOW)
        while not unpacker.eof:
            try:
                piece = unpacker.decompress(rest, min(room + 1, _GZIP_PIECE_BYTES))
            except zlib.error as error:
                raise _corrupt("gzip", error) from None
            room -= len(piece)
            if room < 0:
                raise _over(limit_bytes, "gzip")
            rest = unpacker.unconsumed_tail
            if not piece and not rest and not unpacker.eof:
                raise _corrupt("gzip", "ends early")
            pieces.append(piece)
        rest = unpacker.unused_data
        if not rest:
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)
    raise _corrupt("gzip", f"more than {_GZIP_MAX_MEMBERS} members")


# snappy --------------------------------------------------------------------------------------------------------------

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES: Final = 32 * 1024


def _compress_snappy(data: BytesLike, level: int | None) -> bytes:
    import snappy

    view = memoryview(data)
    parts = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
        block: bytes = snappy.compress(bytes(view[start : start + _XERIAL_BLOCK_BYTES]))
        parts.append(len(block).to_bytes(4, "big"))
        parts.append(block)
    return b"".join(parts)


def _decompress_snappy(data: BytesLike, limit_bytes: int) -> bytes:
    import snappy

    out = bytearray()
    for block in _snappy_blocks(memoryview(data)):
        if len(out) + _snappy_claimed_size(block) > limit_bytes:
            raise _over(limit_bytes, "snappy")
        try:
            out += snappy.uncompress(block)
        except snappy.UncompressError as error:
            raise _corrupt("snappy", error.__cause__) from None
    return bytes(out)


def _snappy_blocks(view: memoryview) -> Iterator[memoryview]:
    if bytes(view[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        yield view
        return
    position = len(_XERIAL_HEADER)
    while position < len(view):
        start = position + 4
        end = start + int.from_bytes(view[position:start], "big", signed=True)
        if not start <= end <= len(view):
            raise _corrupt("snappy", f"a block ends at {end} of {len(view)}")
        yield view[start:end]
        position = end


def _snappy_claimed_size(block: memoryview) -> int:
    """The varint in front of raw snappy: the library allocates by it before it looks at anything else."""
    size = 0
    for index, byte in enumerate(block[:5]):
        size |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return size
    raise _corrupt("snappy", "no size in front")


# lz4 -----------------------------------------------------------------------------------------------------------------

_LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"
_LZ4_FLAG_CONTENT_SIZE: Final = 0x08
_LZ4_FLAG_DICTIONARY: Final = 0x01
_LZ4_KAFKA_DEFAULT_LEVEL: Final = 9
"""Stands for the fast compressor in Kafka (KIP-390); the others are those of lz4's high compression."""
_LZ4_CONTENT_SIZE_END: Final = 14
_LZ4_MOST_RATIO: Final = 256
"""A byte of it cannot stand for more."""
_LZ4_AT_ONCE_BYTES: Final = 16 * 1024 * 1024
"""What can be more goes in pieces: unpacked at once, it may take three times its size on the way."""
_LZ4_FIRST_PIECE_BYTES: Final = 64 * 1024
_LZ4_PIECE_BYTES: Final = 4 * 1024 * 1024


def _compress_lz4(data: BytesLike, level: int | None, *, broken_checksum: bool) -> bytes:
    import lz4.frame

    fast = level is None or level == _LZ4_KAFKA_DEFAULT_LEVEL
    packed: bytes = lz4.frame.compress(
        data,
        compression_level=0 if fast else max(lz4.frame.COMPRESSIONLEVEL_MINHC, min(level or 0, 12)),
        block_size=lz4.frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        store_size=False,
    )
    return _with_lz4_header_checksum(packed, broken=True) if broken_checksum else packed


def _decompress_lz4(data: BytesLike, limit_bytes: int) -> bytes:
    import lz4.frame

    size_bytes, most_bytes = len(data), min(limit_bytes, _LZ4_AT_ONCE_BYTES)
    if size_bytes * _LZ4_MOST_RATIO > most_bytes or _lz4_claimed_size(data) > most_bytes:
        return _decompress_lz4_in_pieces(data, limit_bytes)
    try:
        unpacked: bytes
        unpacked, read_bytes = lz4.frame.decompress(data, return_bytes_read=True)
    except RuntimeError as error:
        raise _corrupt("lz4", error) from None
    if read_bytes != size_bytes:
        raise _corrupt("lz4", f"{size_bytes - read_bytes} bytes behind its end")
    return unpacked


def _lz4_claimed_size(data: BytesLike) -> int:
    """What the library allocates before it looks at anything else; 0 where the frame does not say."""
    if len(data) > _LZ4_CONTENT_SIZE_END and data[4] & _LZ4_FLAG_CONTENT_SIZE:
        return int.from_bytes(data[6:_LZ4_CONTENT_SIZE_END], "little")
    return 0


def _decompress_lz4_in_pieces(data: BytesLike, limit_bytes: int) -> bytes:
    import lz4.frame

    unpacker = lz4.frame.LZ4FrameDecompressor()
    pieces: list[bytes] = []
    room = limit_bytes
    piece_bytes = _LZ4_FIRST_PIECE_BYTES + 4 * len(data)
    rest: BytesLike = data
    while not unpacker.eof:
        try:
            piece: bytes = unpacker.decompress(rest, max_length=min(piece_bytes, room + 1))
        except RuntimeError as error:
            raise _corrupt("lz4", error) from None
        room -= len(piece)
        if room < 0:
            raise _over(limit_bytes, "lz4")
        if unpacker.needs_input and not unpacker.eof:
            raise _corrupt("lz4", "ends early")
        pieces.append(piece)
        piece_bytes = min(2 * piece_bytes, _LZ4_PIECE_BYTES)
        rest = b""
    if unpacker.unused_data:
        raise _corrupt("lz4", f"{len(unpacker.unused_data)} bytes behind its end")
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _with_lz4_header_checksum(frame: BytesLike, *, broken: bool) -> bytes:
    """`frame` with its header checksum (a byte of an xxHash32) computed anew; if `broken`, over its magic too."""
    changed = bytearray(frame)
    if changed[:4] != _LZ4_MAGIC or len(changed) < 7:
        raise _corrupt("lz4", "no frame header")
    flags = changed[4]
    end = 6 + (8 if flags & _LZ4_FLAG_CONTENT_SIZE else 0) + (4 if flags & _LZ4_FLAG_DICTIONARY else 0)
    if end >= len(changed):
        raise _corrupt("lz4", "ends in its header")
    changed[end] = xxh32(bytes(changed[0 if broken else 4 : end])) >> 8 & 0xFF
    return bytes(changed)


# zstd ----------------------------------------------------------------------------------------------------------------

_ZSTD_DEFAULT_LEVEL: Final = 3
_ZSTD_PIECE_BYTES: Final = 128 * 1024


def _compress_zstd(data: BytesLike, level: int | None) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor(level=_ZSTD_DEFAULT_LEVEL if level is None else level).compress(data)


def _decompress_zstd(data: BytesLike, limit_bytes: int) -> bytes:
    import zstandard

    pieces: list[bytes] = []
    room = limit_bytes
    try:
        with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as reader:
            while piece := reader.read(_ZSTD_PIECE_BYTES):
                room -= len(piece)
                if room < 0:
                    raise _over(limit_bytes, "zstd")
                pieces.append(piece)
    except zstandard.ZstdError as error:
        raise _corrupt("zstd", error) from None
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


_COMPRESSORS: Final[dict[int, Callable[[BytesLike, int | None], bytes]]] = {
    Codec.NONE: _copy,
    Codec.GZIP: _compress_gzip,
    Codec.SNAPPY: _compress_snappy,
    Codec.ZSTD: _compress_zstd,
}
_DECOMPRESSORS: Final[dict[int, Callable[[BytesLike, int], bytes]]] = {
    Codec.NONE: _copy_within,
    Codec.GZIP: _decompress_gzip,
    Codec.SNAPPY: _decompress_snappy,
    Codec.LZ4: _decompress_lz4,
    Codec.ZSTD: _decompress_zstd,
}
