"""A log moves to another directory: nothing is lost, doubled or changed, wherever it is stopped, cut or refused."""

import contextlib
import errno
import threading
from pathlib import Path

import pytest

from kavka.broker.log_moves.log_copy import LogCopy, Progress
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.storage.log_manager import LogManager
from kavka.storage.move_marks import FILE_NAME, write_mark
from kavka.storage.partition_log import PartitionLog
from tests.support.log_managers import ID, FailingFiles, ManagerRig, append, create_log, delete_log, read_values
from tests.support.moving_logs import KEY, Snapshots, WatchedFiles, begin, finish, other_directory

SMALL_SEGMENTS = {"segment.bytes": "500", "index.interval.bytes": "100"}
COUNT = 40


@pytest.fixture
def rig(tmp_path: Path) -> ManagerRig:
    return made(tmp_path)


def made(path: Path, files: FailingFiles | None = None) -> ManagerRig:
    rig = ManagerRig([path / "a", path / "b"], files=files)
    rig.overrides["visits"] = SMALL_SEGMENTS
    return rig


def filled(rig: ManagerRig, count: int = COUNT) -> PartitionLog:
    log = create_log(rig.start(), *KEY, ID)
    append_numbers(log, count)
    return log


def append_numbers(log: PartitionLog, count: int, *, leader_epoch: int = 0) -> None:
    for number in range(log.log_end_offset, log.log_end_offset + count):
        append(log, b"%d" % number, leader_epoch=leader_epoch)
    log.advance_high_watermark(log.log_end_offset)


def numbers(count: int, first: int = 0) -> list[bytes | None]:
    return [b"%d" % number for number in range(first, count)]


def records_of(log: PartitionLog) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(log.directory.glob("*.log")))


def folders(rig: ManagerRig) -> dict[str, list[str]]:
    return {path.name: sorted(each.name for each in path.glob("visits*")) for path in rig.paths}


def the_log(manager: LogManager) -> PartitionLog:
    log = manager.get(*KEY)
    assert log is not None
    return log


def test_a_log_lies_elsewhere_with_the_same_bytes_and_goes_on(rig: ManagerRig) -> None:
    log = filled(rig)
    source, target, before = log.directory.parent, other_directory(rig.manager), records_of(log)
    copy = begin(rig.manager)
    assert copy.future.directory.parent == target.path
    assert log.is_moving

    finish(copy)

    assert the_log(rig.manager) is log
    assert (log.directory, log.is_moving) == (target.path / "visits-0", False)
    assert records_of(log) == before
    append_numbers(log, 5)
    assert read_values(log) == numbers(COUNT + 5)
    assert (rig.manager.logs_in(target), rig.manager.moves.futures) == ([log], [])
    (left,) = source.glob("visits*")
    assert left.name.endswith("-delete")
    rig.now_ms += 60_000
    rig.manager.delete_pending()
    assert list(source.glob("visits*")) == []
    assert [list(path.glob(f"*/{FILE_NAME}")) for path in rig.paths] == [[], []]
    rig.manager.close()
    again = create_log(rig.start(), *KEY, ID)
    assert (read_values(again), again.recovered_segments) == (numbers(COUNT + 5), 0)
    rig.manager.close()


def test_what_is_appended_while_it_moves_comes_along(rig: ManagerRig) -> None:
    log = filled(rig)
    copy = begin(rig.manager)
    for _ in range(20):
        copy.step(150)
        append_numbers(log, 1)
    finish(copy)
    assert read_values(log) == numbers(COUNT + 20)
    assert log.directory.parent == rig.manager.directory_of(log).path
    rig.manager.close()


