"""What is committed can be read, once and for good, whoever else writes and whatever the batch holds."""

from collections.abc import Iterable
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from kavka.pipeline.lake.compact import Compaction
from kavka.pipeline.lake.errors import ManifestError
from kavka.pipeline.lake.lake import Lake
from kavka.pipeline.lake.layout import ARCHIVE, Layout
from kavka.pipeline.lake.manifest import Manifest
from kavka.pipeline.lake.partition_spec import BY_DATE
from kavka.pipeline.lake.publishing import Publisher, StagedFile, staged_files
from kavka.storage.files import Files
from tests.support.lakes import new_manifest, rows


def _staged(
    manifest: Manifest, name: str, tables: Iterable[pyarrow.Table], date: str = "2024-10-04"
) -> list[StagedFile]:
    attempt = manifest.layout.staging(ARCHIVE) / name
    folder = attempt / f"_kavka_0={date}"
    folder.mkdir(parents=True)
    for number, table in enumerate(tables):
        pyarrow.parquet.write_table(table, folder / f"part-{number}.parquet")
    return staged_files(attempt, BY_DATE)


def _publisher(manifest: Manifest) -> Publisher:
    return Publisher(manifest.layout, manifest, Files(), lambda _: None)


def test_several_rows_of_one_record_are_archived_read_and_compacted(tmp_path: Path) -> None:
    manifest = new_manifest(tmp_path)
    publisher = _publisher(manifest)
    publisher.publish(_staged(manifest, "a", [rows([0, 0, 1, 1]), rows([1, 2, 2])]), BY_DATE, "q", 0)
    publisher.publish(_staged(manifest, "b", [rows([3, 3, 3])]), BY_DATE, "q", 1)

    Compaction(tmp_path).run()

    lake = Lake(tmp_path)
    assert sorted(lake.to_arrow()["offset"].to_pylist()) == [0, 0, 1, 1, 1, 2, 2, 3, 3, 3]
    assert lake.next_offsets() == {"visits": {0: 4}}


def test_what_no_reader_would_take_is_not_committed(tmp_path: Path) -> None:
    manifest = new_manifest(tmp_path)
    publisher = _publisher(manifest)
    publisher.publish(_staged(manifest, "a", [rows([0])]), BY_DATE, "q", 0)

    with pytest.raises(ManifestError, match=r"not committed.*negative"):
        publisher.publish(_staged(manifest, "b", [rows([-5, -4])]), BY_DATE, "other", 0)

    assert Lake(tmp_path).version == 1
    assert not Layout(tmp_path).commit(2).exists()
