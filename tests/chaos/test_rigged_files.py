"""Disks that the chaos program breaks: the one that it means, from that moment on, and whole again as they were."""

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.chaos.rigged_broker import Rig, RiggedFiles


@pytest.fixture
def directories(tmp_path: Path) -> list[Path]:
    found = [tmp_path / "data-0", tmp_path / "data-1"]
    for each in found:
        each.mkdir()
        (each / "file").write_bytes(b"kept")
    return found


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path / "rig")


@pytest.fixture
def files(rig: Rig, directories: list[Path]) -> RiggedFiles:
    return RiggedFiles(rig, [str(each) for each in directories])


def refusal(call: Callable[..., object], *arguments: object) -> int:
    """The errno; 0 where nothing is refused."""
    try:
        call(*arguments)
    except OSError as error:
        return error.errno or -1
    return 0


@pytest.mark.parametrize(("error", "of_reads"), [(errno.EIO, errno.EIO), (errno.EROFS, 0)])
def test_the_disk_that_is_meant_refuses(
    rig: Rig, files: RiggedFiles, directories: list[Path], error: int, of_reads: int
) -> None:
    opened = [files.open(each / "file") for each in directories]

    # Another mapping of the same file, as the test's process has it.
    Rig(directories[0].parent / "rig").set_disk_error(1, error)

    for number, (directory, fd) in enumerate(zip(directories, opened, strict=True)):
        assert refusal(files.pwrite, fd, b"more", 4) == number * error
        assert refusal(files.fsync_directory, directory) == number * error
        assert refusal(files.write_atomically, directory / "new", b"") == number * error
        assert refusal(files.pread, fd, 4, 0) == number * of_reads
        assert refusal(files.read_bytes, directory / "file") == number * of_reads
        assert files.exists(directory / "file") == (not number * of_reads)
    assert (directories[1] / "file").read_bytes() == b"kept"

    rig.set_disk_error(1, 0)

    for fd in opened:
        assert refusal(files.pwrite, fd, b"more", 4) == 0
        files.close(fd)
    assert [(each / "file").read_bytes() for each in directories] == [b"keptmore"] * 2


def test_the_clock_stays_moved_when_another_process_reads_it(rig: Rig, tmp_path: Path) -> None:
    rig.shift_ns = -172_800_000_000_000
    rig.set_disk_error(0, errno.EIO)

    other = Rig(tmp_path / "rig")

    assert other.shift_ns == -172_800_000_000_000
    assert (other.disk_error(0), other.disk_error(1)) == (errno.EIO, 0)
