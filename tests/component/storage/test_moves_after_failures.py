"""What a move between log directories may not do to a log after power cuts, and beside what lies in its way."""

import contextlib
import errno
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kavka.protocol.errors import BrokerError
from kavka.protocol.records.batch import iter_batch_headers
from kavka.storage import log_moves
from kavka.storage.batch_scan import BatchPlace
from kavka.storage.cleaner.jobs import DISK, CleaningFailed, CleanJob, Reply
from kavka.storage.cleaner.rounds import clean
from kavka.storage.cleaner.selection import look_at
from kavka.storage.files import AnyPath, Files
from kavka.storage.log_exchange import exchange
from kavka.storage.partition_log import PartitionLog
from kavka.storage.segment import Segment
from tests.support.cleaner_stage import fill
from tests.support.compaction import InlineWorker
from tests.support.log_managers import ID, FailingFiles, ManagerRig, append, create_log, read_values
from tests.support.moving_logs import KEY, WatchedFiles, begin, finish, other_directory


@pytest.fixture
def rig(tmp_path: Path) -> ManagerRig:
    return ManagerRig([tmp_path / "a", tmp_path / "b"])


def filled(rig: ManagerRig, count: int) -> PartitionLog:
    log = create_log(rig.start(), *KEY, ID)
    append_numbers(log, count)
    return log


def append_numbers(log: PartitionLog, count: int) -> None:
    for number in range(log.log_end_offset, log.log_end_offset + count):
        append(log, b"%d" % number)
    log.advance_high_watermark(log.log_end_offset)


def numbers(count: int) -> list[bytes | None]:
    return [b"%d" % number for number in range(count)]


@pytest.mark.parametrize("kept", [25, 0])
def test_what_a_power_cut_took_from_the_log_goes_from_the_copy_before_others_get_its_offsets(
    rig: ManagerRig, kept: int
) -> None:
    log = filled(rig, kept)
    log.flush()
    rig.manager.checkpoint_recovery_points()
    (file,) = log.directory.glob("*.log")
    durable_bytes = file.stat().st_size
    append_numbers(log, 40 - kept)
    copy = begin(rig.manager)
    while copy.future.log_end_offset < 39:
        copy.step(100)
    copy.future.flush()
    rig.kill()
    os.truncate(file, durable_bytes)
    log = create_log(rig.start(), *KEY, ID)
    assert log.log_end_offset == kept
    for number in range(45):
        append(log, b"newer %d" % number)
    finish(begin(rig.manager))
    assert read_values(log) == numbers(kept) + [b"newer %d" % number for number in range(45)]
    rig.manager.close()


def test_a_folder_of_the_same_name_is_not_taken_for_the_log_because_a_move_did_not_end(rig: ManagerRig) -> None:
    log = filled(rig, 12)
    source, target = log.directory, other_directory(rig.manager).path
    copy = begin(rig.manager)
    # Somebody's, without a topic id: it is left alone at a start.
    namesake = target / "visits-0"
    namesake.mkdir()
    (namesake / f"{0:020}.log").write_bytes(next(source.glob("*.log")).read_bytes()[:200])
    with contextlib.suppress(BrokerError):
        finish(copy)
    append_numbers(log, 3)
    rig.kill()
    manager = rig.make()
    manager.lock_directories()
    manager.load(lambda *_: ID)
    again = manager.get(*KEY)
    assert again is not None
    assert (again.directory, read_values(again)) == (source, numbers(15))
    assert namesake.is_dir()
    manager.close()


def test_topics_may_be_called_as_marks_are(rig: ManagerRig) -> None:
    log = filled(rig, 5)
    for topic in ("kavka-moved", "kavka-moved.visits"):
        create_log(rig.manager, topic, 0, ID)
        create_log(rig.manager, topic, 1, ID)
    finish(begin(rig.manager))
    assert read_values(log) == numbers(5)
    rig.manager.close()


@pytest.mark.parametrize("is_folder", [True, False])
def test_a_move_to_where_something_has_the_logs_name_is_refused_or_given_up_and_harms_no_directory(
    rig: ManagerRig, is_folder: bool
) -> None:
    log = filled(rig, 12)
    source, target = log.directory, other_directory(rig.manager)
    copy = begin(rig.manager)
    taken = target.path / "visits-0"
    if is_folder:
        taken.mkdir()
        (taken / "note").touch()
    else:
        taken.touch()
    finish(copy)
    assert (target.online, rig.failures, log.directory, log.is_moving) == (True, [], source, False)
    assert rig.manager.moves.futures == []
    with pytest.raises(BrokerError, match="move it away"):
        begin(rig.manager)
    append_numbers(log, 2)
    assert (read_values(log), rig.failures) == (numbers(14), [])
    rig.manager.close()


def test_a_directory_that_fails_in_the_last_step_takes_the_log_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = WatchedFiles()
    rig = ManagerRig([tmp_path / "a", tmp_path / "b"], files=files)
    log = filled(rig, 12)
    source, target = log.directory.parent, other_directory(rig.manager)
    copy = begin(rig.manager)

    def fail_target(path: AnyPath) -> None:
        if Path(path) == source:
            rig.manager.directories.fail(target, OSError(errno.EIO, "another log met this"))

    monkeypatch.setattr(files, "fsync_directory", fail_target)
    finish(copy)
    assert (rig.manager.get(*KEY), rig.manager.is_offline(*KEY)) == (None, True)
    assert [key for _, keys, _ in rig.failures for key in keys] == [KEY]
    rig.manager.close()


