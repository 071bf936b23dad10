"""A log that was made for one that was lost is marked before it is anything else, and until that is said to be over."""

import errno
import random
import shutil
from pathlib import Path

import pytest

from kavka.protocol.errors import BrokerError
from kavka.storage import unproven_mark
from kavka.storage.log_directories import NEW_MARK, UNMARKED
from kavka.storage.log_manager import LogManager
from kavka.storage.meta_properties import META_PROPERTIES_FILE, MetaProperties, write_meta_properties
from kavka.storage.partition_log import PartitionLog
from tests.support.crash_tree import CrashTree, SnapshotTree
from tests.support.log_managers import ID, FailingFiles, ManagerRig, append, create_log, delete_log
from tests.support.moving_logs import Snapshots, WatchedFiles, begin, finish, other_directory

KEY = ("visits", 0)
OTHER_ID = bytes(range(2, 18))


@pytest.fixture
def files() -> FailingFiles:
    return FailingFiles()


@pytest.fixture
def rig(tmp_path: Path, files: FailingFiles) -> ManagerRig:
    return ManagerRig([tmp_path / "a"], files=files)


def make_unproven(manager: LogManager) -> PartitionLog:
    log = manager.create([(*KEY, ID)], lost={KEY})[KEY]
    assert isinstance(log, PartitionLog)
    return log


def found(rig: ManagerRig) -> PartitionLog | None:
    """What the next start has."""
    return rig.start().get(*KEY)


@pytest.mark.parametrize("clean", [True, False])
def test_it_is_known_over_starts_whatever_happens_to_the_log(rig: ManagerRig, clean: bool) -> None:
    log = make_unproven(rig.start())
    append(log, b"copied")
    append(log, b"cut")
    log.truncate_to(1)
    rig.manager.close(clean=clean)

    log_again = found(rig)

    assert log_again is not None
    assert (log_again.is_unproven, log_again.log_end_offset) == (True, 1)
    log_again.truncate_fully_and_start_at(700)
    rig.manager.close(clean=clean)
    last = found(rig)
    assert last is not None
    assert (last.is_unproven, last.log_start_offset) == (True, 700)
    rig.manager.close()


@pytest.mark.parametrize("clean", [True, False])
def test_what_was_proven_is_so_for_good(rig: ManagerRig, clean: bool) -> None:
    log = make_unproven(rig.start())
    for _ in range(2):
        log.note_proven()
    assert not log.is_unproven
    rig.manager.close(clean=clean)
    log_again = found(rig)
    assert log_again is not None
    assert not log_again.is_unproven
    rig.manager.close()


def test_the_log_of_a_new_partition_is_not_in_doubt(rig: ManagerRig) -> None:
    assert not create_log(rig.start(), *KEY, ID, is_new=True).is_unproven
    rig.manager.close()


@pytest.mark.parametrize("seed", range(20))
def test_no_power_cut_leaves_the_log_without_its_mark(tmp_path: Path, seed: int) -> None:
    files = SnapshotTree(random.Random(seed))
    rig = ManagerRig([tmp_path], files=files)
    rig.start()
    files.snapshots.clear()
    log = make_unproven(rig.manager)
    append(log, b"copied")
    log.flush()
    rig.kill()
    found_logs = 0
    for after in files.snapshots:
        again = ManagerRig([tmp_path], files=after)
        log_again = found(again)
        assert log_again is None or log_again.is_unproven
        found_logs += log_again is not None
        again.kill()
    assert found_logs


@pytest.mark.parametrize("seed", range(20))
def test_who_leads_is_in_no_doubt_again_after_a_power_cut(tmp_path: Path, seed: int) -> None:
    files = CrashTree()
    rig = ManagerRig([tmp_path], files=files)
    log = make_unproven(rig.start())
    log.note_proven()
    after = files.crash(random.Random(seed))
    rig.kill()
    rig.files = after

    log_again = found(rig)

    assert log_again is not None
    assert not log_again.is_unproven
    rig.kill()


@pytest.mark.parametrize(("operation", "error"), [("unlink", errno.EACCES), ("open", errno.EMFILE)])
def test_a_disk_that_refuses_leaves_it_in_doubt(
    rig: ManagerRig, files: FailingFiles, operation: str, error: int
) -> None:
    log = make_unproven(rig.start())
    files.refusals_are_final = False
    files.fail("fsync_directory" if operation == "open" else operation, "visits-0", error)

    with pytest.raises(BrokerError):
        log.note_proven()
    assert log.is_unproven
    files.heal()
    if not rig.failures:
        log.note_proven()
        assert not log.is_unproven
    rig.manager.close()


def test_a_mark_that_can_not_be_made_durable_is_no_log(rig: ManagerRig, files: FailingFiles) -> None:
    rig.start()
    files.refusals_are_final = False
    files.fail("fsync_directory", "visits-0", errno.EMFILE)
    assert isinstance(rig.manager.create([(*KEY, ID)], lost={KEY})[KEY], BrokerError)
    assert rig.manager.get(*KEY) is None
    files.heal()

    assert make_unproven(rig.manager).is_unproven
    rig.manager.close()


