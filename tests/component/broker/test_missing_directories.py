"""A directory that is taken out of `log.dirs` takes records away, as a replaced disk does (KAFKA-14139)."""

import shutil
from pathlib import Path

import pytest

from kavka.protocol.errors import ErrorCode
from kavka.storage import siblings
from kavka.storage.meta_properties import META_PROPERTIES_FILE
from tests.component.broker.test_replaced_disks import ME, OTHER, Rig
from tests.support.log_managers import away


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    """One that has led two partitions, each in a directory of its own, and was stopped."""
    rig = Rig(tmp_path, directories=2)
    for index in (0, 1):
        assert rig.order(ME, index, is_new=True) is ErrorCode.NONE
    rig.replicas.note_recovery()
    assert not rig.is_marked()
    return rig


def index_in(rig: Rig, path: Path) -> int:
    """The partition whose log lies there."""
    (found,) = [each for each in rig.logs.manager.all_logs() if each.directory.parent == path]
    return found.partition


def take_out(rig: Rig) -> tuple[int, int]:
    """Stop, and start without the second directory: (the partition that is left, the one that is gone)."""
    left, gone = (index_in(rig, path) for path in rig.paths)
    rig.paths.pop()
    rig.restart()
    return left, gone


def test_what_lay_in_a_directory_that_was_taken_out_is_not_led(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    path = rig.paths[1]
    left, gone = take_out(rig)

    assert (rig.order(ME, left), rig.order(ME, gone)) == (ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR)
    assert f"taken out of log.dirs since the last start: {path}" in caplog.text


@pytest.mark.parametrize("clean", [True, False])
def test_the_starts_after_know_of_it_until_the_replica_is_here_again(rig: Rig, clean: bool) -> None:
    _, gone = take_out(rig)
    rig.restart(clean=clean)
    assert rig.order(ME, gone) is ErrorCode.KAFKA_STORAGE_ERROR
    assert rig.order(OTHER, gone) is ErrorCode.NONE
    rig.replicas.note_recovery()
    rig.restart(clean=clean)
    assert rig.order(ME, gone) is ErrorCode.KAFKA_STORAGE_ERROR
    assert rig.order(OTHER, gone) is ErrorCode.NONE

    rig.catch_up(gone)

    assert rig.order(ME, gone) is ErrorCode.NONE
    rig.replicas.note_recovery()
    assert not rig.is_marked()
    rig.restart(clean=clean)
    assert rig.order(ME, gone) is ErrorCode.NONE


def test_a_directory_that_is_called_otherwise_now_has_lost_nothing(rig: Rig) -> None:
    rig.logs.manager.close()
    moved = rig.paths[1].with_name("elsewhere \u00fc\udc80\n")
    shutil.move(rig.paths[1], moved)
    rig.paths[1] = moved
    rig.start()

    assert [rig.order(ME, index) for index in (0, 1)] == [ErrorCode.NONE] * 2
    rig.replicas.note_recovery()
    assert not rig.is_marked()


def test_a_directory_that_is_added_leaves_the_others_whole(rig: Rig) -> None:
    rig.paths.append(rig.paths[0].with_name("added"))
    rig.restart()
    assert [rig.order(ME, index) for index in (0, 1)] == [ErrorCode.NONE] * 2
    rig.replicas.note_recovery()

    rig.restart()

    assert not rig.is_marked()


def test_a_broker_that_stands_alone_notes_nothing(tmp_path: Path) -> None:
    rig = Rig(tmp_path, directories=2, is_replicated=False)

    assert all(siblings.KEY not in (path / META_PROPERTIES_FILE).read_text() for path in rig.paths)


def test_more_directories_than_can_be_named_are_not(tmp_path: Path) -> None:
    assert siblings.note([tmp_path / f"{number:0200}" for number in range(200)]) == ()


@pytest.mark.parametrize("leader", [ME, OTHER])
def test_who_came_into_sync_while_it_was_added_is_not_made_anew_while_its_disk_is_away(
    tmp_path: Path, leader: int
) -> None:
    """Though its controller still calls it new."""
    rig = Rig(tmp_path, directories=2)
    assert rig.order(OTHER, isr=(OTHER,), adding=(ME,), is_new=True) is ErrorCode.NONE
    assert rig.order(ME, adding=(ME,), is_new=True) is ErrorCode.NONE
    rig.replicas.note_recovery()
    log = rig.logs.manager.get("visits", 0)
    assert log is not None
    rig.logs.manager.close()

    with away(log.directory.parent):
        rig.start()
        assert rig.order(leader, adding=(ME,), is_new=True) is ErrorCode.KAFKA_STORAGE_ERROR
        assert rig.order(OTHER, 1, isr=(OTHER,), adding=(ME,), is_new=True) is ErrorCode.NONE
        rig.logs.manager.close()

    rig.start()
    assert rig.order(ME, adding=(ME,), is_new=True) is ErrorCode.NONE
    found = rig.logs.manager.get("visits", 0)
    assert found is not None
    assert found.directory == log.directory
