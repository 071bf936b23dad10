"""Indexes that the recovery point vouches for are on the disk, however they came to be: no scan makes up for them."""

import errno
import random
from pathlib import Path

import pytest

from kavka.protocol.errors import BrokerError
from kavka.storage.files import AnyPath, Files
from kavka.storage.offset_checkpoint import RECOVERY_POINT_FILE, OffsetCheckpoint
from kavka.storage.partition_log import PartitionLog
from tests.support.compaction import roll
from tests.support.crash_files import CrashFiles, FoldersSurvive
from tests.support.log_managers import ID, FailingFiles, ManagerRig, create_log
from tests.support.log_managers import append as append_values
from tests.support.partition_logs import START_MS, Jobs, append, end_transaction, open_log

FOLDER = Path("/crash/visits-0")
STEM = str(FOLDER / f"{0:020d}")
SEGMENT_BYTES = 400
ABORTED = [(7, 0, 1)]


class DyingFiles(CrashFiles):
    """Fails for good from the `left`th change on."""

    left = -1

    @classmethod
    def after(cls, files: CrashFiles, left: int) -> "DyingFiles":
        found = cls()
        found.__dict__.update(files.kill().__dict__)
        found.left = left
        return found

    def pwrite(self, fd: int, data: bytes | bytearray | memoryview, position: int) -> int:
        self._count()
        return super().pwrite(fd, data, position)

    def fsync(self, fd: int) -> None:
        self._count()
        super().fsync(fd)

    def rename(self, source: AnyPath, target: AnyPath) -> None:
        self._count()
        super().rename(source, target)

    def unlink(self, path: AnyPath) -> None:
        self._count()
        super().unlink(path)

    def fsync_directory(self, path: AnyPath) -> None:
        self._count()
        super().fsync_directory(path)

    def _count(self) -> None:
        if self.left == 0:
            raise OSError(errno.EIO, "the power is gone")
        self.left -= 1


