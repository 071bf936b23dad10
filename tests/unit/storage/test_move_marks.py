"""The mark that tells which of two folders of one name is a partition's log."""

from pathlib import Path

import pytest

from kavka.storage.files import Files
from kavka.storage.log_file_names import is_log_file
from kavka.storage.move_marks import FILE_NAME, NO_MARK, read_mark, remove_mark, write_mark

FILES = Files()


def test_a_mark_is_read_as_it_was_written_and_goes(tmp_path: Path) -> None:
    assert read_mark(tmp_path, FILES) == NO_MARK
    write_mark(tmp_path, 17, FILES)
    assert (tmp_path / FILE_NAME).read_text() == "17\n"
    assert read_mark(tmp_path, FILES) == 17
    for _ in range(2):
        remove_mark(str(tmp_path), FILES)
        assert read_mark(tmp_path, FILES) == NO_MARK


def test_a_mark_goes_with_its_folder() -> None:
    assert is_log_file(FILE_NAME)
    assert is_log_file(f"{FILE_NAME}.tmp")


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"later", b"1 2"])
def test_what_is_no_mark_says_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE_NAME).write_bytes(content)
    assert read_mark(tmp_path, FILES) == NO_MARK