def test_a_directory_that_fails_in_the_last_step_leaves_the_log_that_has_moved_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = WatchedFiles()
    rig = ManagerRig([tmp_path / "a", tmp_path / "b"], files=files)
    log = filled(rig, 12)
    source, target = rig.manager.directory_of(log), other_directory(rig.manager)
    copy = begin(rig.manager)

    def fail_source(path: AnyPath) -> None:
        if Path(path) == target.path and (target.path / "visits-0").exists():
            rig.manager.directories.fail(source, OSError(errno.EIO, "another log met this"))

    monkeypatch.setattr(files, "fsync_directory", fail_source)
    finish(copy)

    manager = rig.manager
    assert (manager.get(*KEY), manager.is_offline(*KEY), manager.logs_in(target)) == (log, False, [log])
    append_numbers(log, 3)
    manager.close()
    recovery_points = target.checkpoints.read().recovery_points
    assert recovery_points == {KEY: 15}, "a clean stop made it durable"


def test_who_still_reads_the_former_files_blames_their_disk(tmp_path: Path) -> None:
    files = FailingFiles()
    rig = ManagerRig([tmp_path / "a", tmp_path / "b"], files=files)
    log = filled(rig, 12)
    source, target = rig.manager.directory_of(log), other_directory(rig.manager)
    piece = log.read(0, 1 << 20, min_one=True, end_offset=12)
    finish(begin(rig.manager))
    files.fail("pread", f"{source.path}/", errno.EIO)

    with pytest.raises(BrokerError):
        piece.read_bytes()

    assert (source.online, target.online) == (False, True)
    append_numbers(log, 1)
    assert (rig.manager.get(*KEY), read_values(log)) == (log, numbers(13))
    rig.manager.close()


class MovedUnder(InlineWorker):
    """A worker whose disk breaks when the log has moved to another one."""

    def __init__(self, finish_move: Callable[[], None]) -> None:
        super().__init__(Files())
        self._finish_move = finish_move

    def run(self, job: CleanJob) -> Iterator[Reply]:
        self._finish_move()
        yield CleaningFailed(DISK, "of the former disk", errno.EIO)


def test_a_compaction_that_still_works_on_the_former_disk_blames_that_one(tmp_path: Path) -> None:
    rig = ManagerRig([tmp_path / "a", tmp_path / "b"])
    rig.overrides["visits"] = {"cleanup.policy": "compact"}
    log = create_log(rig.start(), *KEY, ID)
    fill(log)
    log.advance_high_watermark(log.log_end_offset)
    source, target = rig.manager.directory_of(log), other_directory(rig.manager)
    worker = MovedUnder(lambda: finish(begin(rig.manager)))

    with pytest.raises(BrokerError):
        clean(look_at(log, rig.now_ms), worker, rig.broker_config(), rig.now_ms, float("inf"))

    assert (source.online, target.online) == (False, True)
    assert (rig.manager.get(*KEY), read_values(log)) == (log, numbers(6))
    rig.manager.close()


def test_a_log_that_was_lost_with_its_directory_is_not_moved_any_more(
    rig: ManagerRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = filled(rig, 12)
    source = rig.manager.directory_of(log)
    copy = begin(rig.manager)

    def waits(*logs: Any, **more: Any) -> OSError | None:
        # For the log's locks; another one meets the broken disk meanwhile.
        rig.manager.directories.fail(source, OSError(errno.EIO, "of another log"))
        return exchange(*logs, **more)

    monkeypatch.setattr(log_moves, "exchange", waits)
    with pytest.raises(BrokerError, match="is lost with"):
        finish(copy)

    assert (rig.manager.get(*KEY), rig.manager.is_offline(*KEY)) == (None, True)
    assert log.directory.parent == source.path
    rig.manager.close()


def test_who_looks_for_a_record_as_its_log_moves_off_a_broken_disk_finds_it_on_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = FailingFiles()
    rig = ManagerRig([tmp_path / "a", tmp_path / "b"], files=files)
    log = filled(rig, 40)
    target = other_directory(rig.manager)
    copy = begin(rig.manager)
    find = Segment.find

    def breaks(segment: Segment, offset: int, limit: int) -> BatchPlace | None:
        monkeypatch.setattr(Segment, "find", find)
        finish(copy)
        raise OSError(errno.EIO, "of the former disk")

    monkeypatch.setattr(Segment, "find", breaks)
    data = log.read(3, 1, min_one=True, end_offset=40).read_bytes()

    assert next(iter_batch_headers(data))[1].base_offset == 3
    assert (target.online, rig.failures) == (True, [])
    rig.manager.close()


def test_who_gives_a_move_up_as_it_begins_leaves_the_log_to_compaction(
    rig: ManagerRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = filled(rig, 1)
    manager = rig.manager
    pause, threads = log_moves._pause_compaction, []

    def given_up_meanwhile(current: PartitionLog) -> None:
        must_wait = manager.moves._membership_lock.locked()
        other = threading.Thread(target=manager.moves.delete, args=[KEY])
        threads.append(other)
        other.start()
        if not must_wait:
            other.join()
        pause(current)

    monkeypatch.setattr(log_moves, "_pause_compaction", given_up_meanwhile)
    assert manager.moves.begin(KEY, other_directory(manager)) is not None
    for thread in threads:
        thread.join()

    assert manager.moves.futures == []
    assert not log.is_moving
    manager.close()
