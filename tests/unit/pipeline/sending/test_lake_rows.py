"""A lake's rows on their way to a topic: in pieces of their offsets, as bytes, whatever a compaction does meanwhile."""

from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from kavka.pipeline.lake.compact import Compaction
from kavka.pipeline.lake.entries import Filter
from kavka.pipeline.lake.lake import Lake
from kavka.pipeline.sending import lake_rows
from kavka.pipeline.sending.lake_rows import NoRowsError, Piece, pieces, portions
from tests.support.lakes import TOPIC, written_lake

WANTED = Filter(topic=TOPIC, partition=0)


def with_values(lake: Path, values: pyarrow.Array) -> None:
    """In place of those of the lake's one file."""
    (path,) = lake.glob("data/*/*.parquet")
    table = pyarrow.parquet.read_table(path, partitioning=None)
    pyarrow.parquet.write_table(table.set_column(table.num_columns - 1, "value", values), path)


def test_a_record_of_several_rows_is_in_one_portion() -> None:
    rows = pyarrow.table({"offset": [3, 3, 3, 4, 6, 6, 9]})
    found = list(portions(Piece(rows, 12), 2))
    assert [(each.rows["offset"].to_pylist(), each.end) for each in found] == [
        ([3, 3, 3], 4),
        ([4, 6, 6], 7),
        ([9], 12),
    ]
    assert [each.end for each in portions(Piece(rows, 12), 100)] == [12]


def test_texts_are_their_bytes_whether_they_are_utf8_or_not(tmp_path: Path) -> None:
    written_lake(tmp_path, [(0, 0, 2)])
    places = pyarrow.array([0, 1, 3], pyarrow.int32()).buffers()[1]
    with_values(
        tmp_path, pyarrow.Array.from_buffers(pyarrow.string(), 2, [None, places, pyarrow.py_buffer(b"a\x80\x81")])
    )
    (piece,) = pieces(Lake(tmp_path), WANTED)
    assert piece.rows["value"].to_pylist() == [b"a", b"\x80\x81"]


def test_columns_that_were_decoded_are_no_records(tmp_path: Path) -> None:
    written_lake(tmp_path, [(0, 0, 2)])
    with_values(tmp_path, pyarrow.array([{"site": "a"}, {"site": "b"}]))
    with pytest.raises(NoRowsError, match=r"the column value of its rows of visits is struct<site: string>"):
        list(pieces(Lake(tmp_path), WANTED))


def test_a_compaction_that_deletes_what_it_replaced_takes_no_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lake_rows, "PIECE_ROWS", 4)
    written_lake(tmp_path, [(0, 0, 5), (0, 5, 10), (0, 10, 12)])
    reading = pieces(Lake(tmp_path), WANTED)
    found = next(reading).rows["offset"].to_pylist()
    Compaction(tmp_path, keep_hours=0).run()
    found += [offset for piece in reading for offset in piece.rows["offset"].to_pylist()]
    assert found == list(range(12))


def test_a_file_that_is_gone_for_good_ends_the_reading(tmp_path: Path) -> None:
    written_lake(tmp_path, [(0, 0, 5)])
    reading = pieces(Lake(tmp_path), WANTED)
    for path in tmp_path.glob("data/*/*.parquet"):
        path.unlink()
    with pytest.raises(FileNotFoundError):
        next(reading)
