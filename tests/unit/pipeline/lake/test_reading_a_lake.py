"""A lake is read by its manifest: the files that count, and no others."""

from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from kavka.pipeline.lake.entries import Filter
from kavka.pipeline.lake.errors import LakeError
from kavka.pipeline.lake.lake import Lake
from kavka.pipeline.lake.layout import lake_folder
from tests.support.lakes import FIRST_DAY_US, TOPIC, append, new_manifest, rows, written_lake


def test_rows_of_all_batches_are_read_and_nothing_else(tmp_path: Path) -> None:
    written_lake(tmp_path, [(0, 0, 10), (1, 0, 5), (0, 10, 20)])
    stray = tmp_path / "data" / "date=2024-10-04" / "part-00000000000000000009-00000.parquet"
    pyarrow.parquet.write_table(rows(range(5)), stray)

    found = Lake(tmp_path).to_arrow().sort_by([("partition", "ascending"), ("offset", "ascending")])

    assert found.to_pylist() == rows(range(20)).to_pylist() + rows(range(5), 1).to_pylist()


def test_a_lake_without_rows_is_read_as_none(tmp_path: Path) -> None:
    new_manifest(tmp_path)
    lake = Lake(tmp_path)
    assert (lake.to_arrow().num_rows, lake.to_arrow().schema.field("offset").type) == (0, pyarrow.int64())
    assert lake.to_arrow(["offset", "site"], Filter(topic=TOPIC, start_offset=5)).column_names == ["offset", "site"]
    assert lake.dataset().count_rows() == 0


def test_a_filter_chooses_files_and_rows(tmp_path: Path) -> None:
    written_lake(tmp_path, [(0, 0, 10), (1, 0, 5), (0, 10, 20)])
    lake = Lake(tmp_path)
    wanted = Filter(topic=TOPIC, partition=0, start_offset=8, end_offset=12)

    assert [each.offsets[TOPIC][0].first for each in lake.files(wanted)] == [0, 10]
    assert lake.to_arrow(["offset"], wanted)["offset"].to_pylist() == [8, 9, 10, 11]
    late = Filter(start_us=FIRST_DAY_US + 18_000_000, end_us=FIRST_DAY_US + 19_000_000)
    assert lake.to_arrow(filters=late)["offset"].to_pylist() == [18]
    assert len(lake.files(late)) == 1
    none = lake.to_arrow(["value"], Filter(topic="others"))
    assert (none.num_rows, none.column_names) == (0, ["value"])


def test_next_offsets_and_archived_ranges_join_what_queries_did(tmp_path: Path) -> None:
    manifest = new_manifest(tmp_path)
    append(manifest, 100, 110, query="first")
    append(manifest, 111, 120, query="first")
    append(manifest, 0, 50, query="second")

    lake = Lake(tmp_path)

    assert lake.next_offsets() == {TOPIC: {0: 120}}
    assert lake.archived() == {TOPIC: {0: [(0, 50), (100, 120)]}}
    assert [(each.query, each.batch, each.next_offsets) for each in lake.commits()] == [
        ("first", 0, {TOPIC: {0: 110}}),
        ("first", 1, {TOPIC: {0: 120}}),
        ("second", 0, {TOPIC: {0: 50}}),
    ]


def test_a_reader_goes_on_to_newer_versions_when_told(tmp_path: Path) -> None:
    manifest = written_lake(tmp_path, [(0, 0, 10)])
    lake = Lake(tmp_path)
    append(manifest, 10, 20)

    assert lake.version == 1
    lake.refresh()
    assert (lake.version, lake.next_offsets()) == (2, {TOPIC: {0: 20}})


def test_a_folder_without_a_lake_is_said(tmp_path: Path) -> None:
    with pytest.raises(LakeError, match="there is no lake"):
        Lake(tmp_path)


@pytest.mark.parametrize(
    ("given", "folder"), [("/srv/lake", "/srv/lake"), ("lake", "lake"), ("file:/srv/a", "/srv/a"), ("file:///b", "/b")]
)
def test_a_lake_is_named_by_path_or_file_url(given: str, folder: str) -> None:
    assert lake_folder(given) == Path(folder)


def test_a_lake_in_an_object_store_is_refused() -> None:
    with pytest.raises(LakeError, match="hard links"):
        lake_folder("s3a://bucket/lake")
