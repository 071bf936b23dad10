"""What reaches the index files: no more than what is new, and nothing that a failed write left behind."""

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest

from kavka.storage.files import Files
from kavka.storage.log_answers import AbortedTransaction
from kavka.storage.offset_index import IndexCache, OffsetIndex
from kavka.storage.time_index import TimeIndex
from kavka.storage.transaction_index import ENTRY, TransactionIndex
from tests.support.partition_logs import append_batch, batch_of, cut, end_transaction, open_log

ABORTS = 40


class TornDisk(Files):
    """Takes a part of a write and fails then, while `tears` says so. `written_bytes`: by suffix of the file."""

    def __init__(self) -> None:
        self.tears = False
        self.written_bytes: dict[str, int] = {}
        self._names: dict[int, str] = {}

    def open(self, path: object, *, create: bool = False, read_only: bool = False) -> int:
        fd = super().open(str(path), create=create, read_only=read_only)
        self._names[fd] = Path(str(path)).suffix
        return fd

    def pwrite(self, fd: int, data: bytes | bytearray | memoryview, position: int) -> int:
        if self.tears:
            if len(data) > 2:
                return Files.pwrite(fd, memoryview(data)[: len(data) // 2], position)
            raise OSError(errno.ENOSPC, "no space left on device")
        name = self._names[fd]
        self.written_bytes[name] = self.written_bytes.get(name, 0) + len(data)
        return Files.pwrite(fd, data, position)


class Index(Protocol):
    def save(self) -> bool: ...

    def truncate_to(self, offset: int) -> None: ...


def offset_index(path: Path, files: Files) -> tuple[Index, Callable[[int], object]]:
    index = OffsetIndex(str(path), 0, files, IndexCache())
    index.start_empty()
    return index, lambda offset: index.append(offset, offset * 10)


def time_index(path: Path, files: Files) -> tuple[Index, Callable[[int], object]]:
    index = TimeIndex(str(path), 0, files)
    index.start_empty()
    return index, lambda offset: index.maybe_append(offset * 100, offset)


def transaction_index(path: Path, files: Files) -> tuple[Index, Callable[[int], object]]:
    index = TransactionIndex(str(path), 0, files)
    return index, lambda offset: index.append(AbortedTransaction(7, offset - 1, offset, offset + 1))


@pytest.mark.parametrize("make", [offset_index, time_index, transaction_index])
def test_what_a_failed_write_left_is_gone_after_a_truncation_and_a_shorter_write(
    tmp_path: Path, make: Callable[[Path, Files], tuple[Index, Callable[[int], object]]]
) -> None:
    disk = TornDisk()
    index, add = make(tmp_path / "torn", disk)
    add(2)
    index.save()
    for offset in range(4, 40, 2):
        add(offset)
    disk.tears = True
    with pytest.raises(OSError, match="no space"):
        index.save()
    disk.tears = False
    index.truncate_to(4)
    add(5)
    index.save()

    whole, add = make(tmp_path / "whole", Files())
    for offset in (2, 5):
        add(offset)
    whole.save()
    assert (tmp_path / "torn").read_bytes() == (tmp_path / "whole").read_bytes()


def test_an_abort_writes_one_entry(tmp_path: Path) -> None:
    disk = TornDisk()
    log = open_log(tmp_path, files=disk)
    for number in range(ABORTS):
        append_batch(log, batch_of(b"v", producer_id=1, producer_epoch=0, base_sequence=number, transactional=True))
        end_transaction(log, 1, aborted=True)

    assert disk.written_bytes[".txnindex"] == ABORTS * ENTRY.size == (tmp_path / f"{0:020d}.txnindex").stat().st_size
    log.close()
    assert len(open_log(tmp_path).aborted_transactions(0, 1000)) == ABORTS


@pytest.mark.parametrize("clean", [True, False])
def test_a_torn_entry_is_told_by_the_batches(tmp_path: Path, clean: bool) -> None:
    log = open_log(tmp_path)
    for number in range(3):
        append_batch(log, batch_of(b"v", producer_id=1, producer_epoch=0, base_sequence=number, transactional=True))
        end_transaction(log, 1, aborted=True)
    aborted = log.aborted_transactions(0, 1000)
    log.close(clean=clean)
    cut(tmp_path / f"{0:020d}.txnindex", by=10)

    log = open_log(tmp_path, clean=clean)
    log.close()

    assert open_log(tmp_path).aborted_transactions(0, 1000) == aborted