def test_a_topic_that_is_deleted_takes_the_mark_along(rig: ManagerRig) -> None:
    log = make_unproven(rig.start())
    delete_log(rig.manager, *KEY)
    log_anew = create_log(rig.manager, *KEY, OTHER_ID, is_new=True)
    assert not log_anew.is_unproven
    rig.now_ms += 60_000
    rig.manager.delete_pending()
    with pytest.raises(BrokerError):
        log.note_proven()
    assert [path.name for path in rig.paths[0].glob("visits*")] == ["visits-0"]
    assert rig.failures == []
    rig.manager.close()
    log_again = found(rig)
    assert log_again is not None
    assert not log_again.is_unproven
    rig.manager.close()


def test_a_folder_in_which_only_the_mark_was_made_is_the_log(rig: ManagerRig, files: FailingFiles) -> None:
    rig.start()
    rig.manager.close()
    folder = rig.paths[0] / "visits-0"
    folder.mkdir()
    unproven_mark.put(folder, files)

    manager = rig.start()

    log = create_log(manager, *KEY, ID)
    assert (log.is_unproven, log.topic_id) == (True, ID)
    manager.close()


@pytest.mark.parametrize("marked", [0, 1])
def test_of_two_empty_folders_the_one_in_doubt_is_the_log(tmp_path: Path, marked: int) -> None:
    paths = [tmp_path / "a", tmp_path / "b"]
    for number, path in enumerate(paths):
        one = ManagerRig([path])
        one.start()
        (make_unproven if number == marked else lambda manager: create_log(manager, *KEY, ID, is_new=True))(one.manager)
        one.manager.close()
    rig = ManagerRig(paths)

    log = found(rig)

    assert log is not None
    assert (log.directory.parent, log.is_unproven) == (paths[marked], True)
    rig.manager.close()


@pytest.mark.parametrize("is_proven_meanwhile", [False, True])
def test_a_log_that_moves_between_directories_is_in_doubt_for_as_long_as_it_was(
    tmp_path: Path, is_proven_meanwhile: bool
) -> None:
    rig = ManagerRig([tmp_path / "a", tmp_path / "b"])
    log = make_unproven(rig.start())
    append(log, b"copied")
    target = other_directory(rig.manager)
    copy = begin(rig.manager)
    if is_proven_meanwhile:
        unproven_mark.put(copy.future.folder, rig.files)
        copy.future.is_unproven = True
        log.note_proven()
    finish(copy)
    assert log.directory.parent == target.path
    assert log.is_unproven is not is_proven_meanwhile
    rig.manager.close(clean=False)

    log_again = found(rig)

    assert log_again is not None
    assert (log_again.directory.parent, log_again.is_unproven) == (target.path, not is_proven_meanwhile)
    log_again.note_proven()
    rig.manager.close(clean=False)
    last = found(rig)
    assert last is not None
    assert not last.is_unproven
    rig.manager.close()


def test_wherever_a_move_is_killed_the_log_stays_in_doubt(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    files = WatchedFiles()
    rig = ManagerRig([tree / "a", tree / "b"], files=files)
    append(make_unproven(rig.start()), b"copied")
    snapshots = Snapshots(tree, tmp_path / "killed")
    files.after_step = snapshots.take
    finish(begin(rig.manager))
    files.after_step = None
    rig.manager.close()
    for path in snapshots.paths:
        again = ManagerRig([path / "a", path / "b"])
        log_again = found(again)
        assert log_again is not None
        assert log_again.is_unproven
        again.kill()


def test_a_folder_that_is_moved_to_another_directory_keeps_its_mark(tmp_path: Path) -> None:
    rig = ManagerRig([tmp_path / "a", tmp_path / "b"])
    log = make_unproven(rig.start())
    here = log.directory
    rig.manager.close()
    shutil.move(here, next(path for path in rig.paths if path != here.parent))

    log_again = found(rig)

    assert log_again is not None
    assert log_again.is_unproven
    rig.manager.close()


def test_logs_of_a_new_directory_from_before_there_were_marks_are_in_doubt_once(rig: ManagerRig) -> None:
    manager = rig.start()
    manager.claim(1, "cluster", is_replicated=True)
    append(create_log(manager, *KEY, ID), b"copied")
    manager.close()
    path = rig.paths[0]
    write_meta_properties(path, rig.files, MetaProperties(1, "cluster", (UNMARKED,)))

    log = found(rig)
    assert log is not None
    assert log.is_unproven
    rig.manager.claim(1, "cluster", is_replicated=True)
    assert "=".join(NEW_MARK) in (path / META_PROPERTIES_FILE).read_text()
    log.note_proven()
    rig.manager.close()
    log = found(rig)

    assert log is not None
    assert not log.is_unproven
    rig.manager.close()
