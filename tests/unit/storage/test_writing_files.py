"""How small files are written: a new one is never cut to nothing, for which ext4 has its writer wait for the disk."""

from pathlib import Path

import pytest

from kavka.storage.files import Files, append_to_file


class CountingFiles(Files):
    """Notes where files are cut."""

    def __init__(self) -> None:
        self.cuts: list[int] = []

    def ftruncate(self, fd: int, size_bytes: int) -> None:
        self.cuts.append(size_bytes)
        super().ftruncate(fd, size_bytes)


@pytest.fixture
def files() -> CountingFiles:
    return CountingFiles()


def test_a_new_file_is_not_cut(files: CountingFiles, tmp_path: Path) -> None:
    files.write_file(tmp_path / "snapshot", b"content")
    append_to_file(files, tmp_path / "index", b"entries", 0, cut=True)

    assert files.cuts == []
    assert (tmp_path / "snapshot").read_bytes() == b"content"
    assert (tmp_path / "index").read_bytes() == b"entries"


def test_a_file_that_is_replaced_keeps_nothing_of_what_it_held(files: CountingFiles, tmp_path: Path) -> None:
    path = tmp_path / "snapshot"
    path.write_bytes(b"a longer content")

    files.write_file(path, b"short")

    assert path.read_bytes() == b"short"


@pytest.mark.parametrize(("held", "position", "expected"), [(b"abcdef", 2, b"abXY"), (b"ab", 2, b"abXY")])
def test_a_file_that_is_cut_ends_with_what_is_written(
    files: CountingFiles, tmp_path: Path, held: bytes, position: int, expected: bytes
) -> None:
    path = tmp_path / "index"
    path.write_bytes(held)

    append_to_file(files, path, b"XY", position, cut=True)

    assert path.read_bytes() == expected
    assert files.cuts == [position] * (len(held) != position)
