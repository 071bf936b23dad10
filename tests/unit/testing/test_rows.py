"""What goes into a topic and how what is found there is shown."""

from typing import Any

import pytest

from kavka.testing.rows import MOST_SHOWN, Record, Records, Row, row_of


def record(offset: int, value: bytes | None, key: bytes | None = None, partition: int = 0) -> Record:
    return Record(partition, offset, 1_000, key, value, ())


@pytest.mark.parametrize(
    ("given", "key", "value"),
    [
        (b"bytes", None, b"bytes"),
        ("t\u00e9xt", None, "t\u00e9xt".encode()),
        (None, None, None),
        ({"a": [1, None]}, None, b'{"a":[1,null]}'),
        (7, None, b"7"),
        (("key", "value"), b"key", b"value"),
        ((1, None), b"1", None),
        (Row("value", key=b"k"), b"k", b"value"),
    ],
)
def test_a_row_is_a_value_a_pair_or_all_of_a_record(given: Any, key: bytes | None, value: bytes | None) -> None:
    row = row_of(given)
    assert (row.key, row.value) == (key, value)


def test_what_is_no_row_is_refused() -> None:
    with pytest.raises(TypeError):
        row_of(object())


def test_records_compare_by_what_they_hold() -> None:
    first, second = record(0, b"a", b"k"), record(1, None)
    records = Records("orders", 1, [first, second])
    assert records == [first, second]
    assert records == Records("others", 2, [first, second])
    assert records != [first]
    assert (records.keys, records.values, records.texts) == ([b"k", None], [b"a", None], ["a", None])
    assert (len(records), records[-1], records[:1]) == (2, second, [first])
    assert Records("orders", 2, [first, record(0, b"b", partition=1)]).of(1) == [record(0, b"b", partition=1)]
    assert Records("orders", 1, [record(0, b'{"a":1}')])[0].json == {"a": 1}


def test_records_are_shown_line_by_line_and_no_more_than_can_be_read() -> None:
    many = Records("orders", 3, [record(offset, b"x" * 1000, b"\0key") for offset in range(MOST_SHOWN + 7)])
    lines = many.shown().splitlines()
    assert lines[0] == f"topic orders: {MOST_SHOWN + 7} records in 3 partitions"
    assert lines[1].startswith(r"  0@0 t=1000 '\x00key': 'xxx")
    assert lines[1].endswith("... (1000 bytes)")
    assert len(lines) == MOST_SHOWN + 2
    assert lines[-1] == "  ... and 7 more"
