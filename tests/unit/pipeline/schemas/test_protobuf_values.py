"""Protobuf's values as Arrow columns, and `.proto` text without protoc."""

from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given, settings
from hypothesis import strategies as st

from kavka.pipeline.schemas.errors import SchemaChangedError, SchemaUnusableError
from kavka.pipeline.schemas.protobuf.linking import linked, message_of
from kavka.pipeline.schemas.protobuf.parser import file_descriptor
from kavka.pipeline.schemas.registered import RegisteredDecoder
from kavka.pipeline.schemas.registry.schema import WholeSchema
from tests.support.schema_values import framed

VISIT = """
// A comment; another: /* "within" */
syntax = "proto3";
package shop.v1;
import "google/protobuf/timestamp.proto";
import public 'other.proto';
option java_package = "x.y";
message Visit {
  option (foo) = { a: 1 b: [ { c: "}" } ] };
  reserved 20 to 30, 40; reserved "old";
  google.protobuf.Timestamp time = 1 [(x.y).z = "a", deprecated = true];
  string site = 0x2;
  optional string ip = 3;
  double rate = 5;
  enum Kind { option allow_alias = true; NONE = 0; PAGE = 1; SITE = 1 [deprecated = true]; BACK = -3; }
  Kind kind = 6;
  repeated int64 ids = 7;
  map<string, Inner> inners = 8;
  message Inner { uint64 big = 1; Visit outer = 2; bytes message = 3; }
  oneof choice { string text = 9; .shop.v1.Visit.Inner inner = 10; }
  other.Thing thing = 13;
  repeated Inner many = 14;
}
service Visits { rpc Get (Visit) returns (stream Visit) { option x = 1; } }
message Second { message Deep { int32 a = 1; } string message = 1; }
"""
OTHER = """syntax = "proto2"; package other;
message Thing { required int32 a = 1 [default = 5]; optional E e = 2; extensions 100 to max; }
enum E { X = 1; }"""
FLAT = 'syntax = "proto3"; message V { int32 a = 1; string b = 2; repeated double c = 3; bool d = 4; bytes e = 5; }'


def schema(text: str, schema_id: int = 7, **needed: str) -> WholeSchema:
    return WholeSchema(schema_id, "PROTOBUF", text, tuple((f"{name}.proto", each) for name, each in needed.items()))


def message_class(of: WholeSchema, name: str | None = None) -> Any:
    return GetMessageClass(message_of(linked(of), name))


def read(reader: WholeSchema, writer: WholeSchema, body: bytes, **more: Any) -> tuple[Any, dict[int, str]]:
    decoder = RegisteredDecoder("protobuf", reader, {7: writer}, {}, **more)
    decoded = decoder.decode(pa.array([framed(7, b"\0" + body)]))
    decoded.values.validate(full=True)
    return decoded.values.to_pylist()[0], decoded.reasons


def test_each_kind_of_field_has_its_column() -> None:
    whole = schema(VISIT, other=OTHER)
    message = message_class(whole)(site="a", rate=1.5, kind=1, ids=[1, 2], thing={"a": 3})
    message.time.FromMilliseconds(1_700_000_000_123)
    message.inners["k"].big = 2**64 - 1
    message.inner.outer.site = "deep"
    message.many.add().message = b"m"
    nothing = {"big": Decimal(0), "outer": None, "message": b""}

    assert read(whole, whole, message.SerializeToString()) == (
        {
            "time": datetime(2023, 11, 14, 22, 13, 20, 123000, tzinfo=UTC),
            "site": "a",
            "ip": None,
            "rate": 1.5,
            "kind": "PAGE",
            "ids": [1, 2],
            "inners": [("k", nothing | {"big": Decimal(2**64 - 1)})],
            "text": None,
            "inner": nothing | {"outer": b"\x12\x04deep"},
            "thing": {"a": 3, "e": None},
            "many": [nothing | {"message": b"m"}],
        },
        {},
    )


def test_wrappers_and_structs_are_what_they_hold() -> None:
    whole = schema(
        """syntax = "proto3";
        import "google/protobuf/wrappers.proto";
        import "google/protobuf/struct.proto";
        message M {
            google.protobuf.Int64Value w = 1; google.protobuf.Struct s = 2; google.protobuf.BoolValue n = 3;
        }"""
    )
    message = message_class(whole)(w={"value": 0})
    message.s["a"] = [1, None]
    assert read(whole, whole, message.SerializeToString()) == ({"w": 0, "s": '{"a": [1.0, null]}', "n": None}, {})


