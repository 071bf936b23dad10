"""How `kavka consume` shows records: kcat's patterns, the properties of Kafka's tool, JSON."""

import json
from collections.abc import Mapping

import pytest

from kavka.cli.consume.formatters import Wanted, formatter_of
from kavka.cli.escaping import safe_bytes
from kavka.config.errors import ConfigError
from tests.support.json_documents import assert_golden_line, line_document
from tests.support.shown_records import Shown

HEADERS = (("a", b"1"), ("b", None), ("a", b""))


def raw(data: bytes) -> bytes:
    return data


def plain(properties: Mapping[str, str], record: Shown) -> bytes:
    return formatter_of(Wanted(properties=properties), raw)(record)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("%k %v", b"key value\n"),
        ("%t[%p]@%o %T: %k=%s", b"visits[3]@42 1767250800000: key=value\n"),
        ("%K %S %h", b"3 5 a=1,b=NULL,a=\n"),
        (r"%v\n--\n", b"value\n--\n"),
        (r"%v\0", b"value\0"),
        (r"\x1b%%%v\\\t\r", b"\x1b%value\\\t\r"),
        ("%R%s", b"\0\0\0\x05value"),
        ("é%v", "évalue\n".encode()),
        ("", b"\n"),
    ],
)
def test_a_pattern_of_kcat_is_filled_in(pattern: str, expected: bytes) -> None:
    assert formatter_of(Wanted(pattern), raw)(Shown(headers=HEADERS)) == expected


def test_a_pattern_shows_null_as_nothing_and_its_size_as_minus_1() -> None:
    record = Shown(key=None, value=None)
    assert formatter_of(Wanted("[%k|%v|%K|%S|%h]"), raw)(record) == b"[||-1|-1|]\n"
    assert formatter_of(Wanted("%R"), raw)(record) == b"\xff\xff\xff\xff"


@pytest.mark.parametrize("pattern", ["%x", "100%", r"\q", r"\x1", "\\"])
def test_a_pattern_that_cannot_be_is_refused_in_words(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"no field|no escape"):
        formatter_of(Wanted(pattern), raw)


def test_values_alone_are_shown_by_default() -> None:
    assert plain({}, Shown()) == b"value\n"
    assert plain({}, Shown(value=None)) == b"null\n"
    assert plain({}, Shown(value=b"\xff\0")) == b"\xff\0\n"


def test_all_parts_stand_in_the_order_of_kafkas_tool() -> None:
    every = ("timestamp", "partition", "offset", "epoch", "headers", "key")
    properties = {f"print.{part}": "true" for part in every}
    assert plain(properties, Shown(headers=HEADERS)) == (
        b"CreateTime:1767250800000\tPartition:3\tOffset:42\tEpoch:7\ta:1,b:null,a:\tkey\tvalue\n"
    )
    bare = Shown(timestamp_ms=-1, timestamp_type=1, key=None, value=None, leader_epoch=None)
    assert (
        plain(properties, bare) == b"NO_TIMESTAMP\tPartition:3\tOffset:42\tEpoch:NOT_PRESENT\tNO_HEADERS\tnull\tnull\n"
    )


def test_separators_and_the_null_literal_are_the_users() -> None:
    properties = {
        "print.key": " TRUE ",
        "print.headers": "true",
        "key.separator": "|",
        "line.separator": "#",
        "headers.separator": ";",
        "null.literal": "-",
    }
    assert plain(properties, Shown(headers=HEADERS, value=None)) == b"a:1;b:-;a:|key|-#"
    assert plain({**properties, "print.value": "false", "print.headers": "false"}, Shown()) == b"key#"


def test_deserializers_go_by_javas_names_and_say_what_they_cannot_read() -> None:
    properties = {
        "print.key": "true",
        "key.deserializer": "org.apache.kafka.common.serialization.LongDeserializer",
        "value.deserializer": "org.apache.kafka.common.serialization.DoubleDeserializer",
    }
    number = (7).to_bytes(8, "big")
    assert plain(properties, Shown(key=number, value=bytes(8))) == b"7\t0.0\n"
    shown = plain(properties, Shown(key=b"short", value=None))
    assert shown.startswith(b"short (key.deserializer: ")
    assert shown.endswith(b"\tnull\n")
    with pytest.raises(ConfigError, match="could not be found"):
        plain({"value.deserializer": "no.such.Class"}, Shown())


@pytest.mark.parametrize("wanted", [Wanted(properties={"print.keys": "true"}), Wanted(formatter="no.such")])
def test_what_nobody_knows_is_refused(wanted: Wanted) -> None:
    with pytest.raises(ValueError, match="there is no"):
        formatter_of(wanted, raw)


def test_json_says_all_and_bytes_that_are_no_text_are_base64() -> None:
    show = formatter_of(Wanted(as_json=True), raw)
    line = show(Shown(headers=(*HEADERS, ("c", b"\xff")), key=b"\xff\0", value="é\x1b\x9b\n".encode()))
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    found = line_document("consume", line.decode())
    assert found == {
        "topic": "visits",
        "partition": 3,
        "offset": 42,
        "timestamp": 1_767_250_800_000,
        "timestamp_type": "CreateTime",
        "headers": [
            {"key": "a", "value": "1"},
            {"key": "b", "value": None},
            {"key": "a", "value": ""},
            {"key": "c", "value_base64": "/w=="},
        ],
        "key_base64": "/wA=",
        "value": "é\x1b\x9b\n",
    }
    assert b"\x1b" not in line
    assert "\x9b".encode() not in line
    assert json.loads(show(Shown(value=None)))["value"] is None


def test_programs_get_lines_that_stay_as_they_are() -> None:
    show = formatter_of(Wanted(as_json=True), raw)
    assert_golden_line("consume", show(Shown(headers=(*HEADERS, ("c", b"\xff")), key=b"\xff\0")).decode())


def test_a_terminal_gets_no_control_characters_of_records() -> None:
    nasty = b"\x1b]0;title\x07\x9b31m\xff" + "\u202eé\u2066\x85".encode() + b"\tb\nc\r\x7f"
    safe = rb"\x1b]0;title\x07\x9b31m\xff\u202e" + "é".encode() + rb"\u2066\x85" + b"\tb\nc" + rb"\x0d\x7f"
    record = Shown(topic="a\x1b", key=nasty, value=nasty, headers=((nasty.decode("utf-8", "replace"), nasty),))
    assert safe_bytes(nasty) == safe
    assert formatter_of(Wanted("%v"), safe_bytes)(record) == safe + b"\n"
    every = {"print.key": "true", "print.headers": "true"}
    for wanted in (Wanted("%t%k%v%h"), Wanted(properties=every), Wanted(as_json=True)):
        shown = formatter_of(wanted, safe_bytes)(record).decode()
        assert [c for c in shown if not c.isprintable() and c not in "\t\n"] == []


def test_the_formatter_that_shows_nothing_shows_nothing() -> None:
    assert formatter_of(Wanted(formatter="none"), raw)(Shown()) == b""
    assert formatter_of(Wanted(formatter="default"), raw)(Shown(topic="__consumer_offsets")) == b"value\n"
