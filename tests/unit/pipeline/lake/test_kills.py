"""Whoever is killed at whichever step: readers have whole batches, each once, and the next run goes on from there."""

from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from kavka.pipeline.lake import compact, publishing
from kavka.pipeline.lake.archive import COMPRESSIONS
from kavka.pipeline.lake.compact import Compaction
from kavka.pipeline.lake.errors import LakeError
from kavka.pipeline.lake.lake import Lake
from kavka.pipeline.lake.lock import LakeLock
from kavka.pipeline.lake.manifest import HOUR_MS
from tests.support.lake_batches import (
    KilledError,
    archive_batches,
    expected_positions,
    killed_at,
    listed,
    positions,
)

BATCHES = 4
FILES_PER_BATCH = 2


def _read(lake: Path) -> list[tuple[int, int]]:
    return positions(Lake(lake).to_arrow())


@pytest.mark.parametrize("step", publishing.STEPS)
def test_an_archive_killed_at_each_step_of_each_batch(tmp_path: Path, step: str) -> None:
    times = FILES_PER_BATCH if step == "renaming" else 1
    for batch in range(BATCHES):
        for count in range(times, 0, -1):
            with pytest.raises(KilledError):
                archive_batches(tmp_path, BATCHES, killed_at(step, count))
            whole = batch + (step == "committed")
            if whole:
                assert _read(tmp_path) == expected_positions(whole)
        if step != "committed":
            archive_batches(tmp_path, batch + 1)
    archive_batches(tmp_path, BATCHES)

    assert _read(tmp_path) == expected_positions(BATCHES) == positions(listed(tmp_path))
    assert list((tmp_path / "_kavka" / "staging" / "archive").iterdir()) == []


@pytest.mark.parametrize("step", compact.STEPS)
def test_a_compaction_killed_at_each_step(tmp_path: Path, step: str) -> None:
    archive_batches(tmp_path, BATCHES)
    with pytest.raises(KilledError):
        Compaction(tmp_path, keep_hours=0, reached=killed_at(step)).run()
    assert _read(tmp_path) == expected_positions(BATCHES)

    archive_batches(tmp_path, BATCHES + 1)
    Compaction(tmp_path, keep_hours=0).run()

    assert _read(tmp_path) == expected_positions(BATCHES + 1) == positions(listed(tmp_path))
    assert len(Lake(tmp_path).files()) == 1
    assert list((tmp_path / "_kavka" / "staging" / "compact").iterdir()) == []


def test_a_compacted_file_is_sorted_and_has_the_offsets_of_all(tmp_path: Path) -> None:
    archive_batches(tmp_path, BATCHES)
    before = Lake(tmp_path)

    done = Compaction(tmp_path).run()

    (file,) = Lake(tmp_path).files()
    table = pyarrow.parquet.read_table(tmp_path / file.path, partitioning=None)
    order = list(zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True))
    assert order == expected_positions(BATCHES)
    assert (done.files_before, done.files_after, done.deleted) == (BATCHES * FILES_PER_BATCH, 1, 0)
    # Readers of the version before go on, with the files that were replaced.
    assert positions(before.to_arrow()) == expected_positions(BATCHES)
    assert Lake(tmp_path).next_offsets() == before.next_offsets()


def test_replaced_files_are_deleted_after_their_hours(tmp_path: Path) -> None:
    archive_batches(tmp_path, BATCHES)
    clock_ms = [1_000_000_000_000]
    Compaction(tmp_path, keep_hours=2, clock_ms=lambda: clock_ms[0]).run()
    replaced = BATCHES * FILES_PER_BATCH

    clock_ms[0] += 2 * HOUR_MS - 1
    assert Compaction(tmp_path, keep_hours=2, clock_ms=lambda: clock_ms[0]).run().deleted == 0
    clock_ms[0] += 1
    assert Compaction(tmp_path, keep_hours=2, clock_ms=lambda: clock_ms[0]).run().deleted == replaced
    assert positions(listed(tmp_path)) == expected_positions(BATCHES)


def test_an_archive_goes_on_beside_a_compaction(tmp_path: Path) -> None:
    """Its commits come between at each step of the compaction, and the compaction leaves what it stages alone."""
    archive_batches(tmp_path, BATCHES)
    steps: list[str] = []

    def reached(step: str) -> None:
        if step not in steps:
            steps.append(step)
            archive_batches(tmp_path, BATCHES + len(steps))

    Compaction(tmp_path, keep_hours=0, reached=reached).run()

    batches = BATCHES + len(compact.STEPS)
    assert _read(tmp_path) == expected_positions(batches) == positions(listed(tmp_path))


def test_a_compaction_between_an_archive_and_its_commit(tmp_path: Path) -> None:
    archive_batches(tmp_path, BATCHES)

    def reached(step: str) -> None:
        if step == "manifest":
            Compaction(tmp_path, keep_hours=0).run()

    lock = LakeLock(tmp_path / "_kavka" / "lock")
    lock.take("the archive")
    archive_batches(tmp_path, BATCHES + 1, reached)
    lock.release()

    assert _read(tmp_path) == expected_positions(BATCHES + 1) == positions(listed(tmp_path))


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_compaction_knows_each_compression_of_the_archive(tmp_path: Path, compression: str) -> None:
    archive_batches(tmp_path, 2)

    assert Compaction(tmp_path, compression=compression).run().files_after == 1
    assert _read(tmp_path) == expected_positions(2)


def test_a_compression_that_is_not_known_is_an_error_of_the_lake(tmp_path: Path) -> None:
    archive_batches(tmp_path, 2)

    with pytest.raises(LakeError, match="shrunk"):
        Compaction(tmp_path, compression="shrunk").run()
    assert _read(tmp_path) == expected_positions(2)


def test_files_that_differ_in_what_may_be_null_become_one(tmp_path: Path) -> None:
    """A column of a batch without nulls may be declared so, by a job that was changed."""
    archive_batches(tmp_path, 2)
    for file in Lake(tmp_path).files()[::2]:
        table = pyarrow.parquet.read_table(tmp_path / file.path, partitioning=None)
        strict = pyarrow.schema([each.with_nullable(each.name != "value") for each in table.schema])
        pyarrow.parquet.write_table(table.cast(strict), tmp_path / file.path)

    assert Compaction(tmp_path).run().files_after == 1
    assert _read(tmp_path) == expected_positions(2)
    (file,) = Lake(tmp_path).files()
    assert all(each.nullable for each in pyarrow.parquet.read_schema(tmp_path / file.path))


def test_files_of_other_names_are_never_deleted(tmp_path: Path) -> None:
    archive_batches(tmp_path, 1)
    strangers = [tmp_path / "data" / "notes.parquet", tmp_path / "data" / "date=2024-10-04" / "mine.parquet"]
    for each in strangers:
        each.write_bytes(b"mine")

    archive_batches(tmp_path, 2)
    Compaction(tmp_path, keep_hours=0).run()

    assert all(each.read_bytes() == b"mine" for each in strangers)


def test_orphans_are_found_in_a_folder_that_is_named_as_a_file(tmp_path: Path) -> None:
    archive_batches(tmp_path, 1)
    orphan = tmp_path / "data" / "topic=events.parquet" / "part-00000000000000000002-00000.parquet"
    orphan.parent.mkdir()
    orphan.write_bytes(b"cut off")

    archive_batches(tmp_path, 1)

    assert not orphan.exists()