@settings(deadline=None)
@given(
    values=st.lists(
        st.fixed_dictionaries(
            {
                "a": st.integers(-(2**31), 2**31 - 1),
                "b": st.text(max_size=9),
                "c": st.lists(st.floats(allow_nan=False), max_size=3),
                "d": st.booleans(),
                "e": st.binary(max_size=9),
            }
        ),
        max_size=6,
    ),
    garbage=st.lists(st.binary(max_size=30), max_size=4),
)
def test_messages_come_back_as_they_were_written_whatever_lies_between(values: list[Any], garbage: list[bytes]) -> None:
    whole = schema(FLAT)
    make = message_class(whole)
    framed_values = [framed(7, b"\0" + make(**value).SerializeToString()) for value in values]
    column = pa.array([*framed_values, *[framed(7, each) for each in garbage]], pa.binary())

    decoded = RegisteredDecoder("protobuf", whole, {7: whole}, {}).decode(column)

    decoded.values.validate(full=True)
    assert decoded.values.to_pylist()[: len(values)] == values
    assert all(row >= len(values) for row in decoded.reasons)
    assert len(decoded.values) == len(column)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "ends within the message's place"),
        (b"\x02\x02\x0a", "it is shop.v1.Second"),
        (b"\x04\x02\x00", "it is shop.v1.Second.Deep"),
        (b"\x02\x64", "no such message"),
        (b"\x02\x01", "negative"),
        (b"\xff\xff\xff\xff\xff\xff", "longer than a number"),
        (b"\xfe\x01", "has 127 numbers"),
        (b"\x00\x12\x05ab", "no shop.v1.Visit"),
        (b"\x00\x12\x02\xff\xfe", "no shop.v1.Visit"),
        (b"\x00" + b"\x52\x7e\x12\x7c" * 60, "no shop.v1.Visit"),
        (b"\x00\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x10", "no shop.v1.Visit"),
    ],
)
def test_a_hostile_value_is_bad_with_a_reason(body: bytes, reason: str) -> None:
    whole = schema(VISIT, other=OTHER)
    decoded = RegisteredDecoder("protobuf", whole, {7: whole}, {}).decode(pa.array([framed(7, body)]))
    assert decoded.values.to_pylist() == [None]
    assert reason in decoded.reasons[0]


def test_messages_nested_deeper_than_protobuf_allows_are_bad() -> None:
    whole = schema('syntax = "proto3"; message M { M m = 1; }')
    body = b""
    for _ in range(5000):
        length = len(body)
        size = bytes([length]) if length < 128 else bytes([length & 127 | 128, length >> 7])
        body = b"\x0a" + size + body
    assert "no M" in read(whole, whole, body)[1][0]


def test_a_time_that_no_table_can_hold_leaves_those_beside_it() -> None:
    whole = schema(VISIT, other=OTHER)
    make = message_class(whole)
    bodies = [make(time={"seconds": seconds}).SerializeToString() for seconds in (1, 2**62, 3)]
    decoded = RegisteredDecoder("protobuf", whole, {7: whole}, {}).decode(
        pa.array([framed(7, b"\0" + b) for b in bodies])
    )
    assert [row and row["time"].second for row in decoded.values.to_pylist()] == [1, None, 3]
    assert decoded.reasons == {1: "a timestamp beyond the year 9999"}


def test_fields_go_by_their_numbers() -> None:
    writer = schema('syntax = "proto3"; message V { int32 renamed = 1; string b = 2; string new = 9; }')
    reader = schema(
        'syntax = "proto3"; message V { int64 a = 1; bytes b = 2; optional int32 added = 5; int32 zero = 6; }', 8
    )
    body = message_class(writer)(renamed=-5, b="x", new="n").SerializeToString()
    assert read(reader, writer, body) == ({"a": -5, "b": b"x", "added": None, "zero": 0}, {})
    with pytest.raises(SchemaChangedError, match="schema 7 has new"):
        read(reader, writer, body, fails_on_change=True)


@pytest.mark.parametrize(
    ("written", "read_as"), [("int64", "int32"), ("string", "int32"), ("sint32", "int32"), ("repeated int32", "int32")]
)
def test_a_type_that_would_be_read_wrongly_is_bad(written: str, read_as: str) -> None:
    writer, reader = (schema(f'syntax = "proto3"; message V {{ {each} a = 1; }}') for each in (written, read_as))
    value, reasons = read(reader, writer, b"")
    assert value is None
    assert reasons[0].startswith("a: what was written")


def test_another_message_of_the_schema_can_be_chosen() -> None:
    whole = schema(VISIT, other=OTHER)
    decoder = RegisteredDecoder("protobuf", whole, {7: whole}, {}, message="Second.Deep")
    assert decoder.decode(pa.array([framed(7, b"\x04\x02\x00\x08\x05")])).values.to_pylist() == [{"a": 5}]


def test_words_of_the_language_are_names_too() -> None:
    text = """message M { optional string message = 1; optional int32 enum = 2; optional int32 option = 3;
    repeated int32 optional = 4; optional bool reserved = 5; oneof oneof { int32 map = 6; } optional message m = 7; }
    message message { }"""
    assert [field.name for field in file_descriptor("m.proto", text).message_type[0].field] == [
        *("message", "enum", "option", "optional", "reserved", "map", "m"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "message",
        "message M {",
        "message M { int32 a; }",
        "message M { int32 a = 0; }",
        "message M { int32 a = 1; int32 b = 1; }",
        "message M { Unknown a = 1; }",
        'import "missing.proto"; message M {}',
        'edition = "2023"; message M {}',
        'syntax = "proto4";',
        "message M { optional group G = 1 { } }",
        "\0\1\2",
        "message M { " * 1000,
        "option a = " + "[" * 1000,
        "enum E { A = 99999999999; } message M {}",
        "enum E { A = 0; }",
    ],
)
def test_a_text_that_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises(SchemaUnusableError):
        RegisteredDecoder("protobuf", schema(text), {}, {})


@given(st.text(alphabet='message M{}=;"[]<>int32 map,\n/*', max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(SchemaUnusableError):
        file_descriptor("m.proto", text)
