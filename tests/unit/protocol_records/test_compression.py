"""The codecs: framings that clients write, damage, and limits that are really kept."""

import os
import struct
import subprocess
import sys
import tracemalloc
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import cache

import lz4.frame
import pytest
import snappy
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from kavka.protocol.records.compression import Codec, compress, decompress
from kavka.protocol.records.errors import CompressionLimitError, CorruptRecordsError, UnsupportedCodecError
from tests.support.examples import examples

PACKING = [codec for codec in Codec if codec != Codec.NONE]
MIB = 1 << 20
XERIAL = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)


@examples(50)
@given(st.sampled_from(Codec), st.lists(st.binary(max_size=50), max_size=3), st.integers(1, 2000))
def test_what_was_packed_unpacks(codec: Codec, parts: list[bytes], times: int) -> None:
    data = b"".join(parts) * times
    for kind in (bytes, bytearray, memoryview):
        assert decompress(codec, compress(codec, kind(data)), limit_bytes=len(data)) == data


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("size", [1, 1000, 100_000, 3 * MIB])
def test_the_limit_is_exact(codec: Codec, size: int) -> None:
    data = os.urandom(100) * (size // 100 + 1)
    packed = compress(codec, data[:size])

    assert decompress(codec, packed, limit_bytes=size) == data[:size]
    with pytest.raises(CompressionLimitError):
        decompress(codec, packed, limit_bytes=size - 1)


@pytest.mark.parametrize(("codec", "level"), [(1, 1), (1, 9), (3, 1), (3, 9), (3, 17), (4, -5), (4, 1), (4, 22)])
def test_kafkas_levels_are_taken(codec: int, level: int) -> None:
    data = b"page visits " * 1000
    assert decompress(codec, compress(codec, data, level)) == data


@pytest.mark.parametrize("codec", [-1, 5, 6, 7])
def test_unknown_codecs_are_told_apart(codec: int) -> None:
    with pytest.raises(UnsupportedCodecError):
        decompress(codec, b"")
    with pytest.raises(UnsupportedCodecError):
        compress(codec, b"")


@pytest.mark.parametrize("magic", [0, 1])
def test_zstd_needs_magic_2(magic: int) -> None:
    with pytest.raises(UnsupportedCodecError):
        decompress(Codec.ZSTD, compress(Codec.ZSTD, b"x"), magic=magic)
    with pytest.raises(UnsupportedCodecError):
        compress(Codec.ZSTD, b"x", magic=magic)


def test_both_framings_of_snappy_are_read() -> None:
    data = b"abc" * 50_000
    blocks = [snappy.compress(data[start : start + 32768]) for start in range(0, len(data), 32768)]
    xerial = XERIAL + b"".join(struct.pack(">i", len(block)) + block for block in blocks)

    assert decompress(Codec.SNAPPY, snappy.compress(data)) == data
    assert decompress(Codec.SNAPPY, xerial) == data
    assert compress(Codec.SNAPPY, data) == xerial


def test_gzip_members_and_zstd_frames_may_follow_each_other() -> None:
    for codec in (Codec.GZIP, Codec.ZSTD):
        assert decompress(codec, compress(codec, b"abc") + compress(codec, b"def")) == b"abcdef"


def test_lz4_of_magic_0_has_a_header_checksum_that_others_refuse() -> None:
    packed = compress(Codec.LZ4, b"abc" * 100, magic=0)

    with pytest.raises(CorruptRecordsError):
        decompress(Codec.LZ4, packed)
    assert decompress(Codec.LZ4, packed, magic=0) == b"abc" * 100
    assert decompress(Codec.LZ4, compress(Codec.LZ4, b"abc" * 100), magic=0) == b"abc" * 100


def test_lz4_of_magic_0_may_state_its_size() -> None:
    packed = bytearray(lz4.frame.compress(b"abc" * 100, store_size=True))
    packed[14] ^= 0xFF
    assert decompress(Codec.LZ4, packed, magic=0) == b"abc" * 100


@pytest.mark.parametrize("codec", PACKING)
def test_packed_data_cut_anywhere_never_unpacks_to_the_whole(codec: Codec) -> None:
    data = bytes(range(256)) * 3
    packed = compress(codec, data)
    for cut in range(len(packed)):
        try:
            assert decompress(codec, packed[:cut]) != data
        except CorruptRecordsError:
            continue
        assert codec in (Codec.SNAPPY, Codec.ZSTD), "only these can end between two pieces"


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.SNAPPY])
def test_bytes_behind_the_end_are_corrupt(codec: Codec) -> None:
    with pytest.raises(CorruptRecordsError):
        decompress(codec, compress(codec, b"abc") + b"junk")


