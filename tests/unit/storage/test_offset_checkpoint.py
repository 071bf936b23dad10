"""Offset checkpoints: text there and back, and what is refused."""

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka.storage.files import AnyPath, Files
from kavka.storage.offset_checkpoint import (
    MAX_CHECKPOINT_BYTES,
    CorruptCheckpointError,
    OffsetCheckpoint,
    decode_offsets,
    encode_offsets,
)

TOPICS = st.text("abcXYZ019._-", min_size=1, max_size=249)
OFFSETS = st.integers(0, (1 << 63) - 1)
ENTRIES = st.dictionaries(st.tuples(TOPICS, st.integers(0, (1 << 31) - 1)), OFFSETS, max_size=20)
SAMPLE = b"0\n2\npage_visits 0 1503\npage_visits 1 1498\n"


@given(ENTRIES)
def test_what_is_written_is_read_back(offsets: dict[tuple[str, int], int]) -> None:
    assert decode_offsets(encode_offsets(offsets)) == offsets


def test_text_is_kafkas() -> None:
    assert encode_offsets({("page_visits", 0): 1503, ("page_visits", 1): 1498}) == SAMPLE


def test_an_empty_file_as_kafka_makes_it_at_start_has_no_entries() -> None:
    assert decode_offsets(b"") == {}


@pytest.mark.parametrize("length", range(1, len(SAMPLE) - 1))
def test_a_file_cut_short_is_refused_or_holds_a_shorter_last_number(length: int) -> None:
    try:
        offsets = decode_offsets(SAMPLE[:length])
    except CorruptCheckpointError:
        return
    assert offsets[("page_visits", 0)] == 1503
    assert str(1498).startswith(str(offsets[("page_visits", 1)]))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"1\n0\n", "line 1: version '1'"),
        (b"0\n", "line 2: the number of entries is missing"),
        (b"0\n1\n", "says 1 entries and has 0"),
        (b"0\n0\na 0 1\n", "says 0 entries and has 1"),
        (b"0\n-1\n", "line 2: '-1' is not a number"),
        (b"0\n99999999999\n", "line 2"),
        (b"0\n1\na 0\n", "line 3: not a topic"),
        (b"0\n1\na 0 1 2\n", "line 3: not a topic"),
        (b"0\n1\n 0 1\n", "line 3: not a topic"),
        (b"0\n1\n" + b"a" * 250 + b" 0 1\n", "line 3: not a topic"),
        (b"0\n1\na 2147483648 1\n", "line 3: '2147483648'"),
        (b"0\n1\na 0 9223372036854775808\n", "line 3: '9223372036854775808'"),
        (b"0\n1\na 0 -1\n", "line 3: '-1'"),
        (b"0\n1\na 0 1_0\n", "line 3: '1_0'"),
        (b"0\n1\na +0 1\n", "line 3: '\\+0'"),
        (b"0\n1\na 0 " + b"9" * 5000, "line 3: '9999"),
        (b"0\n1\n\xc3\xa4 0 1\n", "not ASCII"),
    ],
)
def test_a_malformed_text_is_refused_with_the_place(data: bytes, reason: str) -> None:
    with pytest.raises(CorruptCheckpointError, match=reason):
        decode_offsets(data)


def test_random_bytes_are_refused_and_never_crash() -> None:
    generator = random.Random(7)
    for _ in range(2_000):
        data = bytearray(SAMPLE)
        for _ in range(generator.randrange(1, 6)):
            data[generator.randrange(len(data))] = generator.randrange(256)
        try:
            offsets = decode_offsets(bytes(data))
        except CorruptCheckpointError:
            continue
        assert all(0 <= offset < 1 << 63 for offset in offsets.values())


def test_a_missing_file_has_no_entries(tmp_path: Path) -> None:
    assert OffsetCheckpoint(tmp_path / "none", Files()).read() == {}


def test_a_corrupt_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "c").write_bytes(b"\x00" * 20)
    with pytest.raises(CorruptCheckpointError, match=str(tmp_path / "c")):
        OffsetCheckpoint(tmp_path / "c", Files()).read()


def test_a_huge_file_is_refused_unread(tmp_path: Path) -> None:
    with (tmp_path / "c").open("wb") as file:
        file.truncate(MAX_CHECKPOINT_BYTES + 1)
    with pytest.raises(CorruptCheckpointError, match="bytes; at most"):
        OffsetCheckpoint(tmp_path / "c", Files()).read()


def test_an_unchanged_checkpoint_is_not_written_again(tmp_path: Path) -> None:
    files = _CountingFiles()
    checkpoint = OffsetCheckpoint(tmp_path / "c", files)
    assert checkpoint.write({("a", 0): 1})
    assert not checkpoint.write({("a", 0): 1})
    assert checkpoint.write({("a", 0): 2})
    assert files.writes == 2
    again = OffsetCheckpoint(tmp_path / "c", files)
    assert again.read() == {("a", 0): 2}
    assert not again.write({("a", 0): 2})


class _CountingFiles(Files):
    def __init__(self) -> None:
        self.writes = 0

    def write_atomically(self, path: AnyPath, data: bytes | bytearray) -> None:
        self.writes += 1
        super().write_atomically(path, data)
