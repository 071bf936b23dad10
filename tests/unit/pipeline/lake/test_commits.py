"""What is committed can be read, once and for good, whoever else writes and whatever the batch holds."""

import os
from collections.abc import Iterable
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from kavka.pipeline.lake import manifest as manifests
from kavka.pipeline.lake.compact import Compaction
from kavka.pipeline.lake.errors import LakeError, ManifestError
from kavka.pipeline.lake.lake import Lake
from kavka.pipeline.lake.layout import ARCHIVE, Layout
from kavka.pipeline.lake.manifest import Manifest
from kavka.pipeline.lake.partition_spec import BY_DATE
from kavka.pipeline.lake.publishing import Publisher, StagedFile, staged_files
from kavka.storage.files import AnyPath, Files
from tests.support.lakes import SCHEMA, append, new_manifest, rows


def _staged(
    manifest: Manifest, name: str, tables: Iterable[pyarrow.Table], date: str = "2024-10-04"
) -> list[StagedFile]:
    attempt = manifest.layout.staging(ARCHIVE) / name
    folder = attempt / f"_kavka_0={date}"
    folder.mkdir(parents=True)
    for number, table in enumerate(tables):
        pyarrow.parquet.write_table(table, folder / f"part-{number}.parquet")
    return staged_files(attempt, BY_DATE)


def _publisher(manifest: Manifest, files: Files | None = None) -> Publisher:
    return Publisher(manifest.layout, manifest, files or Files(), lambda _: None)


def _link_and_lose_the_answer(source: AnyPath, target: AnyPath) -> None:
    os.link(source, target)
    raise FileExistsError(target)


class LostAnswers(Files):
    """NFS whose answers to `link` get lost: it is sent again, and finds the name taken, by itself."""

    link = staticmethod(_link_and_lose_the_answer)


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


def test_a_link_whose_answer_got_lost_is_a_commit(tmp_path: Path) -> None:
    manifest = Manifest(Layout(tmp_path), LostAnswers())
    manifest.create()
    publisher = _publisher(manifest, LostAnswers())
    for batch in range(3):
        staged = _staged(manifest, str(batch), [rows([batch])])
        assert publisher.publish(staged, BY_DATE, "q", batch).version == batch + 1

    assert sorted(Lake(tmp_path).to_arrow()["offset"].to_pylist()) == [0, 1, 2]
    assert list(manifest.layout.staging(ARCHIVE).rglob("*.json")) == []


@pytest.mark.parametrize("date", ["2024-10-04", "2024-10-05"])
def test_a_second_archive_breaks_nothing(tmp_path: Path, date: str) -> None:
    """The lock failed: one of them is told, and readers have the other's batch whole."""
    first, second = new_manifest(tmp_path), new_manifest(tmp_path)
    others = _staged(second, "b", [rows(range(100, 103))], date)
    told: list[LakeError] = []

    def reached(step: str) -> None:
        if step == "manifest" and second.state.version == 0:
            try:
                _publisher(second).publish(others, BY_DATE, "other", 0)
            except LakeError as error:
                told.append(error)

    try:
        Publisher(first.layout, first, Files(), reached).publish(
            _staged(first, "a", [rows(range(10))]), BY_DATE, "q", 0
        )
    except LakeError as error:
        told.append(error)

    assert len(told) == 1
    assert "another" in str(told[0])
    assert Lake(tmp_path).to_arrow()["offset"].to_pylist() in (list(range(10)), list(range(100, 103)))


@pytest.mark.parametrize("time_us", [253_402_300_800_000_000, -62_135_596_800_000_001, 2**63 // 1000 * 1000 - 1000])
def test_a_record_of_a_strange_time_is_archived_as_all_others(tmp_path: Path, time_us: int) -> None:
    manifest = new_manifest(tmp_path)
    times = pyarrow.array([time_us, 0], pyarrow.int64()).cast(SCHEMA.field("timestamp").type)
    table = rows([0, 1]).set_column(3, SCHEMA.field("timestamp"), times)

    made = _publisher(manifest).publish(_staged(manifest, "a", [table]), BY_DATE, "q", 0)

    bounds = made.add[0].min_timestamp_us, made.add[0].max_timestamp_us
    assert bounds == (min(time_us, 0), max(time_us, 0))
    assert Lake(tmp_path).to_arrow(["offset"])["offset"].to_pylist() == [0, 1]


def test_a_checkpoint_longer_than_readers_take_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(manifests, "MAX_FILE_BYTES", 20_000)
    manifest = new_manifest(tmp_path)
    for batch in range(200):
        append(manifest, batch * 10, batch * 10 + 10)
        manifest.checkpoint_if_due(ARCHIVE, 0)

    lake = Lake(tmp_path)
    assert (lake.version, len(lake.files())) == (200, 200)
    refused = [each for each in caplog.messages if "not written" in each]
    assert 1 <= len(refused) < 20, "it is not tried again at each batch"


def test_a_version_longer_than_readers_take_is_not_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = new_manifest(tmp_path)
    append(manifest, 0, 10)
    monkeypatch.setattr(manifests, "MAX_FILE_BYTES", manifest.layout.commit(1).stat().st_size)
    staged = _staged(manifest, "a", [rows([each], partition=each) for each in range(10)])

    with pytest.raises(ManifestError, match="not committed"):
        _publisher(manifest).publish(staged, BY_DATE, "other", 0)
    assert Lake(tmp_path).version == 1