def test_a_log_under_load_is_carried_over_all_the_same(rig: ManagerRig) -> None:
    del rig.overrides["visits"]
    log = filled(rig)
    is_enough = threading.Event()
    counted = 0

    def write() -> None:
        nonlocal counted
        while not is_enough.is_set():
            append_numbers(log, 1)
            counted += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(3):
            finish(begin(rig.manager), 1 << 20)
    finally:
        is_enough.set()
        writer.join()
    assert read_values(log) == numbers(COUNT + counted)
    rig.manager.close()


def test_a_kill_at_each_step_loses_nothing_and_the_move_goes_on(tmp_path: Path) -> None:
    files = WatchedFiles()
    rig = made(tmp_path / "first", files)
    log = filled(rig, 12)
    log.flush()
    snapshots = Snapshots(tmp_path / "first", tmp_path / "killed")
    target = other_directory(rig.manager).path.name
    copy = begin(rig.manager)
    append_numbers(log, 3)
    files.after_step = snapshots.take
    finish(copy, 400)
    append_numbers(log, 1)
    files.after_step = None
    rig.kill()
    assert len(snapshots.paths) > 20
    for number, path in enumerate(snapshots.paths):
        killed = made(path, WatchedFiles())
        again = create_log(killed.start(), *KEY, ID)
        is_last = number == len(snapshots.paths) - 1
        assert read_values(again) == numbers(16 if is_last else 15), number
        if killed.manager.moves.future(KEY) is not None:
            finish(begin(killed.manager))
        append_numbers(again, 2)
        assert again.directory == path / target / "visits-0", number
        killed.manager.close()
        killed.now_ms += 60_000
        once_more = create_log(killed.start(), *KEY, ID)
        assert read_values(once_more) == numbers(18 if is_last else 17), number
        killed.manager.delete_pending()
        killed.manager.close()
        assert folders(killed) == {target: ["visits-0"], "b" if target == "a" else "a": []}
        assert [list(each.glob(f"*/{FILE_NAME}")) for each in killed.paths] == [[], []]


def test_a_move_goes_on_after_a_clean_stop(rig: ManagerRig) -> None:
    filled(rig)
    copy = begin(rig.manager)
    copy.step(300)
    copied = copy.future.log_end_offset
    assert 0 < copied < COUNT
    rig.manager.close()
    log = create_log(rig.start(), *KEY, ID)
    again = begin(rig.manager)
    assert log.is_moving
    assert again.future.log_end_offset == copied
    finish(again)
    assert read_values(log) == numbers(COUNT)
    rig.manager.close()


def test_a_move_that_is_cancelled_or_redirected_leaves_the_log_where_it_is(tmp_path: Path) -> None:
    rig = ManagerRig([tmp_path / "a", tmp_path / "b", tmp_path / "c"])
    log = filled(rig)
    manager = rig.manager
    source = manager.directory_of(log)
    first, second = (each for each in manager.directories if each is not source)
    copy = begin(manager, first)
    copy.step(300)
    assert begin(manager, first).future is copy.future
    redirected = begin(manager, second)
    assert copy.step(300) == (Progress.DONE, 0)
    assert manager.logs_in(first) == []
    assert manager.moves.begin(KEY, source) is None
    assert (manager.moves.futures, manager.logs_in(second), log.is_moving) == ([], [], False)
    assert redirected.step(300) == (Progress.DONE, 0)
    assert read_values(log) == numbers(COUNT)
    rig.now_ms += 60_000
    manager.delete_pending()
    assert folders(rig) == {path.name: (["visits-0"] if path == source.path else []) for path in rig.paths}
    manager.close()


def test_a_topic_that_is_deleted_takes_its_copies_along(rig: ManagerRig) -> None:
    filled(rig)
    copy = begin(rig.manager)
    copy.step(300)
    delete_log(rig.manager, *KEY)
    assert copy.step(300) == (Progress.DONE, 0)
    rig.now_ms += 60_000
    rig.manager.delete_pending()
    assert folders(rig) == {"a": [], "b": []}
    rig.manager.close()