def abort_one(log: PartitionLog) -> None:
    append(log, b"aborted" * 10, producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    end_transaction(log, 7, aborted=True)


def aborted_in(log: PartitionLog) -> list[tuple[int, int, int]]:
    return [(each.producer_id, each.first_offset, each.last_offset) for each in log.aborted_transactions(0, 1 << 60)]


@pytest.mark.parametrize("lost", [(), (".txnindex",), (".index", ".timeindex")], ids=["nothing", "aborts", "others"])
def test_what_a_recovery_indexed_is_durable_where_the_recovery_point_vouches_for_it(lost: tuple[str, ...]) -> None:
    files = CrashFiles()
    log = open_log(FOLDER, files=files, jobs=Jobs(), segment_bytes=SEGMENT_BYTES)
    abort_one(log)
    log.flush()
    point = log.recovery_point
    files = files.kill()
    for suffix in lost:
        files.unlink(STEM + suffix)
        files.fsync_directory(FOLDER)

    log = open_log(FOLDER, files=files, jobs=Jobs(), clean=False, recovery_point=point, segment_bytes=SEGMENT_BYTES)
    append(log, b"next" * 60)
    assert log.segment_count == 2
    # The power goes before the flush that the roll asked for.
    after = files.crash(FoldersSurvive())

    found = open_log(FOLDER, files=after, clean=False, recovery_point=point, segment_bytes=SEGMENT_BYTES)
    assert aborted_in(found) == ABORTED
    newest = found.offset_for_time(START_MS)
    assert newest is not None
    assert newest.offset == 0


def damaged(suffix: str) -> CrashFiles:
    """A log that was stopped cleanly, with two segments; an index of the first is lost."""
    files = CrashFiles()
    log = open_log(FOLDER, files=files, jobs=Jobs())
    abort_one(log)
    roll(log)
    append(log, b"next")
    log.close()
    files.unlink(STEM + suffix)
    files.fsync_directory(FOLDER)
    return files


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("clean", [True, False])
def test_rebuilt_indexes_are_durable_before_they_are_used(suffix: str, clean: bool) -> None:
    files = damaged(suffix)
    log = open_log(FOLDER, files=files, jobs=Jobs(), recovery_point=3)
    append(log, b"more")
    log.flush()
    if clean:
        log.close()

    found = open_log(FOLDER, files=files.crash(FoldersSurvive()), clean=clean, recovery_point=3)

    assert aborted_in(found) == ABORTED


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_rebuild_that_the_power_cuts_short_is_done_again(suffix: str) -> None:
    step = 0
    while True:
        files = DyingFiles.after(damaged(suffix), step)
        try:
            open_log(FOLDER, files=files, jobs=Jobs(), clean=False, recovery_point=3)
        except OSError:
            pass
        else:
            break
        for chance in (FoldersSurvive(), *map(random.Random, range(20))):
            found = open_log(FOLDER, files=files.crash(chance), clean=False, recovery_point=3)
            assert aborted_in(found) == ABORTED, f"step {step}"
        step += 1
    assert step > 6


@pytest.mark.parametrize("seed", range(10))
def test_a_segment_that_is_closed_at_the_recovery_point_is_found_by_time_after_a_power_cut(seed: int) -> None:
    files, jobs = CrashFiles(), Jobs()
    log = open_log(FOLDER, files=files, jobs=jobs, segment_bytes=SEGMENT_BYTES)
    append(log, b"a" * 150)
    append(log, b"b" * 60)
    log.flush()
    stored = log.stored_recovery_point
    append(log, b"c" * 300, timestamp_ms=START_MS + 5000)
    assert log.published[3] == (0, log.recovery_point)
    assert log.stored_recovery_point == stored == 1

    after = files.crash(FoldersSurvive() if seed == 0 else random.Random(seed))
    found = open_log(FOLDER, files=after, clean=False, recovery_point=stored, segment_bytes=SEGMENT_BYTES)

    first = found.offset_for_time(START_MS)
    assert first is not None
    assert first.offset == 0
    jobs.run_all()
    assert log.stored_recovery_point == log.recovery_point == 2


def test_a_checkpoint_vouches_for_a_segment_once_its_last_entries_are_durable(tmp_path: Path) -> None:
    rig = ManagerRig([tmp_path])
    manager = rig.start()
    log = create_log(manager, "visits", 0, ID, is_new=True)
    checkpoint = OffsetCheckpoint(tmp_path / RECOVERY_POINT_FILE, Files())
    append_values(log, b"1", b"2")
    log.flush()
    manager.checkpoint_recovery_points()
    assert checkpoint.read() == {("visits", 0): 1}
    append_values(log, b"3")
    manager.checkpoint_recovery_points()
    assert checkpoint.read() == {("visits", 0): 2}
    manager.close()
    assert checkpoint.read() == {("visits", 0): 3}


def test_a_flush_that_cannot_save_the_indexes_leaves_the_recovery_point(tmp_path: Path) -> None:
    files = FailingFiles()
    jobs = Jobs()
    log = open_log(tmp_path, files=files, jobs=jobs)
    files.fail("open", ".txnindex", errno.ENOSPC)
    abort_one(log)

    with pytest.raises(BrokerError):
        log.flush()

    assert log.recovery_point == 0
    files.heal()
    log.flush()
    assert (log.recovery_point, jobs.failures) == (2, [])
    log.close(clean=False)
    assert aborted_in(open_log(tmp_path, clean=False, recovery_point=2)) == ABORTED


def test_a_start_after_a_kill_leaves_index_files_alone_that_are_right(tmp_path: Path) -> None:
    log = open_log(tmp_path, index_interval_bytes=0)
    for number in range(3):
        append(log, b"%d" % number, timestamp_ms=START_MS + number)
    append(log, b"aborted", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    end_transaction(log, 7, aborted=True)
    log.close()
    indexes = [tmp_path / f"{0:020d}{suffix}" for suffix in (".index", ".timeindex", ".txnindex")]
    before = [(path.stat().st_ino, path.stat().st_mtime_ns) for path in indexes]

    log = open_log(tmp_path, clean=False, recovery_point=5, index_interval_bytes=0)

    assert log.recovered_segments == 1
    assert [(path.stat().st_ino, path.stat().st_mtime_ns) for path in indexes] == before
    log.close()


def test_a_clean_start_fsyncs_nothing(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    abort_one(log)
    roll(log)
    append(log, b"next")
    log.close()
    files = FailingFiles()

    open_log(tmp_path, files=files).close()

    assert files.calls.get("fsync", 0) + files.calls.get("fsync_directory", 0) == 0
