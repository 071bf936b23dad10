"""A lake's rows of one partition in the order of their offsets, in pieces that fit into memory."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, NamedTuple

import pyarrow

from kavka.pipeline.lake.entries import Filter
from kavka.pipeline.lake.lake import Lake, row_filter

PIECE_BYTES: Final = 16 * 1024 * 1024
"""Of compressed files, about."""
PIECE_ROWS: Final = 200_000
_COLUMNS: Final = ("offset", "timestamp", "key", "value", "headers")


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
    files = [(each.offsets[topic][partition], each) for each in lake.files(wanted)]
    if not files:
        return
    schema = lake.dataset(wanted).schema
    if "value" not in schema.names:
        raise NoRowsError(f"{lake.path}: its rows of {topic} have no column value: the archive has dropped it")
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
            found = lake.dataset(chosen).to_table(columns=columns, filter=row_filter(chosen))
            yield Piece(found.sort_by("offset"), following)
        begin = following
