"""Rows as the records that are sent, whatever their texts hold."""

import pyarrow as pa
import pytest

from kavka.pipeline.source.errors import RowError
from kavka.pipeline.source.writing import records_of


def test_texts_are_sent_as_their_bytes_whether_they_are_utf8_or_not() -> None:
    places = pa.array([0, 1, 3], pa.int32()).buffers()[1]
    garbled = pa.Array.from_buffers(pa.string(), 2, [None, places, pa.py_buffer(b"a\x80\x81")])
    batch = pa.RecordBatch.from_arrays([garbled, pa.array(["k", None])], ["value", "key"])
    assert list(records_of(batch, "copies")) == [
        ("copies", b"a", b"k", None, None, []),
        ("copies", b"\x80\x81", None, None, None, []),
    ]


def test_a_row_without_a_topic_is_refused() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([b"v"]), pa.array([None], pa.string())], ["value", "topic"])
    with pytest.raises(RowError, match="a row has no topic"):
        list(records_of(batch, None))
