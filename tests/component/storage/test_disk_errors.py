"""A disk that is full, broken, or takes only a part."""

import errno
from pathlib import Path

import pytest

from kavka.protocol.errors import ErrorCode
from kavka.storage.append_result import AppendError
from kavka.storage.files import Files
from tests.support.crash_files import CrashFiles
from tests.support.partition_logs import Jobs, append, open_log, read_all


class Disk(Files):
    """The real files, with a fault that can be switched on."""

    def __init__(self) -> None:
        self.error = 0
        self.short_by = 0
        self.truncate_error = 0

    def pwrite(self, fd: int, data: bytes | bytearray | memoryview, position: int) -> int:
        if self.short_by:
            return Files.pwrite(fd, memoryview(data)[: -self.short_by], position)
        if self.error:
            raise OSError(self.error, "broken")
        return Files.pwrite(fd, data, position)

    def ftruncate(self, fd: int, size_bytes: int) -> None:
        if self.truncate_error:
            raise OSError(self.truncate_error, "broken")
        Files.ftruncate(fd, size_bytes)

    def fsync(self, fd: int) -> None:
        if self.error:
            raise OSError(self.error, "broken")
        Files.fsync(fd)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_refuses_appends_and_comes_back_by_itself(tmp_path: Path, number: int) -> None:
    disk, jobs = Disk(), Jobs()
    log = open_log(tmp_path, files=disk, jobs=jobs)
    append(log, b"before")
    disk.error = number

    with pytest.raises(AppendError) as caught:
        append(log, b"refused", producer_id=1, producer_epoch=0, base_sequence=0)

    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert caught.value.code.retriable
    assert [value for _, value in read_all(log)] == [b"before"]
    disk.error = 0
    append(log, b"after", producer_id=1, producer_epoch=0, base_sequence=0)
    assert [value for _, value in read_all(log)] == [b"before", b"after"]
    assert jobs.failures == []


@pytest.mark.parametrize("number", [errno.EIO, errno.EROFS])
def test_a_broken_disk_is_reported(tmp_path: Path, number: int) -> None:
    disk, jobs = Disk(), Jobs()
    log = open_log(tmp_path, files=disk, jobs=jobs)
    disk.error = number

    with pytest.raises(AppendError) as caught:
        append(log, b"refused")

    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert [error.errno for error in jobs.failures] == [number]


def test_a_short_write_is_cut_off_again(tmp_path: Path) -> None:
    disk, jobs = Disk(), Jobs()
    log = open_log(tmp_path, files=disk, jobs=jobs)
    append(log, b"before")
    size = (tmp_path / f"{0:020d}.log").stat().st_size
    disk.short_by = 10

    with pytest.raises(AppendError):
        append(log, b"refused")

    assert (tmp_path / f"{0:020d}.log").stat().st_size == size
    assert jobs.failures == []


def test_a_write_that_cannot_be_undone_takes_the_directory_offline(tmp_path: Path) -> None:
    disk, jobs = Disk(), Jobs()
    log = open_log(tmp_path, files=disk, jobs=jobs)
    disk.short_by, disk.truncate_error = 10, errno.EIO

    with pytest.raises(AppendError):
        append(log, b"refused")

    assert [error.errno for error in jobs.failures] == [errno.EIO]
    disk.short_by = disk.truncate_error = 0
    assert read_all(open_log(tmp_path, clean=False)) == []


def test_a_failed_flush_leaves_the_recovery_point_where_it_is(tmp_path: Path) -> None:
    disk, jobs = Disk(), Jobs()
    log = open_log(tmp_path, files=disk, jobs=jobs)
    append(log, b"a")
    log.flush()
    append(log, b"b")
    disk.error = errno.EIO

    with pytest.raises(AppendError):
        log.flush()

    assert log.recovery_point == 1


def test_a_roll_on_a_full_disk_keeps_the_old_segment(tmp_path: Path) -> None:
    files, jobs = CrashFiles(), Jobs()
    log = open_log(tmp_path, files=files, jobs=jobs, segment_bytes=150, index_interval_bytes=0)
    append(log, b"x" * 20)
    append(log, b"y" * 20)
    files.full = True

    for _ in range(3):
        with pytest.raises(AppendError) as caught:
            append(log, b"z" * 20)
        assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR

    files.full = False
    append(log, b"z" * 20)
    assert [value for _, value in read_all(log)] == [b"x" * 20, b"y" * 20, b"z" * 20]
    assert jobs.failures == []


@pytest.mark.parametrize(("interval", "appended", "flushed"), [(1, 1, 1), (3, 2, 0), (3, 3, 3), (3, 5, 3)])
def test_the_flush_interval_forces_messages(tmp_path: Path, interval: int, appended: int, flushed: int) -> None:
    log = open_log(tmp_path, flush_messages=interval)
    for _ in range(appended):
        append(log, b"a")

    assert log.recovery_point == flushed


def test_the_fsync_of_a_roll_runs_in_the_background(tmp_path: Path) -> None:
    jobs = Jobs()
    log = open_log(tmp_path, jobs=jobs, segment_bytes=100)
    append(log, b"x" * 20)
    append(log, b"x" * 20)
    assert log.recovery_point == 0

    jobs.run_all()

    assert log.recovery_point == 1


def test_a_closed_log_refuses_appends_and_blames_no_disk(tmp_path: Path) -> None:
    jobs = Jobs()
    log = open_log(tmp_path, jobs=jobs)
    log.close()
    with pytest.raises(AppendError) as caught:
        append(log, b"late")
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert jobs.failures == []
