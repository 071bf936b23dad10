"""The mark that tells which of two folders of one name is a partition's log."""

from pathlib import Path

import pytest

from kavka.storage.files import Files
from kavka.storage.move_marks import NO_MARK, PREFIX, read_mark, remove_mark, remove_marks, write_mark

FILES = Files()
KEY = ("visits", 3)


def test_a_mark_is_read_as_it_was_written_and_goes(tmp_path: Path) -> None:
    assert read_mark(tmp_path, *KEY, FILES) == NO_MARK
    write_mark(tmp_path, *KEY, 17, FILES)
    assert (tmp_path / f"{PREFIX}visits-3").read_text() == "17\n"
    assert (read_mark(tmp_path, *KEY, FILES), read_mark(tmp_path, "visits", 4, FILES)) == (17, NO_MARK)
    for _ in range(2):
        remove_mark(tmp_path, *KEY, FILES)
        assert read_mark(tmp_path, *KEY, FILES) == NO_MARK


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"later", b"1 2"])
def test_what_is_no_mark_says_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / f"{PREFIX}visits-3").write_bytes(content)
    assert read_mark(tmp_path, *KEY, FILES) == NO_MARK


def test_marks_are_taken_off_together_and_nothing_else(tmp_path: Path) -> None:
    for partition in range(3):
        write_mark(tmp_path, "visits", partition, 1, FILES)
    (tmp_path / "kavka-registry.sqlite").touch()
    remove_marks(tmp_path, FILES)
    assert [path.name for path in tmp_path.iterdir()] == ["kavka-registry.sqlite"]
