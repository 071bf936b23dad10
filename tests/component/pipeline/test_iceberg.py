"""A batch's files become part of an Iceberg table in one snapshot, which says how far its query has come."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import create_autospec

import pyarrow
import pyarrow.parquet
import pytest
from pyiceberg.catalog import Catalog, load_catalog

from kavka.pipeline.lake import iceberg
from kavka.pipeline.lake.errors import LakeError
from kavka.pipeline.lake.iceberg import BATCH, QUERY, IcebergSink, IcebergTable
from kavka.pipeline.lake.layout import Layout
from kavka.pipeline.lake.partition_spec import BY_DATE
from kavka.pipeline.lake.publishing import StagedFile, staged_files
from kavka.pipeline.lake.spark_rows import to_cut
from kavka.storage.files import AnyPath, Files
from tests.support.job_runs import Reports, run_of
from tests.support.lakes import TOPIC, rows
from tests.support.partition_logs import open_files_in


def _staged(folder: Path, table: pyarrow.Table) -> list[StagedFile]:
    path = folder / "_kavka_0=2024-10-04" / "part-0.parquet"
    path.parent.mkdir(parents=True)
    pyarrow.parquet.write_table(table, path)
    return staged_files(folder, BY_DATE)


def _catalog(tmp_path: Path) -> dict[str, str]:
    return {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": tmp_path.as_uri()}


@pytest.fixture
def table(tmp_path: Path) -> Iterator[IcebergTable]:
    with closing(IcebergTable("web.visits", _catalog(tmp_path))) as opened:
        yield opened


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Catalog]:
    with load_catalog("kavka", **_catalog(tmp_path)) as opened:
        yield opened


def test_snapshots_say_how_far_a_query_has_come(table: IcebergTable, reader: Catalog, tmp_path: Path) -> None:
    assert table.state().queries == {}
    table.add(_staged(tmp_path / "a", rows(range(5))), "q", 0)
    table.add(_staged(tmp_path / "b", rows(range(5, 8))), "q", 1)

    with closing(IcebergTable("web.visits", _catalog(tmp_path))) as another:
        found = another.state()
    assert found.queries["q"].batch == 1
    assert found.archived() == {TOPIC: {0: [(0, 8)]}}
    assert found.starting_offsets() == {TOPIC: {0: 8}}
    read = reader.load_table("web.visits")
    assert sorted(read.scan().to_arrow()["offset"].to_pylist()) == list(range(8))
    snapshot = read.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    assert (snapshot.summary[QUERY], snapshot.summary[BATCH]) == ("q", "1")
    with pytest.raises(LakeError, match="offset 5 of visits-0 comes in batch 2"):
        table.add(_staged(tmp_path / "c", rows(range(5, 9))), "q", 2)


def test_what_another_job_has_added_meanwhile_is_not_added_again(
    table: IcebergTable, reader: Catalog, tmp_path: Path
) -> None:
    cut = to_cut(table.state(), "q", 0)
    staged = _staged(tmp_path / "a", rows(range(3, 9)))
    with closing(IcebergTable("web.visits", _catalog(tmp_path))) as another:
        another.add(_staged(tmp_path / "b", rows(range(5))), "of another job", 0)

    with pytest.raises(LakeError, match="another query has archived offsets 3 to 4 of visits-0 while this one did"):
        table.add(staged, "q", 0, cut)
    # When it comes again they are cut.
    cut = to_cut(table.state(), "q", 0)
    assert cut == {TOPIC: {0: [(0, 5)]}}
    table.add(_staged(tmp_path / "c", rows(range(5, 9))), "q", 0, cut)
    found = reader.load_table("web.visits").scan().to_arrow()["offset"].to_pylist()
    assert sorted(found) == list(range(9))


def test_a_new_column_is_added_to_the_table(table: IcebergTable, reader: Catalog, tmp_path: Path) -> None:
    table.add(_staged(tmp_path / "a", rows(range(2))), "q", 0)
    more = rows(range(2, 4)).append_column("site", pyarrow.array(["x", "y"]))
    table.add(_staged(tmp_path / "b", more), "q", 1)

    read = reader.load_table("web.visits").scan().to_arrow().sort_by("offset")
    assert read["site"].to_pylist() == [None, None, "x", "y"]


def test_a_closed_table_holds_nothing(tmp_path: Path) -> None:
    with closing(IcebergTable("web.visits", _catalog(tmp_path))) as table:
        table.add(_staged(tmp_path / "a", rows(range(2))), "q", 0)
        assert open_files_in(tmp_path) == [f"{tmp_path}/catalog.db"]
    assert open_files_in(tmp_path) == []


def test_a_catalog_that_cannot_be_closed_leaves_the_folder_to_others(tmp_path: Path) -> None:
    def open_sink() -> IcebergSink:
        sink = IcebergSink(Layout(tmp_path / "lake"), BY_DATE, "web.visits", _catalog(tmp_path))
        any_spark: Any = None
        sink.open(run_of(any_spark, tmp_path, "", "q", Reports()))
        return sink

    first = open_sink()
    table = create_autospec(IcebergTable, instance=True)
    table.close.side_effect = OSError("the catalog has gone")
    first._table = table
    with pytest.raises(OSError, match="has gone"):
        first.close()
    open_sink().close()


class NotedFiles(Files):
    """Notes what was made durable while there was no table."""

    def __init__(self, reader: Catalog) -> None:
        super().__init__()
        self.durable: set[Path] = set()
        self._reader = reader

    def fsync_file(self, path: AnyPath) -> None:
        super().fsync_file(path)
        self._note(path)

    def fsync_directory(self, path: AnyPath) -> None:
        super().fsync_directory(path)
        self._note(path)

    def _note(self, path: AnyPath) -> None:
        if not self._reader.table_exists("web.visits"):
            self.durable.add(Path(path))


class Batch:
    """What a sink asks a DataFrame, where staging is somebody else's."""

    dtypes = (("topic", "string"), ("partition", "int"), ("offset", "bigint"), ("timestamp", "timestamp"))


