"""An index of aborted transactions that clients made long: little of it is in memory, one more costs as the first."""

import errno
import tracemalloc
from pathlib import Path

import pytest

from kavka.storage.files import Files
from kavka.storage.log_answers import AbortedTransaction
from kavka.storage.offset_index import CorruptIndexError
from kavka.storage.transaction_index import ENTRY, TransactionIndex
from tests.support.partition_logs import cut

ENTRIES = 3000


class CountingFiles(Files):
    """Counts reads and the bytes that are read."""

    def __init__(self) -> None:
        self.read_count = 0
        self.read_bytes_count = 0
        self.full = False

    def pread(self, fd: int, size_bytes: int, position: int) -> bytes:
        data = Files.pread(fd, size_bytes, position)
        self.read_count += 1
        self.read_bytes_count += len(data)
        return data

    def pwrite(self, fd: int, data: bytes | bytearray | memoryview, position: int) -> int:
        if self.full:
            raise OSError(errno.ENOSPC, "no space left on device")
        return Files.pwrite(fd, data, position)


def entry(number: int) -> AbortedTransaction:
    """Of two offsets: a record and its marker."""
    return AbortedTransaction(number % 7, 2 * number, 2 * number + 1, 2 * number + 2)


def filled(path: Path, files: Files, count: int = ENTRIES) -> TransactionIndex:
    index = TransactionIndex(str(path), 0, files)
    for number in range(count):
        index.append(entry(number))
    index.save()
    return index


@pytest.mark.parametrize("reopened", [False, True])
@pytest.mark.parametrize(
    ("first", "last"), [(0, 0), (0, 1), (1499, 1500), (10, 400), (ENTRIES - 1, ENTRIES - 1), (0, ENTRIES - 1)]
)
def test_a_range_has_its_transactions_and_no_others(tmp_path: Path, first: int, last: int, reopened: bool) -> None:
    index = filled(tmp_path / "x.txnindex", Files())
    if reopened:
        index = TransactionIndex(index.path, 0, Files())

    found, complete = index.collect(2 * first + 1, 2 * last + 1)

    assert found == [entry(number) for number in range(first, last + 1)]
    assert complete
    assert index.collect(2 * ENTRIES, 3 * ENTRIES) == ([], False)


def test_a_search_reads_little_of_a_long_index(tmp_path: Path) -> None:
    files = CountingFiles()
    index = filled(tmp_path / "x.txnindex", files)
    files.read_bytes_count = 0

    assert index.collect(2 * ENTRIES - 2, 2 * ENTRIES) == ([entry(ENTRIES - 1)], True)
    assert index.collect(2 * ENTRIES, 2 * ENTRIES + 5) == ([], False)

    assert files.read_bytes_count < 20 * ENTRY.size
    assert index.count() == ENTRIES


@pytest.mark.parametrize("start", [0, 1, 119, 120, 237, 239])
def test_a_short_index_is_read_at_once(tmp_path: Path, start: int) -> None:
    files = CountingFiles()
    index = filled(tmp_path / "x.txnindex", files, 120)
    files.read_count = 0

    assert index.collect(start, 240) == ([entry(number) for number in range(start // 2, 120)], True)

    assert files.read_count == 1


def test_what_the_file_has_is_not_kept_in_memory(tmp_path: Path) -> None:
    tracemalloc.start()
    try:
        index = filled(tmp_path / "x.txnindex", Files())
        assert len(index.collect(0, 2 * ENTRIES)[0]) == ENTRIES
        kept_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept_bytes < 5 * ENTRIES


def test_what_the_disk_refused_is_found_and_saved_later(tmp_path: Path) -> None:
    files = CountingFiles()
    index = filled(tmp_path / "x.txnindex", files, 5)
    files.full = True
    index.append(entry(5))
    with pytest.raises(OSError, match="no space"):
        index.save()

    assert index.collect(8, 12)[0] == [entry(4), entry(5)]
    files.full = False
    assert index.save()
    assert not index.save()
    assert TransactionIndex(index.path, 0, files).collect(0, 100)[0] == [entry(number) for number in range(6)]


@pytest.mark.parametrize("kept", [0, 1, 5, 6])
def test_a_truncation_takes_entries_from_file_and_memory(tmp_path: Path, kept: int) -> None:
    files = CountingFiles()
    index = filled(tmp_path / "x.txnindex", files, 5)
    files.full = True
    index.append(entry(5))
    index.append(entry(6))

    index.truncate_to(2 * kept)
    files.full = False
    index.append(entry(kept))
    index.save()

    expected = [entry(number) for number in range(kept + 1)]
    assert index.collect(0, 100)[0] == expected
    assert TransactionIndex(index.path, 0, files).collect(0, 100)[0] == expected


def test_an_index_that_loses_its_end_while_it_is_used_is_corrupt(tmp_path: Path) -> None:
    index = filled(tmp_path / "x.txnindex", Files())
    cut(tmp_path / "x.txnindex", by=10 * ENTRY.size)

    with pytest.raises(CorruptIndexError):
        index.collect(0, 2 * ENTRIES)
