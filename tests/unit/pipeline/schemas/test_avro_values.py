"""Avro's values as Arrow columns: equal to what fastavro wrote, whatever the schema; read as the reader's."""

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kavka.pipeline.schemas.errors import SchemaChangedError, SchemaUnusableError
from kavka.pipeline.schemas.registered import RegisteredDecoder
from kavka.pipeline.schemas.registry.schema import WholeSchema
from tests.support.schema_values import avro, framed, schemas_and_values, whole

VISIT_FIELDS: list[dict[str, Any]] = [
    {"name": "site", "type": "string"},
    {"name": "hits", "type": "int"},
    {"name": "ip", "type": ["null", "string"], "default": None},
]
VISIT = {"type": "record", "name": "shop.Visit", "fields": VISIT_FIELDS}


def record(*fields: dict[str, Any], name: str = "shop.Visit", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def read(value: Any, writer: Any, reader: Any) -> tuple[Any, dict[int, str]]:
    decoder = RegisteredDecoder("avro", whole(reader, 8), {7: whole(writer)}, {})
    decoded = decoder.decode(pa.array([avro(writer, value)]))
    decoded.values.validate(full=True)
    return decoded.values.to_pylist()[0], decoded.reasons


def as_given(value: Any) -> Any:
    """Maps come back as pairs."""
    if isinstance(value, dict):
        return {name: as_given(each) for name, each in value.items()}
    return [as_given(each) for each in value] if isinstance(value, list) else value


def as_dicts(value: Any, schema: Any) -> Any:
    """Pairs to dictionaries, where the schema has maps."""
    if value is None:
        return None
    if isinstance(schema, list):
        return as_dicts(value, schema[1])
    kind = schema["type"] if isinstance(schema, dict) else schema
    if kind == "record":
        return {field["name"]: as_dicts(value[field["name"]], field["type"]) for field in schema["fields"]}
    if kind == "map":
        return {name: as_dicts(each, schema["values"]) for name, each in value}
    return [as_dicts(each, schema["items"]) for each in value] if kind == "array" else value


@settings(deadline=None)
@given(data=st.data())
def test_values_of_any_schema_come_back_as_they_were_written(data: st.DataObject) -> None:
    schema, values = data.draw(schemas_and_values())
    written = data.draw(st.lists(values, max_size=5))
    decoder = RegisteredDecoder("avro", whole(schema), {7: whole(schema)}, {})
    column = pa.array([avro(schema, value) for value in written], pa.binary())

    decoded = decoder.decode(column)

    decoded.values.validate(full=True)
    assert decoded.reasons == {}
    assert [as_dicts(value, schema) for value in decoded.values.to_pylist()] == as_given(written)


@settings(deadline=None)
@given(data=st.data())
def test_garbage_makes_bad_rows_and_leaves_others_as_they_are(data: st.DataObject) -> None:
    schema, values = data.draw(schemas_and_values())
    good = data.draw(values)
    whole_value = avro(schema, good)
    garbage = data.draw(st.lists(st.binary(max_size=40), max_size=5))
    cut = [whole_value[:size] for size in range(5, len(whole_value))]
    column = pa.array([whole_value, *[framed(7, each) for each in garbage], *cut, whole_value + b"\0"])

    decoded = RegisteredDecoder("avro", whole(schema), {7: whole(schema)}, {}).decode(column)

    decoded.values.validate(full=True)
    assert as_dicts(decoded.values[0].as_py(), schema) == as_given(good)
    assert decoded.reasons.keys() >= {*range(1 + len(garbage), len(column) - 1)}
    assert len(column) - 1 in decoded.reasons or schema == "null"


@pytest.mark.parametrize(
    ("schema", "body", "reason"),
    [
        ("string", b"\x80\x80\x80\x80\x80\x80\x80\x80\x20", "ends within"),
        ("string", b"\x01", "impossible length"),
        ("string", b"\x02\xff", "UTF"),
        ("int", b"\x80\x80\x80\x80\x80\x01", "out of range"),
        ("long", b"\xff" * 12, "out of range"),
        ("boolean", b"\x02", "neither true nor false"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\x02", "no such symbol"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\x01", "no such symbol"),
        (["null", "int"], b"\x04", "no such symbol or branch"),
        ({"type": "array", "items": "null"}, b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f\x00", "empty items"),
        ({"type": "array", "items": "int"}, b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f\x00", "ends within"),
        ({"type": "array", "items": "int"}, b"\x01\xff\xff\x7f\x02\x00", "impossible length"),
    ],
)
def test_a_hostile_value_is_bad_with_a_reason(schema: Any, body: bytes, reason: str) -> None:
    decoder = RegisteredDecoder("avro", whole(schema), {7: whole(schema)}, {})
    decoded = decoder.decode(pa.array([framed(7, body)]))
    assert decoded.values.to_pylist() == [None]
    assert reason in decoded.reasons[0]


def test_the_reason_names_the_field() -> None:
    decoder = RegisteredDecoder("avro", whole(VISIT), {7: whole(VISIT)}, {})
    value = avro(VISIT, {"site": "a", "hits": 5, "ip": None})
    assert decoder.decode(pa.array([value[:-1]])).reasons == {0: "ip: the value ends within it"}


def test_a_value_that_only_arrow_refuses_leaves_those_beside_it() -> None:
    schema = {"type": "bytes", "logicalType": "decimal", "precision": 3, "scale": 1}
    decoder = RegisteredDecoder("avro", whole(schema), {7: whole(schema)}, {})
    decoded = decoder.decode(pa.array([framed(7, b"\x02\x7b"), framed(7, b"\x06\x7f\xff\xff"), framed(7, b"\x02\x01")]))
    assert decoded.values.to_pylist() == [Decimal("12.3"), None, Decimal("0.1")]
    assert decoded.reasons.keys() == {1}


@pytest.mark.parametrize("number", [10**38 - 1, 1 - 10**38, 12345678901234567890123456789012345678])
def test_decimals_keep_all_their_digits(number: int) -> None:
    kind = {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 4}
    data = number.to_bytes(16, "big", signed=True)
    reader = record({"name": "d", "type": kind, "default": data.decode("latin-1")}, {"name": "p", "type": kind})
    writer = record({"name": "p", "type": {"type": "bytes"}})
    decoder = RegisteredDecoder("avro", whole(reader), {7: whole(writer)}, {})
    decoded = decoder.decode(pa.array([avro(writer, {"p": data})]))
    exact = Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -4))
    assert decoded.values.to_pylist() == [{"d": exact, "p": exact}]


def test_a_decimal_of_more_digits_than_there_are_is_a_bad_value() -> None:
    schema = {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 4}
    decoder = RegisteredDecoder("avro", whole(schema), {7: whole(schema)}, {})
    values = [(10**38).to_bytes(20, "big"), b"\x7f" + b"\xff" * 1_000_000, b"\x01"]
    decoded = decoder.decode(pa.array([avro("bytes", value) for value in values]))
    assert decoded.values.to_pylist() == [None, None, Decimal("0.0001")]
    assert decoded.reasons.keys() == {0, 1}


def test_logical_types_are_arrows_types() -> None:
    schema = record(
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "ms", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "us", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
        {"name": "price", "type": {"type": "fixed", "name": "P", "size": 4, "logicalType": "decimal", "precision": 8}},
    )
    raw = record(
        *({"name": name, "type": kind} for name, kind in (("day", "int"), ("ms", "long"), ("us", "long"))),
        {"name": "price", "type": {"type": "fixed", "name": "P", "size": 4}},
    )
    written = {"day": 19000, "ms": 1_700_000_000_123, "us": 5, "price": b"\xff\xff\xff\xfe"}
    decoder = RegisteredDecoder("avro", whole(schema), {7: whole(schema)}, {})
    decoded = decoder.decode(pa.array([avro(raw, written)]))
    assert decoded.values.to_pylist() == [
        {
            "day": date(2022, 1, 8),
            "ms": datetime(2023, 11, 14, 22, 13, 20, 123000, tzinfo=UTC),
            "us": datetime(1970, 1, 1, 0, 0, 0, 5),  # noqa: DTZ001 - Arrow gives local times without a zone
            "price": Decimal(-2),
        }
    ]


def test_a_union_of_many_types_has_a_column_for_each() -> None:
    schema = ["null", "string", "int", {"type": "array", "items": "int"}]
    decoder = RegisteredDecoder("avro", whole(schema), {7: whole(schema)}, {})
    decoded = decoder.decode(pa.array([avro(schema, value) for value in ("a", 5, None, [1, 2])]))
    nothing = {"member0": None, "member1": None, "member2": None}
    assert decoded.values.to_pylist() == [
        nothing | {"member0": "a"},
        nothing | {"member1": 5},
        None,
        nothing | {"member2": [1, 2]},
    ]


@pytest.mark.parametrize(
    ("value", "writer", "reader", "expected"),
    [
        (5, "int", "long", 5),
        (5, "int", "double", 5.0),
        (5, "long", "float", 5.0),
        (0.5, "float", "double", 0.5),
        ("a", "string", "bytes", b"a"),
        (b"a", "bytes", "string", "a"),
        (5, "int", ["null", "long"], 5),
        (5, ["null", "int"], "int", 5),
        (None, ["null", "int"], ["null", "int", "string"], None),
        (5, ["null", "int"], ["string", "null", "long"], {"member0": None, "member1": 5}),
        (5, ["int", "string"], ["int", "long"], 5),
        ([1, 2], {"type": "array", "items": "int"}, {"type": "array", "items": "double"}, [1.0, 2.0]),
        ({"a": 1}, {"type": "map", "values": "int"}, {"type": "map", "values": "long"}, [("a", 1)]),
    ],
)
def test_values_are_promoted_to_the_readers_type(value: Any, writer: Any, reader: Any, expected: Any) -> None:
    assert read(value, writer, reader) == (expected, {})


def test_fields_come_and_go_with_their_defaults_and_aliases() -> None:
    writer = record(
        {"name": "old", "type": "string"}, {"name": "gone", "type": {"type": "array", "items": "int"}}, name="shop.V1"
    )
    reader = record(
        {"name": "new", "aliases": ["old"], "type": "string"},
        {"name": "count", "type": "int", "default": 3},
        {"name": "tags", "type": {"type": "map", "values": "bytes"}, "default": {"a": "\u00ff"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}, "default": 1000},
        {"name": "maybe", "type": ["null", "int"], "default": None},
        aliases=["shop.V1"],
    )
    assert read({"old": "x", "gone": [1, 2]}, writer, reader) == (
        {
            "new": "x",
            "count": 3,
            "tags": [("a", b"\xff")],
            "at": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
            "maybe": None,
        },
        {},
    )


def test_an_enums_unknown_symbol_is_its_default_or_bad() -> None:
    writer = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
    assert read("B", writer, {"type": "enum", "name": "E", "symbols": ["A"], "default": "A"}) == ("A", {})
    value, reasons = read("B", writer, {"type": "enum", "name": "E", "symbols": ["A"]})
    assert value is None
    assert "B is not one of" in reasons[0]
    assert read("A", writer, {"type": "enum", "name": "E", "symbols": ["C", "A"]}) == ("A", {})


@pytest.mark.parametrize(
    ("value", "writer", "reader", "reason"),
    [
        ("a", "string", "int", "written as string cannot be read as int"),
        (5, "long", "int", "written as long cannot be read as int"),
        (
            {"site": "a"},
            record({"name": "site", "type": "string"}),
            VISIT,
            "hits: it was not written, and has no default",
        ),
        (None, ["null", "int"], "int", "null cannot be read as int"),
        ("a", ["int", "string"], ["null", "int"], "string"),
        (
            5,
            {"type": "long", "logicalType": "timestamp-millis"},
            {"type": "long", "logicalType": "timestamp-micros"},
            "timestamp-millis",
        ),
    ],
)
def test_what_the_reader_cannot_take_is_bad(value: Any, writer: Any, reader: Any, reason: str) -> None:
    read_value, reasons = read(value, writer, reader)
    assert read_value is None
    assert reason in reasons[0]


def test_a_field_that_has_no_column_stops_the_batch_where_changes_are_to_fail() -> None:
    more = record(*VISIT_FIELDS, {"name": "extra", "type": {"type": "record", "name": "X", "fields": []}})
    decoder = RegisteredDecoder("avro", whole(VISIT, 8), {7: whole(more), 8: whole(VISIT, 8)}, {}, fails_on_change=True)
    value = {"site": "a", "hits": 1, "ip": None}
    assert decoder.decode(pa.array([avro(VISIT, value, 8)])).values.to_pylist() == [value]
    with pytest.raises(SchemaChangedError, match="schema 7 has extra"):
        decoder.decode(pa.array([avro(more, value | {"extra": {}})]))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "5",
        '{"type":"record"}',
        '"unknown.Name"',
        '{"type":"array"}',
        '{"type":"record","name":"R","fields":[{"name":"next","type":["null","R"]}]}',
        "[" * 100_000,
        '{"type":"enum","name":"E","symbols":5}',
        '{"type":"fixed","name":"F","size":-1}',
        '{"type":"fixed","name":"F","size":2147483648}',
        '{"type":"fixed","name":"F","size":1e999}',
        '{"type":"array","items":' * 150 + '"int"' + "}" * 150,
    ],
)
def test_a_schema_that_no_table_can_hold_is_refused(text: str) -> None:
    with pytest.raises(SchemaUnusableError):
        RegisteredDecoder("avro", WholeSchema(1, "AVRO", text), {}, {})


