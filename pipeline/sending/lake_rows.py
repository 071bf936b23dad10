"""A lake's rows of one partition in the order of their offsets, in pieces that fit into memory."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, NamedTuple

import numpy
import pyarrow

from kavka.pipeline.lake.entries import DataFile, Filter, OffsetRange
from kavka.pipeline.lake.lake import Lake, row_filter

PIECE_BYTES: Final = 16 * 1024 * 1024
"""Of compressed files, about."""
PIECE_ROWS: Final = 200_000
_COLUMNS: Final = ("offset", "timestamp", "key", "value", "headers")
_BYTES: Final = ("key", "value")


class NoRowsError(Exception):
    """The lake does not have what a topic's rows are made of; the message says what."""


class Piece(NamedTuple):
    """Rows of offsets before `end`, and not before the end of the piece before."""

    rows: pyarrow.Table
    end: int


def pieces(lake: Lake, wanted: Filter) -> Iterator[Piece]:
    """The rows of the filter's topic, partition, offsets and times. Raises NoRowsError, LakeError, OSError.

    Files overlap: a batch of the archive has one for each day. So rows are taken by ranges of offsets, from all files
    that may hold some. They are read when the piece is asked for: the files of a lake's version stay for some hours.
    """
    topic, partition = wanted.topic, wanted.partition
    assert topic is not None, "rows of one topic are wanted"
    assert partition is not None, "rows of one partition are wanted"
    files = _planned(lake, wanted, topic, partition)
    if not files:
        return
    schema = lake.dataset(wanted).schema
    _check(schema, lake, topic)
    columns = [name for name in _COLUMNS if name in schema.names]
    row_bytes = max(each.size_bytes / each.rows for _, each in files)
    step = int(min(max(PIECE_BYTES / max(row_bytes, 1.0), 1), PIECE_ROWS))
    last = max(offsets.last for offsets, _ in files)
    end = last + 1 if wanted.end_offset is None else min(wanted.end_offset, last + 1)
    begin = max(wanted.start_offset or 0, min(offsets.first for offsets, _ in files))
    while begin < end:
        here = [offsets for offsets, _ in files if offsets.last >= begin]
        begin = max(begin, min((offsets.first for offsets in here), default=end))
        following = min(begin + step, end)
        if begin < following:
            chosen = replace(wanted, start_offset=begin, end_offset=following)
            try:
                found = lake.dataset(chosen).to_table(columns=columns, filter=row_filter(chosen))
            except FileNotFoundError:
                # A compaction has replaced them, longer ago than the lake keeps what it replaces.
                files = _planned_anew(lake, wanted, topic, partition)
                continue
            yield Piece(_with_bytes(found.sort_by("offset")), following)
        begin = following


def portions(piece: Piece, limit: int) -> Iterator[Piece]:
    """A piece's rows, about so many at a time. A record that a job has made several rows of is not parted: whoever goes
    on by offsets would miss the others.
    """
    rows = piece.rows
    offsets = rows.column("offset").to_numpy()
    begin = 0
    while begin < rows.num_rows:
        stop = min(begin + limit, rows.num_rows)
        last = int(offsets[stop - 1])
        stop = int(numpy.searchsorted(offsets, last, "right"))
        yield Piece(rows.slice(begin, stop - begin), piece.end if stop == rows.num_rows else last + 1)
        begin = stop


def _planned(lake: Lake, wanted: Filter, topic: str, partition: int) -> list[tuple[OffsetRange, DataFile]]:
    """The files that may hold some of the rows, each with its offsets of the partition."""
    return [(each.offsets[topic][partition], each) for each in lake.files(wanted)]


def _planned_anew(lake: Lake, wanted: Filter, topic: str, partition: int) -> list[tuple[OffsetRange, DataFile]]:
    """Of the lake's newest version. Raises FileNotFoundError where that is the one that has just been read."""
    before = lake.version
    lake.refresh()
    if lake.version == before:
        raise FileNotFoundError(f"{lake.path}: a file is gone that the manifest names")
    return _planned(lake, wanted, topic, partition)


def _check(schema: pyarrow.Schema, lake: Lake, topic: str) -> None:
    if "value" not in schema.names:
        raise NoRowsError(f"{lake.path}: its rows of {topic} have no column value: the archive has dropped it")
    for name in (name for name in _BYTES if name in schema.names):
        kind = schema.field(name).type
        if not (pyarrow.types.is_binary(kind) or pyarrow.types.is_string(kind)):
            raise NoRowsError(f"{lake.path}: the column {name} of its rows of {topic} is {kind}: it was decoded")


def _with_bytes(rows: pyarrow.Table) -> pyarrow.Table:
    """Texts as their bytes, whether these are UTF-8 or not."""
    for name in (name for name in _BYTES if name in rows.schema.names):
        number = rows.schema.get_field_index(name)
        rows = rows.set_column(number, name, rows.column(name).cast(pyarrow.binary()))
    return rows
