"""A replica that the controller has made anew while the disk with its former log was away, when that disk is back."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.log_managers import ID, ManagerRig, append, create_log, read_values
from tests.support.moving_logs import KEY, begin, finish


@pytest.fixture
def rig(tmp_path: Path) -> ManagerRig:
    return ManagerRig([tmp_path / "a", tmp_path / "b"])


@contextmanager
def away(directory: Path) -> Iterator[None]:
    """Its disk, at a start."""
    directory.rename(directory.with_name("away"))
    directory.touch()
    yield
    directory.unlink()
    directory.with_name("away").rename(directory)


def made_anew(rig: ManagerRig, former: Path, *values: bytes) -> Path:
    """The folder in the other directory."""
    with away(former):
        log = create_log(rig.start(), *KEY, ID, is_new=True)
        for value in values:
            append(log, value)
        rig.kill()
    return log.directory


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


def test_a_copy_of_the_former_log_goes_where_the_log_was_made_anew(rig: ManagerRig) -> None:
    log = create_log(rig.start(), *KEY, ID, is_new=True)
    append(log, b"former")
    begin(rig.manager).step(1000)
    rig.kill()
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
