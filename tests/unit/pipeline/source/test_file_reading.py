"""Records that are gone from segment files: an error, or a warning, as `failOnDataLoss` says."""

import shutil
from pathlib import Path

import pytest

from kavka.pipeline.source.errors import DataLossError, PathUnseenError
from kavka.pipeline.source.file_reading import rows
from kavka.pipeline.source.offsets import OffsetRange
from kavka.pipeline.source.read_options import read_options
from tests.support.partition_logs import append, open_log


def count(directory: Path, start: int, end: int, *, fails: bool) -> int:
    given = {"path": str(directory), "subscribe": "visits", "failondataloss": str(fails).lower()}
    return sum(
        batch.num_rows for batch in rows(OffsetRange("visits", 0, start, end), read_options(given, streaming=True))
    )


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    log = open_log(tmp_path / "visits-0")
    for _ in range(5):
        append(log, b"x")
    log.close()
    return tmp_path


def test_a_log_that_is_shorter_now_is_loss(directory: Path) -> None:
    with pytest.raises(DataLossError, match=r"visits-0.* ends with offset 5 .*before 20"):
        count(directory, 3, 20, fails=True)
    assert count(directory, 3, 20, fails=False) == 2


def test_a_partition_that_is_missing_beside_others_is_loss(directory: Path) -> None:
    shutil.copytree(directory / "visits-0", directory / "others-0")
    shutil.rmtree(directory / "visits-0")
    with pytest.raises(DataLossError, match="visits-0 is in none of"):
        count(directory, 3, 5, fails=True)
    assert count(directory, 3, 5, fails=False) == 0


def test_a_path_without_any_log_is_not_the_right_one(directory: Path) -> None:
    for wrong in (directory / "nowhere", directory / "visits-0"):
        with pytest.raises(PathUnseenError, match="does not see the path"):
            count(wrong, 3, 5, fails=False)