def test_what_the_log_lost_by_a_truncation_goes_from_the_copy_too(rig: ManagerRig) -> None:
    log = filled(rig)
    log.begin_leader_epoch(1)
    append_numbers(log, 10, leader_epoch=1)
    copy = begin(rig.manager)
    while copy.future.log_end_offset < log.log_end_offset - 1:
        copy.step(100)
    log.follow_leader_epoch(2)
    log.truncate_to(COUNT - 5, 2)
    log.begin_leader_epoch(3)
    append_numbers(log, 8, leader_epoch=3)
    finish(copy)
    assert read_values(log) == numbers(COUNT + 3)
    assert log.epochs.entries == ((0, 0), (3, COUNT - 5))
    rig.manager.close()
    assert create_log(rig.start(), *KEY, ID).epochs.entries == ((0, 0), (3, COUNT - 5))
    rig.manager.close()


def test_where_an_epoch_began_comes_along_though_no_record_tells(rig: ManagerRig) -> None:
    log = filled(rig)
    log.begin_leader_epoch(7)
    log.end_at(COUNT + 5)
    append_numbers(log, 1, leader_epoch=7)
    finish(begin(rig.manager))
    rig.kill()
    assert create_log(rig.start(), *KEY, ID).epochs.entries == ((0, 0), (7, COUNT))
    rig.manager.close()


def test_a_start_that_moved_on_is_the_copys_too_and_stays_after_a_kill(rig: ManagerRig) -> None:
    log = filled(rig)
    copy = begin(rig.manager)
    copy.step(200)
    log.delete_records_before(33)
    rig.manager.retention_pass()
    finish(copy)
    assert (log.log_start_offset, read_values(log)) == (33, numbers(COUNT, 33))
    rig.kill()
    again = create_log(rig.start(), *KEY, ID)
    assert (again.log_start_offset, read_values(again)) == (33, numbers(COUNT, 33))
    rig.manager.close()


def test_what_was_durable_is_durable_where_it_lies_now(rig: ManagerRig) -> None:
    rig.overrides["visits"] = {**SMALL_SEGMENTS, "flush.messages": "1"}
    log = filled(rig)
    copy = begin(rig.manager)
    append_numbers(log, 3)
    finish(copy)
    assert log.recovery_point == log.log_end_offset == COUNT + 3
    rig.manager.close()


def test_an_end_behind_the_last_record_is_the_copys_too(rig: ManagerRig) -> None:
    log = filled(rig)
    log.end_at(COUNT + 5)
    finish(begin(rig.manager))
    assert append(log, b"next") == COUNT + 5
    rig.manager.close()


def test_idempotent_producers_and_readers_notice_nothing(rig: ManagerRig) -> None:
    log = filled(rig)
    piece = log.read(0, 1 << 20, min_one=True, end_offset=COUNT)
    producers = log.producers
    finish(begin(rig.manager))
    assert log.producers is producers
    assert piece.read_bytes()
    rig.manager.close()


@pytest.mark.parametrize("operation", ["pwrite", "fsync", "rename", "mkdir", "write_atomically", "fsync_directory"])
@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
def test_a_disk_that_refuses_the_copy_does_not_harm_the_log(tmp_path: Path, operation: str, error: int) -> None:
    files = FailingFiles()
    rig = made(tmp_path, files)
    log = filled(rig)
    source, target = log.directory, other_directory(rig.manager)
    files.fail(operation, f"/{target.path.name}", error)
    with contextlib.suppress(BrokerError):  # or a background flush meets it first, and there is no copy any more
        finish(begin(rig.manager), 300)
    assert log.directory == source
    append_numbers(log, 1)
    files.heal()
    if target.online:
        finish(begin(rig.manager))
        assert log.directory == target.path / "visits-0"
    append_numbers(log, 1)
    assert read_values(log) == numbers(COUNT + 2)
    rig.kill()
    again = create_log(rig.start(), *KEY, ID)
    assert read_values(again) == numbers(COUNT + 2)
    rig.manager.close()


