"""Logs that were refused or lost while they were made: tried again in peace, and never in two directories."""

import errno
from pathlib import Path

import pytest

from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.storage.log_loading import DuplicatePartitionError
from tests.support.log_managers import ID, FailingFiles, ManagerRig, append, create_log, read_values

KEY = ("visits", 0)
OTHER_ID = bytes(range(2, 18))


@pytest.fixture
def files() -> FailingFiles:
    return FailingFiles()


@pytest.fixture
def rig(tmp_path: Path, files: FailingFiles) -> ManagerRig:
    return ManagerRig([tmp_path / "a", tmp_path / "b"], files=files)


def lack_descriptors(files: FailingFiles) -> None:
    """What makes or removes a name needs none."""
    for operation in ("open", "listdir"):
        files.fail(operation, "visits-0", errno.EMFILE)


def folders(rig: ManagerRig) -> list[str]:
    return sorted(f"{path.parent.name}/{path.name}" for root in rig.paths for path in root.glob("visits-*"))


def refusal(rig: ManagerRig) -> BrokerError:
    with pytest.raises(BrokerError) as refused:
        create_log(rig.manager, *KEY, ID, is_new=True)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    return refused.value


def test_a_log_that_lacked_descriptors_is_made_when_there_are_some(rig: ManagerRig, files: FailingFiles) -> None:
    rig.start()
    lack_descriptors(files)
    for _ in range(2):
        assert "Too many open files" in str(refusal(rig))
    assert not rig.manager.is_offline(*KEY)

    files.heal()
    append(create_log(rig.manager, *KEY, ID, is_new=True), b"made")

    assert folders(rig) == ["a/visits-0"]
    assert rig.failures == []
    rig.manager.close()


def test_a_partition_that_was_never_made_can_be_deleted_with_what_is_left_of_it(
    rig: ManagerRig, files: FailingFiles
) -> None:
    rig.start()
    lack_descriptors(files)
    refusal(rig)
    assert rig.manager.delete([KEY])[KEY].code is ErrorCode.KAFKA_STORAGE_ERROR

    files.heal()

    assert rig.manager.delete([KEY]) == {}
    assert folders(rig) == []
    assert create_log(rig.manager, *KEY, OTHER_ID, is_new=True).topic_id == OTHER_ID
    rig.manager.close()


@pytest.mark.parametrize("removable", [False, True])
def test_a_log_that_a_breaking_directory_may_hold_is_made_nowhere_else(
    rig: ManagerRig, files: FailingFiles, removable: bool
) -> None:
    """Where it can be removed, nobody knows whether that reached the disk."""
    rig.start()
    for operation in ("open", "fsync_directory") if removable else ("open", "listdir", "unlink", "rmdir"):
        files.fail(operation, str(rig.paths[0]), errno.EIO)

    for _ in range(2):
        refusal(rig)
        assert rig.manager.is_offline(*KEY)
    assert [path for path, _, _ in rig.failures] == [rig.paths[0]]
    assert rig.manager.delete([KEY])[KEY].code is ErrorCode.KAFKA_STORAGE_ERROR
    rig.manager.close()

    files.heal()
    manager = rig.start()
    append(create_log(manager, *KEY, ID), b"made")
    assert len(folders(rig)) == 1
    manager.close()


def test_a_log_of_which_a_breaking_directory_holds_nothing_is_made_elsewhere(
    rig: ManagerRig, files: FailingFiles
) -> None:
    rig.start()
    files.fail("open", str(rig.paths[0]), errno.EIO)

    append(create_log(rig.manager, *KEY, ID, is_new=True), b"made")

    assert folders(rig) == ["b/visits-0"]
    rig.manager.close()


def test_a_log_that_a_full_directory_cannot_take_is_made_in_one_that_has_room(
    rig: ManagerRig, files: FailingFiles
) -> None:
    rig.start()
    files.fail("open", str(rig.paths[0]), errno.ENOSPC)

    append(create_log(rig.manager, *KEY, ID, is_new=True), b"made")

    assert folders(rig) == ["b/visits-0"]
    assert rig.failures == []
    files.heal()
    assert rig.manager.directories.all[0].fsync_is_due, "a power cut could bring the folder back"
    rig.manager.checkpoint_recovery_points()
    assert not rig.manager.directories.all[0].fsync_is_due
    rig.manager.close()


def made_twice(rig: ManagerRig, *, there: bytes | None, there_id: bytes = ID) -> None:
    """The partition's log with a record in b, and another one in a."""
    for path, value, topic_id in ((rig.paths[1], b"made", ID), (rig.paths[0], there, there_id)):
        other = ManagerRig([path])
        log = create_log(other.start(), *KEY, topic_id, is_new=True)
        if value is not None:
            append(log, value)
        other.manager.close()


def test_a_folder_without_records_gives_way_to_the_log_in_another_directory(rig: ManagerRig) -> None:
    made_twice(rig, there=None)

    manager = rig.start()

    log = create_log(manager, *KEY, ID)
    assert (log.directory.parent, read_values(log)) == (rig.paths[1], [b"made"])
    manager.delete_pending()
    assert folders(rig) == ["b/visits-0"]
    manager.close()
    assert read_values(create_log(rig.start(), *KEY, ID)) == [b"made"]
    rig.manager.close()


@pytest.mark.parametrize("without_id", [0, 1])
def test_of_two_empty_folders_of_a_topic_one_with_its_id_is_the_log(rig: ManagerRig, without_id: int) -> None:
    for path in rig.paths:
        other = ManagerRig([path])
        create_log(other.start(), *KEY, ID, is_new=True)
        other.manager.close()
    (rig.paths[without_id] / "visits-0" / "partition.metadata").unlink()

    manager = rig.start()

    log = create_log(manager, *KEY, ID)
    assert log.directory.parent == rig.paths[1 - without_id]
    manager.delete_pending()
    assert folders(rig) == [f"{log.directory.parent.name}/visits-0"]
    manager.close()


def test_two_empty_folders_of_different_topics_stop_the_start(rig: ManagerRig) -> None:
    for path, topic_id in zip(rig.paths, (ID, OTHER_ID), strict=True):
        other = ManagerRig([path])
        create_log(other.start(), *KEY, topic_id, is_new=True)
        other.manager.close()
    manager = rig.make()
    manager.lock_directories()

    with pytest.raises(DuplicatePartitionError):
        manager.load()

    assert folders(rig) == ["a/visits-0", "b/visits-0"]
    manager.close()


@pytest.mark.parametrize(("there", "there_id"), [(b"also", ID), (None, OTHER_ID)])
def test_what_else_lies_twice_stops_the_start(rig: ManagerRig, there: bytes | None, there_id: bytes) -> None:
    made_twice(rig, there=there, there_id=there_id)
    manager = rig.make()
    manager.lock_directories()

    with pytest.raises(DuplicatePartitionError):
        manager.load()

    assert folders(rig) == ["a/visits-0", "b/visits-0"]
    manager.close()


def test_an_emptied_log_does_not_give_way(rig: ManagerRig) -> None:
    made_twice(rig, there=None)
    (segment,) = (rig.paths[0] / "visits-0").glob("*.log")
    segment.rename(segment.with_name(f"{500:020}.log"))
    manager = rig.make()
    manager.lock_directories()

    with pytest.raises(DuplicatePartitionError):
        manager.load()

    manager.close()
