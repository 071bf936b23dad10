"""JSON with declared fields: one parser for whole batches, another for what that refuses, and both agree."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kavka.pipeline.running.tables import SettingError
from kavka.pipeline.schemas.declared import declared_type
from kavka.pipeline.schemas.errors import SchemaChangedError
from kavka.pipeline.schemas.json_values import JsonDecoder

PLAIN = declared_type("site string, hits int, rate double, ok boolean, at timestamp, o struct<x: long>, l array<float>")
plain_values = st.fixed_dictionaries(
    {},
    optional={
        "site": st.none() | st.text(max_size=8),
        "hits": st.none() | st.integers(-(2**31), 2**31 - 1),
        "rate": st.none() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False, allow_infinity=False),
        "ok": st.none() | st.booleans(),
        "at": st.none() | st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1)).map(lambda at: at.isoformat() + "Z"),  # noqa: DTZ001 - the zone is added as text
        "o": st.none() | st.fixed_dictionaries({}, optional={"x": st.none() | st.integers(-(2**63), 2**63 - 1)}),
        "l": st.none() | st.lists(st.none() | st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=3),
        "more": st.none() | st.lists(st.text(max_size=3), max_size=2),
    },
)


def decoded(fields: str, *values: bytes | None, **settings: Any) -> tuple[list[Any], dict[int, str]]:
    found = JsonDecoder(declared_type(fields), **settings).decode(pa.array(values, pa.binary()))
    found.values.validate(full=True)
    return found.values.to_pylist(), found.reasons


@settings(deadline=None)
@given(documents=st.lists(plain_values, max_size=5), ascii_only=st.booleans(), indent=st.sampled_from([None, 1]))
def test_whole_batches_decode_as_value_by_value(documents: list[Any], ascii_only: bool, indent: int | None) -> None:
    decoder = JsonDecoder(PLAIN)
    texts = [json.dumps(document, ensure_ascii=ascii_only, indent=indent).encode() for document in documents]
    column = pa.array(texts, pa.binary())

    found = decoder.decode(column)
    # A value that does not fit, and each by itself: so every one goes the other way.
    slowly = decoder.decode(pa.array([*texts, b"{"], pa.binary()))

    assert found.reasons == {}
    assert slowly.reasons.keys() == {len(texts)}
    assert found.values.to_pylist() == slowly.values.to_pylist()[:-1]


@given(values=st.lists(st.binary(max_size=30) | st.text(alphabet='{}[]",:nul10.-e \n\\', max_size=20).map(str.encode)))
@settings(deadline=None)
def test_garbage_never_ends_the_process_and_agrees_with_python(values: list[bytes]) -> None:
    found = JsonDecoder(declared_type("n long")).decode(pa.array(values, pa.binary()))
    for row, value in enumerate(values):
        try:
            is_object = isinstance(json.loads(value.decode()), dict)
        except ValueError:
            is_object = False
        assert is_object or row in found.reasons


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"null", "expected an object, got null"),
        (b"{} null {}", "no JSON"),
        (b"{}\nnull\n{}", "no JSON"),
        (b"[1]", "expected an object, got an array"),
        (b"", "no JSON"),
        (b'{"n":1}{"n":2}', "no JSON"),
        (b'{"n":1.0}', "n: expected a whole number, got a number"),
        (b'{"n":true}', "n: expected a whole number"),
        (b'{"n":9223372036854775808}', "n: a number beyond"),
        (b'{"r":1e999}', "r: a number that is not finite"),
        (b'{"r":NaN}', "r: a number that is not finite"),
        (b'{"s":5}', "s: expected a string, got a number"),
        (b'{"s":"\xff"}', "no JSON"),
        (b'{"s":"\\ud800"}', "surrogates"),
        (b'{"t":"yesterday"}', "t: no time: 'yesterday'"),
        (b'{"l":[{"y":"a"}]}', "l[].y: expected a whole number"),
        (b'{"deep":' + b"[" * 200_000 + b"]" * 200_000 + b"}", "nested too deep"),
        (b'{"n":' + b"9" * 5000 + b"}", "no JSON"),
    ],
)
def test_a_value_that_does_not_fit_is_bad_and_says_why(value: bytes, reason: str) -> None:
    fields = "n long, r double, s string, t timestamp, l array<struct<y: int>>"
    # What nobody declared is passed over by a parser that cannot nest as deep as it wants to, or by one that can.
    rows, reasons = decoded(fields, b'{"n":1}', value, b'{"n":2}', on_change="evolve" if b"deep" in value else "ignore")
    assert [row and row["n"] for row in rows] == [1, None, 2]
    assert reasons.keys() == {1}
    assert reason in reasons[1]


def test_no_value_is_no_bad_value() -> None:
    assert decoded("n int", None, b'{"n":1}', None) == ([None, {"n": 1}, None], {})


def test_types_that_json_has_not_are_read_from_texts() -> None:
    value = b'{"d":"2024-02-29","p":12.30,"q":"0.5","b":"AQI=","m":{"a":1,"b":null},"t":"2024-01-01T01:00:00+02:00"}'
    rows, reasons = decoded(
        "d date, p decimal(5,2), q decimal(3,1), b binary, m map<string,int>, t timestamp, z timestamp_ntz", value
    )
    assert reasons == {}
    assert rows == [
        {
            "d": date(2024, 2, 29),
            "p": Decimal("12.30"),
            "q": Decimal("0.5"),
            "b": b"\1\2",
            "m": [("a", 1), ("b", None)],
            "t": datetime(2023, 12, 31, 23, tzinfo=UTC),
            "z": None,
        }
    ]


@pytest.mark.parametrize("quote", ["", '"'])
def test_decimals_keep_all_their_digits(quote: str) -> None:
    text = "1234567890123456789012345678901234.5678"
    value = f'{{"p":{quote}{text}{quote},"l":[{quote}-{text}{quote}],"f":0.5,"u":1.5}}'.encode()
    rows, reasons = decoded("p decimal(38,4), l array<decimal(38,4)>, f double", value)
    assert reasons == {}
    assert rows == [{"p": Decimal(text), "l": [Decimal(f"-{text}")], "f": 0.5}]


@pytest.mark.parametrize("value", [b'{"p":1234.5}', b'{"p":1.234}', b'{"p":"x"}', b'{"d":"2024-02-30"}', b'{"b":"?"}'])
def test_a_text_of_another_kind_is_bad(value: bytes) -> None:
    assert decoded("d date, p decimal(5,2), b binary", value)[1].keys() == {0}


def test_a_required_field_has_to_be_there() -> None:
    rows, reasons = decoded("a int, b int", b'{"a":1}', b'{"a":null,"b":1}', b'{"b":1}', required=["a"])
    assert rows == [{"a": 1, "b": None}, None, None]
    assert reasons == {1: "a: missing, and required", 2: "a: missing, and required"}


def test_what_is_not_declared_is_left_out_or_kept_or_stops_the_batch() -> None:
    values = (b'{"a":{"x":1,"y":[2]},"c":"d"}', b'{"a":null}')
    fields = "a struct<x: int>"
    assert decoded(fields, *values) == ([{"a": {"x": 1}}, {"a": None}], {})
    assert decoded(fields, *values, on_change="evolve") == (
        [{"a": {"x": 1}, "_undeclared": [("c", '"d"'), ("a.y", "[2]")]}, {"a": None, "_undeclared": None}],
        {},
    )
    with pytest.raises(SchemaChangedError, match=r"field a\.y is not declared"):
        decoded(fields, *values, on_change="fail")
    assert decoded(fields, values[1], on_change="fail") == ([{"a": None}], {})


def test_one_bad_value_among_thousands_is_the_only_one() -> None:
    values = [b'{"n":%d}' % number for number in range(3000)]
    values[1234] = b'{"n":"x"}'
    rows, reasons = decoded("n int", *values)
    assert reasons.keys() == {1234}
    assert [row["n"] for row in rows if row is not None] == [n for n in range(3000) if n != 1234]


@pytest.mark.parametrize(
    "fields",
    [
        "",
        "a",
        "a int b",
        "a strin",
        "a array<int",
        "a map<int,int>",
        "a int, a int",
        "a decimal(40,1)",
        "a \u0001",
        ", a int",
    ],
)
def test_a_declaration_that_means_nothing_is_refused(fields: str) -> None:
    with pytest.raises(SettingError):
        declared_type(fields)


def test_fields_are_declared_as_a_text_or_a_table() -> None:
    assert declared_type({"a": "array<int>", "b": "Struct<`c d`: LONG>"}) == declared_type(
        "a array<int>, b struct<`c d` bigint>"
    )