def test_a_schema_that_grows_by_naming_is_refused() -> None:
    inner: Any = record({"name": "a", "type": "int"}, name="R0")
    for number in range(1, 20):
        inner = record({"name": "a", "type": inner}, {"name": "b", "type": f"R{number - 1}"}, name=f"R{number}")
    with pytest.raises(SchemaUnusableError, match="parts"):
        RegisteredDecoder("avro", whole(inner), {}, {})


def test_names_of_referred_schemas_are_known() -> None:
    schema = WholeSchema(
        7,
        "AVRO",
        '{"type":"record","name":"V","fields":[{"name":"ip","type":"net.Ip"}]}',
        (("net.Ip", '{"type":"fixed","name":"net.Ip","size":4}'),),
    )
    decoder = RegisteredDecoder("avro", schema, {7: schema}, {})
    assert decoder.decode(pa.array([framed(7, b"abcd")])).values.to_pylist() == [{"ip": b"abcd"}]


def test_special_floats_are_kept() -> None:
    values = [avro("double", value) for value in (math.inf, -math.inf, math.nan)]
    decoded = RegisteredDecoder("avro", whole("double"), {7: whole("double")}, {}).decode(pa.array(values))
    assert [str(value) for value in decoded.values.to_pylist()] == ["inf", "-inf", "nan"]