@examples(200)
@given(st.sampled_from(PACKING), st.binary(max_size=100), st.sampled_from([0, 1, 2]))
def test_random_bytes_raise_nothing_but_our_errors(codec: Codec, data: bytes, magic: int) -> None:
    with suppress(CorruptRecordsError):
        decompress(codec, data, limit_bytes=MIB, magic=magic)
    with suppress(CorruptRecordsError):
        decompress(codec, XERIAL + data, limit_bytes=MIB, magic=magic)


@examples(200)
@given(st.sampled_from(PACKING), st.data())
def test_damaged_data_raises_nothing_but_our_errors(codec: Codec, data: st.DataObject) -> None:
    packed = bytearray(compress(codec, b"abcd" * 100 + bytes(range(200))))
    packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    with suppress(CorruptRecordsError):
        decompress(codec, packed, limit_bytes=MIB)


@cache
def gzip_bomb() -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return b"".join(packer.compress(bytes(MIB)) for _ in range(256)) + packer.flush()


@cache
def snappy_bomb() -> bytes:
    """A literal byte, then copies of 64 bytes from one byte back: 256 MiB."""
    return b"\x80\x80\x80\x80\x01" + b"\0a" + b"\xfe\1\0" * (256 * MIB // 64)


@cache
def snappy_xerial_bomb() -> bytes:
    block: bytes = snappy.compress(bytes(MIB))
    return XERIAL + (struct.pack(">i", len(block)) + block) * 256


def snappy_lying_about_its_size() -> bytes:
    return b"\xff\xff\xff\xff\x0f" + b"\0a"


@cache
def lz4_bomb() -> bytes:
    packer = lz4.frame.LZ4FrameCompressor(block_linked=False, block_size=lz4.frame.BLOCKSIZE_MAX4MB)
    packed = [packer.begin(), *(packer.compress(bytes(MIB)) for _ in range(256)), packer.flush()]
    return b"".join(packed)


def zstd_bomb_that_states_its_size() -> bytes:
    return zstandard.ZstdCompressor().compress(bytes(256 * MIB))


@cache
def zstd_bomb_without_size() -> bytes:
    packer = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    return b"".join(packer.compress(bytes(MIB)) for _ in range(256)) + packer.flush()


BOMBS = [
    (Codec.GZIP, gzip_bomb),
    (Codec.SNAPPY, snappy_bomb),
    (Codec.SNAPPY, snappy_xerial_bomb),
    (Codec.SNAPPY, snappy_lying_about_its_size),
    (Codec.LZ4, lz4_bomb),
    (Codec.ZSTD, zstd_bomb_that_states_its_size),
    (Codec.ZSTD, zstd_bomb_without_size),
]
MEASURE = """
import resource, sys
from kavka.protocol.records.compression import decompress
from kavka.protocol.records.errors import CompressionLimitError
codec, limit = int(sys.argv[1]), int(sys.argv[2])
for warm_up in (1, 0):
    data = sys.stdin.buffer.read(int(sys.stdin.buffer.readline()))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        decompress(codec, data, limit_bytes=limit)
    except CompressionLimitError:
        print("refused", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    else:
        print("taken", 0)
"""


@pytest.mark.parametrize(("codec", "bomb"), BOMBS, ids=lambda value: getattr(value, "__name__", None))
def test_a_bomb_is_refused_within_memory_of_twice_the_limit(codec: Codec, bomb: Callable[[], bytes]) -> None:
    """Measured from outside, as the libraries allocate behind Python's back."""
    packed = bomb()
    limit = 16 * MIB
    small = compress(codec, b"small")

    text_in = b"%d\n%s%d\n%s" % (len(small), small, len(packed), packed)
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(int(codec)), str(limit)], input=text_in, capture_output=True, check=True
    )

    _, (verdict, grown_kib) = (line.split() for line in done.stdout.decode().splitlines())
    assert verdict == "refused"
    assert int(grown_kib) * 1024 < 2 * limit + 8 * MIB


@pytest.mark.parametrize(("codec", "bomb"), BOMBS, ids=lambda value: getattr(value, "__name__", None))
def test_a_bomb_allocates_no_more_python_objects_than_its_limit_allows(codec: Codec, bomb: Callable[[], bytes]) -> None:
    packed = bomb()
    tracemalloc.start()
    try:
        with pytest.raises(CompressionLimitError):
            decompress(codec, packed, limit_bytes=MIB)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * MIB + 9 * len(packed)


def test_many_empty_pieces_cost_neither_memory_nor_minutes() -> None:
    empty_blocks = XERIAL + b"\0\0\0\1\0" * 50_000
    empty_members = compress(Codec.GZIP, b"") * 50_000

    assert decompress(Codec.SNAPPY, empty_blocks) == b""
    with pytest.raises(CorruptRecordsError, match="members"):
        decompress(Codec.GZIP, empty_members)
