"""A replica that the controller has made anew while the disk with its former log was away, when that disk is back."""

from pathlib import Path

import pytest

from kavka.broker.log_moves.log_copy import LogCopy
from kavka.storage.partition_log import PartitionLog
from tests.support.log_managers import ID, ManagerRig, append, away, create_log, read_values
from tests.support.moving_logs import KEY, begin, finish


@pytest.fixture
def rig(tmp_path: Path) -> ManagerRig:
    return ManagerRig([tmp_path / "a", tmp_path / "b"])


def made_anew(rig: ManagerRig, former: Path, *values: bytes) -> Path:
    """The folder in the other directory."""
    with away(former):
        log = create_log(rig.start(), *KEY, ID, is_new=True)
        for value in values:
            append(log, value)
        rig.kill()
    return log.directory


def half_copied(rig: ManagerRig, log: PartitionLog, target: Path) -> None:
    """A kill in the middle of a move there."""
    for number in range(20):
        append(log, b"former %d" % number)
    begin(rig.manager, rig.manager.moves.directory(str(target))).step(100)
    rig.kill()


def folders(rig: ManagerRig) -> list[Path]:
    return [path for root in rig.paths for path in root.glob("visits-*")]


@pytest.mark.parametrize("values", [(), (b"new", b"newer")])
def test_the_log_made_anew_is_the_log_when_the_former_disk_is_back(rig: ManagerRig, values: tuple[bytes, ...]) -> None:
    log = create_log(rig.start(), *KEY, ID, is_new=True)
    for value in (b"of", b"a", b"former", b"replica"):
        append(log, value)
    rig.manager.close()
    folder = made_anew(rig, log.directory.parent, *values)

    manager = rig.start()

    log = create_log(manager, *KEY, ID)
    assert log.directory == folder
    assert read_values(log) == list(values)
    manager.delete_pending()
    assert folders(rig) == [folder]
    manager.close()


def test_a_copy_of_the_former_log_goes_where_the_log_was_made_anew(rig: ManagerRig, tmp_path: Path) -> None:
    log = create_log(rig.start(), *KEY, ID, is_new=True)
    former = log.directory
    half_copied(rig, log, tmp_path / "b")
    assert log.directory == former
    folder = made_anew(rig, log.directory.parent, b"new")

    manager = rig.start()

    log = create_log(manager, *KEY, ID)
    assert log.directory == folder
    manager.delete_pending()
    assert folders(rig) == [folder]
    finish(begin(manager))
    assert log.directory.parent != folder.parent
    assert read_values(log) == [b"new"]
    manager.close()


def test_a_log_made_anew_that_moves_on_still_outdoes_the_former_one(tmp_path: Path) -> None:
    rig = ManagerRig([tmp_path / "a", tmp_path / "b", tmp_path / "c"])
    log = create_log(rig.start(), *KEY, ID, is_new=True)
    former = log.directory.parent
    half_copied(rig, log, tmp_path / "c")
    with away(former):
        append(create_log(rig.start(), *KEY, ID, is_new=True), b"new", leader_epoch=1)
        rig.kill()
        rig.start()
        (copy,) = rig.manager.moves.futures
        finish(LogCopy(rig.manager, KEY, create_log(rig.manager, *KEY, ID), copy))
        rig.kill()

    manager = rig.start()

    log = create_log(manager, *KEY, ID)
    assert (log.directory.parent, read_values(log)) == (tmp_path / "c", [b"new"])
    manager.delete_pending()
    assert folders(rig) == [log.directory]
    manager.close()
