"""What `kavka produce` makes of lines and of JSON, and what it refuses."""

import io
import json
import random
from contextlib import suppress

import pytest

from kavka.cli.consume.json_format import json_line
from kavka.cli.produce.input_record import InputRecord, RecordError
from kavka.cli.produce.json_lines import record_of_json
from kavka.cli.produce.line_format import LineFormat
from kavka.cli.produce.lines import lines_of
from tests.support.shown_records import Shown

ALL = {"parse.key": "true", "parse.headers": " True "}


def test_a_line_is_a_value() -> None:
    assert LineFormat({}).record(b"a\tb") == InputRecord(None, b"a\tb")
    assert LineFormat({}).record(b"") == InputRecord(None, b"")
    assert LineFormat({}).record(b"\xff\0") == InputRecord(None, b"\xff\0")


def test_headers_key_and_value_are_told_apart_as_by_kafkas_reader() -> None:
    line = LineFormat(ALL).record
    assert line(b"a:1,b:x:y,c:\tkey\tvalue\tmore") == InputRecord(
        b"key", b"value\tmore", (("a", b"1"), ("b", b"x:y"), ("c", b""))
    )
    other = {"key.separator": "=>", "headers.delimiter": "|", "headers.separator": ";", "headers.key.separator": "="}
    assert LineFormat({**ALL, **other}).record(b"a=1;b=2|key=>value") == InputRecord(
        b"key", b"value", (("a", b"1"), ("b", b"2"))
    )


def test_the_null_marker_is_null_wherever_it_stands_alone() -> None:
    line = LineFormat({**ALL, "null.marker": "NULL"}).record
    assert line(b"NULL\tNULL\tNULL") == InputRecord(None, None, ())
    assert line(b"a:NULL\tk\tNULLs") == InputRecord(b"k", b"NULLs", (("a", None),))
    with pytest.raises(RecordError, match="null marker"):
        line(b"NULL:1\tk\tv")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"no tab", "no headers delimiter '\\\\t' in 'no tab'"),
        (b"a:1\tno second tab", "no key separator"),
        (b"a\tk\tv", "no header key separator ':' in the header 'a'"),
        (b"\xff:1\tk\tv", "no UTF-8"),
        (b"\x1b" * 100, r"'\\x1b(\\x1b)*\.\.\.'"),
    ],
)
def test_a_line_that_lacks_a_separator_says_which(line: bytes, problem: str) -> None:
    with pytest.raises(RecordError, match=problem):
        LineFormat(ALL).record(line)


def test_errors_may_be_ignored_as_kafkas_reader_does() -> None:
    line = LineFormat({**ALL, "ignore.error": "true"}).record
    assert line(b"value") == InputRecord(None, b"value")
    assert line(b"a,b:1\tk\tv") == InputRecord(b"k", b"v", (("a", None), ("b", b"1")))


@pytest.mark.parametrize(
    "properties",
    [
        {"parse.keys": "true"},
        {"headers.delimiter": ","},
        {"headers.separator": ":"},
        {"headers.key.separator": "\t"},
        {"null.marker": ","},
        {"null.marker": "\t"},
        {"key.separator": ""},
    ],
)
def test_properties_that_cannot_be_are_refused(properties: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"no property|equal|empty"):
        LineFormat(properties)


def test_random_lines_are_records_or_errors() -> None:
    dice = random.Random("lines")
    formats = [LineFormat(ALL), LineFormat({**ALL, "null.marker": "N", "ignore.error": "true"})]
    for _ in range(2_000):
        line = bytes(dice.choices(b"ab:,\tN\xff\0", k=dice.randrange(20)))
        for each in formats:
            with suppress(RecordError):
                each.record(line)
        with suppress(RecordError):
            record_of_json(line, keeps_partition=True)


def test_lines_end_as_people_end_them_and_the_last_one_need_not() -> None:
    assert list(lines_of(io.BytesIO(b"a\nb\r\n\nc\rd"))) == [(1, b"a"), (2, b"b"), (3, b""), (4, b"c\rd")]
    assert list(lines_of(io.BytesIO(b""))) == []


def test_a_line_beyond_the_limit_is_passed_over_and_the_next_one_read() -> None:
    stream = io.BytesIO(b"abcd\r\nabcde\n" + b"x" * 3_000_000 + b"\nlast")
    assert list(lines_of(stream, max_bytes=4)) == [(1, b"abcd"), (2, None), (3, None), (4, b"last")]
    assert list(lines_of(io.BytesIO(b"abcde"), max_bytes=4)) == [(1, None)]


def json_record(**fields: object) -> InputRecord:
    return record_of_json(json.dumps(fields).encode(), keeps_partition=True)


def test_json_says_key_value_headers_partition_and_timestamp() -> None:
    assert json_record() == InputRecord(None, None)
    assert json_record(key="k", value="é", partition=1, timestamp=5) == InputRecord(b"k", "é".encode(), (), 1, 5)
    assert json_record(key=1, value={"a": [1, None]}) == InputRecord(b"1", b'{"a":[1,null]}')
    assert json_record(key_base64="/wA=", value="") == InputRecord(b"\xff\0", b"")
    assert json_record(timestamp=-1).timestamp_ms is None
    assert record_of_json(b'{"partition": 1}', keeps_partition=False).partition is None


@pytest.mark.parametrize(
    "headers",
    [
        {"a": "1", "b": None},
        [["a", "1"], ["b", None]],
        [{"key": "a", "value_base64": "MQ=="}, {"key": "b", "value": None}],
    ],
)
def test_json_headers_are_an_object_or_a_list(headers: object) -> None:
    assert json_record(headers=headers).headers == (("a", b"1"), ("b", None))


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"[]",
        b"7",
        b'{"keys": "a"}',
        b'{"key": "a", "key_base64": "YQ=="}',
        b'{"value_base64": "a"}',
        b'{"value_base64": 7}',
        b'{"partition": -1}',
        b'{"partition": 2147483648}',
        b'{"partition": true}',
        b'{"partition": 1.0}',
        b'{"timestamp": "now"}',
        b'{"timestamp": 9223372036854775808}',
        b'{"headers": "a"}',
        b'{"headers": [["a"]]}',
        b'{"headers": [{"key": "a", "name": "b"}]}',
        b'{"headers": [{"value": "a"}]}',
        b'{"value": "\\ud800"}',
        b"\xff",
        b"[" * 100_000,
        b'{"value": ' + b"9" * 10_000 + b"}",
    ],
)
def test_json_that_is_no_record_is_refused_on_one_line(line: bytes) -> None:
    with pytest.raises(RecordError) as refused:
        record_of_json(line, keeps_partition=True)
    assert len(str(refused.value)) < 300


def test_what_consume_prints_is_what_produce_reads() -> None:
    headers = (("a", b"1"), ("a", None), ("b", b"\xff"))
    for key, value in ((b"k", b"v"), (None, b"\xff\x9b"), (b"", None), ("\x85\u2066".encode(), b'"\\\n')):
        shown = Shown(key=key, value=value, headers=headers)
        assert record_of_json(json_line(shown), keeps_partition=True) == InputRecord(
            key, value, headers, 3, 1_767_250_800_000
        )