def test_a_disk_that_refuses_the_new_name_leaves_the_log_where_it_is_at_the_next_start_too(tmp_path: Path) -> None:
    """What the copy's directory remembers of the renames does not count: the log went on without it."""
    files = FailingFiles()
    rig = made(tmp_path, files)
    log = filled(rig)
    source, target = log.directory, other_directory(rig.manager)
    copy = begin(rig.manager)
    while copy.future.log_end_offset < COUNT - 1:
        copy.step(300)
    files.fail("rename", f"/{source.parent.name}/visits-0\n", errno.ENOSPC)
    with pytest.raises(BrokerError):
        finish(copy)
    append_numbers(log, 2)
    rig.kill()
    # As if the way back had never reached the disk.
    (copied,) = target.path.glob("*-future")
    copied.rename(target.path / "visits-0")
    files.heal()
    again = create_log(rig.start(), *KEY, ID)
    assert (again.directory, read_values(again)) == (source, numbers(COUNT + 2))
    rig.manager.close()


def test_of_two_folders_the_one_with_the_latest_mark_is_the_log(tmp_path: Path) -> None:
    rig = made(tmp_path)
    log = filled(rig)
    finish(begin(rig.manager))
    place = log.directory
    rig.manager.close()
    (former,) = (path for path in rig.paths if path != place.parent)
    (deleted,) = former.glob("visits*")
    deleted.rename(former / "visits-0")
    for number, path in ((5, place), (3, former / "visits-0")):
        write_mark(path, number, rig.files)
    again = create_log(rig.start(), *KEY, ID)
    assert (again.directory, read_values(again)) == (place, numbers(COUNT))
    rig.manager.close()


def test_a_copy_whose_log_is_not_there_is_left_alone(rig: ManagerRig) -> None:
    log = filled(rig)
    copy = begin(rig.manager)
    copy.step(300)
    folder = copy.future.directory
    rig.manager.close()
    for each in sorted(log.directory.iterdir()):
        each.unlink()
    log.directory.rmdir()
    manager = rig.start()
    assert (manager.moves.futures, manager.all_logs()) == ([], [])
    manager.close()
    assert folder.is_dir()


def test_moves_begin_only_while_all_directories_are_online(tmp_path: Path) -> None:
    rig = ManagerRig([tmp_path / "a", tmp_path / "b", tmp_path / "c"])
    log = filled(rig)
    manager = rig.manager
    first, second = (each for each in manager.directories if each is not manager.directory_of(log))
    copy = begin(manager, first)
    manager.directories.fail(first, OSError(errno.EIO, "broken"))
    assert copy.step(300) == (Progress.DONE, 0)
    assert (manager.moves.futures, log.is_moving) == ([], False)
    with pytest.raises(BrokerError) as refused:
        manager.moves.begin(KEY, second)
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    append_numbers(log, 1)
    assert read_values(log) == numbers(COUNT + 1)
    manager.close()


def test_a_log_that_is_yet_to_be_made_is_made_where_it_was_wanted(rig: ManagerRig) -> None:
    manager = rig.start()
    _, wanted = manager.directories
    for index in range(3):
        manager.moves.prefer(("visits", index), wanted)
    manager.create([("visits", index, ID) for index in range(3)])
    assert len(manager.logs_in(wanted)) == 3
    # Once: who is deleted and made again goes where the fewest are.
    delete_log(manager, "visits", 1)
    assert create_log(manager, "visits", 1, ID).directory.parent == manager.directories.all[0].path
    manager.close()


def test_copies_of_a_topic_follow_its_configuration(rig: ManagerRig) -> None:
    filled(rig)
    copy: LogCopy = begin(rig.manager)
    rig.manager.update_topic_config("visits", {"segment.bytes": "700"})
    assert copy.future.config.segment_bytes == 700
    finish(copy)
    rig.manager.close()