def _archived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: pyarrow.Table, files: Files) -> None:
    """By the sink, one batch, as Spark would have staged it."""

    def stage(batch: object, folder: Path, *_: object) -> int:
        _staged(folder, table)
        return int(table.num_rows)

    monkeypatch.setattr(iceberg, "stage", stage)
    sink = iceberg.IcebergSink(Layout(tmp_path / "lake"), BY_DATE, "web.visits", _catalog(tmp_path), files)
    any_spark: Any = None
    any_batch: Any = Batch()
    sink.open(run_of(any_spark, tmp_path, "", "archive", Reports()))
    with closing(sink):
        sink.write(any_batch, 0)


@pytest.mark.parametrize("time_us", [253_402_300_800_000_000, 2**62, -(2**62)])
def test_a_record_may_have_any_time_and_a_text_any_bytes(
    reader: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, time_us: int
) -> None:
    one = rows([7])
    times = pyarrow.array([time_us], pyarrow.timestamp("us", "UTC"))
    places = pyarrow.array([0, 2], pyarrow.int32()).buffers()[1]
    garbled = pyarrow.Array.from_buffers(pyarrow.string(), 1, [None, places, pyarrow.py_buffer(b"\x80\x81")])
    hostile = one.set_column(3, "timestamp", times).append_column("site", garbled)
    _archived(tmp_path, monkeypatch, hostile, Files())
    found = reader.load_table("web.visits").scan(row_filter="offset == 7").to_arrow()
    assert found["timestamp"].cast(pyarrow.int64()).to_pylist() == [time_us]
    assert found["site"].cast(pyarrow.large_binary()).to_pylist() == [b"\x80\x81"]


def test_how_far_a_query_has_come_outlives_its_snapshots(table: IcebergTable, reader: Catalog, tmp_path: Path) -> None:
    table.add(_staged(tmp_path / "a", rows(range(5))), "q", 0)
    table.add(_staged(tmp_path / "b", rows(range(5, 8))), "q", 1)
    # As a compaction of the table and its expiry of snapshots leave it.
    compacted = reader.load_table("web.visits")
    compacted.overwrite(compacted.scan().to_arrow())
    compacted = reader.load_table("web.visits")
    newest = compacted.current_snapshot()
    assert newest is not None
    expiring = compacted.maintenance.expire_snapshots()
    for each in compacted.snapshots():
        if each.snapshot_id != newest.snapshot_id:
            expiring = expiring.by_id(each.snapshot_id)
    expiring.commit()

    found = table.state()
    assert found.queries["q"].batch == 1
    assert found.starting_offsets() == {TOPIC: {0: 8}}


def test_files_are_durable_before_a_snapshot_names_them(
    reader: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = NotedFiles(reader)
    _archived(tmp_path, monkeypatch, rows(range(5)), files)
    (written,) = (tmp_path / "lake" / "data").rglob("*.parquet")
    assert reader.load_table("web.visits").scan().count() == 5
    assert files.durable >= {written, *written.parents[:4]}


def test_a_catalog_that_is_none_is_said(tmp_path: Path) -> None:
    with pytest.raises(LakeError, match="catalog: "):
        IcebergTable("web.visits", {"type": "no such kind"})
