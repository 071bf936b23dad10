"""A move between log directories whose log is cut, or goes, while the copy is about to take its place."""

from pathlib import Path

import pytest

from kavka.broker.log_moves.log_copy import Progress
from kavka.storage.files import AnyPath
from kavka.storage.move_marks import FILE_NAME
from tests.support.log_managers import ID, ManagerRig, append, create_log, read_values
from tests.support.moving_logs import KEY, WatchedFiles, begin, finish

COUNT, LEFT = 10, 7


@pytest.fixture
def files() -> WatchedFiles:
    return WatchedFiles()


@pytest.fixture
def rig(tmp_path: Path, files: WatchedFiles) -> ManagerRig:
    return ManagerRig([tmp_path / "a", tmp_path / "b"], files=files)


def is_marked(path: AnyPath) -> bool:
    """Whether the copy has been compared with its log, and is to take its place next."""
    return any(Path(path).glob(f"*-future/{FILE_NAME}"))


def test_a_move_goes_on_at_once_when_its_log_is_cut_at_the_last_moment(rig: ManagerRig, files: WatchedFiles) -> None:
    log = create_log(rig.start(), *KEY, ID)
    for number in range(COUNT):
        append(log, b"%d" % number)
    copy = begin(rig.manager)

    def cut() -> None:
        if any(map(is_marked, rig.paths)) and log.log_end_offset == COUNT:
            log.truncate_to(LEFT)

    files.after_step = cut

    assert copy.step(1_000_000)[0] is Progress.COPIED
    assert (log.log_end_offset, copy.future.log_end_offset) == (LEFT, COUNT)
    finish(copy)

    assert read_values(log) == [b"%d" % number for number in range(LEFT)]
    assert [each.parent for each in log.directory.parent.parent.glob("*/visits-0")] == [log.directory.parent]
    rig.manager.close()


def test_a_move_waits_for_its_log_to_go(rig: ManagerRig, files: WatchedFiles) -> None:
    log = create_log(rig.start(), *KEY, ID)
    append(log, b"going")
    copy = begin(rig.manager)

    def doom() -> None:
        if any(map(is_marked, rig.paths)):
            log.deleting = True

    files.after_step = doom

    assert copy.step(1_000_000)[0] is Progress.STUCK

    files.after_step = None
    log.cancel_deletion()
    finish(copy)
    assert read_values(log) == [b"going"]
    rig.manager.close()
