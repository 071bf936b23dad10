"""Rows and settings of the schema stage, without Spark."""

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kavka.pipeline.running.decided_ids import DecidedIds, Place
from kavka.pipeline.running.parts import absolute
from kavka.pipeline.running.tables import SettingError
from kavka.pipeline.schemas.declared import declared_type
from kavka.pipeline.schemas.decoding import decoder
from kavka.pipeline.schemas.json_values import JsonDecoder
from kavka.pipeline.schemas.registered import RegisteredDecoder
from kavka.pipeline.schemas.rows import CHANGED, REASON, Rows, missing_name
from kavka.pipeline.schemas.settings import schema_settings
from kavka.pipeline.schemas.wire import framed as by_schema
from tests.support.schema_values import avro, framed, whole

REGISTRY = {"url": "http://localhost:8081"}


def test_values_are_told_apart_by_schema_and_put_back_in_order() -> None:
    known = {1: whole("int", 1), 2: whole("long", 2), 3: whole("string", 3)}
    made = RegisteredDecoder("avro", whole("long", 2), known, {4: "no good"})
    values = [avro("long", 5, 2), None, avro("int", 6, 1), framed(9, b"x"), b"", avro("string", "a", 3), framed(4, b"")]
    for decoding in (made, pickle.loads(pickle.dumps(made))):
        found = decoding.decode(pa.array([b"?", *values, avro("int", 7, 1)]).slice(1))
        assert found.values.to_pylist() == [5, None, 6, None, None, None, None, 7]
        assert found.missing == {3: 9}
        assert found.reasons.keys() == {4, 5, 6}
        assert found.reasons[6] == "no good"


def test_ids_are_numbers_from_one_on_after_a_zero_byte() -> None:
    bad = [framed(-1, b""), framed(0, b""), b"\1\0\0\0\1", b"\0\0\0"]
    found = by_schema(pa.array([*bad, None, framed(258, b"x"), framed(1, b""), framed(258, b"")]))
    assert {number: rows.tolist() for number, rows in found.rows_of.items()} == {1: [6], 258: [5, 7]}
    assert found.reasons.keys() == {0, 1, 2, 3}


def test_bad_rows_keep_their_bytes_and_good_rows_do_not() -> None:
    rows = Rows(
        {
            "value": JsonDecoder(declared_type("n int")),
            "key": RegisteredDecoder("avro", whole("int"), {7: whole("int")}, {}),
        }
    )
    batch = pa.record_batch(
        {
            "key": pa.array([avro("int", 1), None, b"bad", framed(8, b"")]),
            "value": pa.array([b'{"n":1}', None, b"bad", b'{"n":2}']),
            "offset": pa.array([10, 11, 12, 13]),
        }
    )
    (found,) = rows([batch])

    assert found.schema == rows.schema(batch.schema)
    assert found["offset"].to_pylist() == [10, 11, 12, 13]
    assert found["value"].to_pylist() == [None, None, b"bad", None]
    assert found["key"].to_pylist() == [None, None, b"bad", None]
    assert found["_decoded_value"].to_pylist() == [{"n": 1}, None, None, {"n": 2}]
    assert found["_decoded_key"].to_pylist() == [1, None, None, None]
    reasons = found[REASON].to_pylist()
    assert (reasons[0], reasons[1], reasons[3]) == (None, None, None)
    assert reasons[2].startswith("value: no JSON")
    assert found[missing_name("key")].to_pylist() == [None, None, None, 8]
    assert found[missing_name("value")].null_count == 4
    assert found[CHANGED].null_count == 4


def test_rows_of_an_id_are_bad_before_where_it_was_decided_though_it_is_known_now() -> None:
    decided = DecidedIds()
    decided.make_bad({7: [Place("t", 1, 11)]})
    decided.make_known([7])
    decoders = {"value": RegisteredDecoder("avro", whole("int", 7), {7: whole("int", 7), 8: whole("int", 8)}, {})}
    values = [*[avro("int", number, 7) for number in (1, 2, 3, 4)], framed(8, b"\2"), None]
    batch = pa.record_batch(
        {
            "value": pa.array(values),
            "topic": pa.array(["t", "t", "t", "u", "t", "t"]),
            "partition": pa.array([1, 1, 0, 1, 1, 1], pa.int32()),
            "offset": pa.array([10, 11, 5, 5, 5, 5]),
        }
    )
    decided.make_bad({7: [Place("t", 1, 10)]})
    found = Rows(decoders, {"value": decided.bad_before}).decoded(batch)
    assert found["_decoded_value"].to_pylist() == [None, None, 3, 4, 1, None]
    reason = "value: the registry has no schema with id 7"
    assert found[REASON].to_pylist() == [reason, reason, None, None, None, None]
    assert found["value"].to_pylist() == [*values[:2], None, None, None, None]


def test_a_reason_that_quotes_a_lone_surrogate_is_a_text() -> None:
    rows = Rows({"value": JsonDecoder(declared_type("m map<string,string>"))})
    found = rows.decoded(pa.record_batch({"value": pa.array([b'{"m":{"a":"x"}}', b'{"m":{"\\ud800":5}}'])}))
    good, bad = found[REASON].to_pylist()
    assert good is None
    assert "\\ud800" in bad


def test_a_change_is_told_beside_the_rows() -> None:
    rows = Rows({"value": JsonDecoder(declared_type("n int"), on_change="fail")})
    found = rows.decoded(pa.record_batch({"value": pa.array([b'{"n":1}', b'{"m":1}'])}))
    assert found[CHANGED].to_pylist()[0].startswith("the field m is not declared")


def test_settings_of_each_format_are_taken() -> None:
    settings = schema_settings(
        {
            "format": "protobuf",
            "subject": "visits-value",
            "version": 3,
            "message": "Visit",
            "unknown_ids": "dead_letters",
            "into": "visit",
            "key": {"format": "json", "fields": {"id": "long"}, "required": ["id"]},
            "registry": {"url": "https://r:1/x", "username": "u", "password": "${env:P}", "timeout_ms": 5},
        }
    )
    value, key = settings.columns
    assert (value.column, value.version, value.message, value.into, value.on_change) == (
        *("value", 3, "Visit", "visit", "fail"),
    )
    assert (key.column, key.fields, key.required, key.into, key.on_change) == (
        "key",
        {"id": "long"},
        ("id",),
        "key",
        "ignore",
    )
    assert settings.registry is not None
    assert settings.registry.timeout_ms == 5
    assert [column.column for column in schema_settings({"key": {"format": "json", "fields": "a int"}}).columns] == [
        "key"
    ]


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({}, "format"),
        ({"format": "xml"}, "format"),
        ({"format": "json"}, "fields"),
        ({"format": "json", "fields": "a strin"}, "fields"),
        ({"format": "json", "fields": "a int", "subject": "s"}, "subject"),
        ({"format": "json", "fields": "a int", "required": ["b"]}, "required"),
        ({"format": "json", "fields": "a int", "on_change": "x"}, "on_change"),
        ({"format": "json", "fields": "_undeclared int", "on_change": "evolve"}, "fields"),
        ({"key": {"format": "json", "fields": "a strin"}}, "key.fields"),
        ({"format": "avro", "subject": "s"}, "registry"),
        ({"format": "avro", "registry": REGISTRY}, "subject"),
        ({"format": "avro", "registry": REGISTRY, "schema": '"int"', "on_change": "evolve"}, "subject"),
        ({"format": "avro", "registry": REGISTRY, "subject": "s", "version": 2, "on_change": "evolve"}, "version"),
        ({"format": "avro", "registry": REGISTRY, "subject": "s", "version": 0}, "version"),
        ({"format": "avro", "registry": REGISTRY, "subject": "s", "message": "M"}, "message"),
        ({"format": "avro", "registry": REGISTRY, "schema": "{"}, "schema"),
        ({"format": "protobuf", "registry": REGISTRY, "schema": "messag"}, "schema"),
        ({"format": "avro", "registry": REGISTRY, "schema_file": "/nowhere"}, "schema_file"),
        ({"format": "avro", "registry": REGISTRY, "schema_file": "/nowhere", "schema": '"int"'}, "schema_file"),
        ({"format": "avro", "subject": "s", "registry": {}}, "registry.url"),
        ({"format": "avro", "subject": "s", "registry": {"url": "ftp://x"}}, "registry.url"),
        ({"format": "avro", "subject": "s", "registry": {"url": "http://u:p@x"}}, "registry.url"),
        ({"format": "avro", "subject": "s", "registry": {"url": "http://x?y"}}, "registry.url"),
        ({"format": "avro", "subject": "s", "registry": REGISTRY | {"directory": "d"}}, "registry.url"),
        ({"format": "avro", "subject": "s", "registry": REGISTRY | {"username": "u"}}, "registry.username"),
        ({"format": "avro", "subject": "s", "registry": REGISTRY | {"timeout_ms": 0}}, "registry.timeout_ms"),
        ({"format": "avro", "subject": "s", "registry": REGISTRY | {"colour": 0}}, "registry.colour"),
    ],
)
def test_settings_that_cannot_work_are_refused_by_name(settings: dict[str, Any], key: str) -> None:
    with pytest.raises(SettingError) as caught:
        decoder(settings)
    assert caught.value.key == key
    assert "\n" not in str(caught.value)


def test_a_schema_may_stand_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "visit.avsc"
    file.write_text('"int"')
    settings = schema_settings({"format": "avro", "registry": REGISTRY, "schema_file": str(file)})
    assert settings.columns[0].schema == '"int"'


def test_files_that_settings_name_are_meant_from_the_job_files_folder() -> None:
    registry = {"directory": "schemas", "ca_file": "/etc/ca.pem", "password": "secret", "cert_file": "${env:CERT}"}
    found = absolute(Path("/jobs"), {"schema_file": "visit.avsc", "subject": "s", "registry": registry})
    assert found == {
        "schema_file": "/jobs/visit.avsc",
        "subject": "s",
        "registry": registry | {"directory": "/jobs/schemas"},
    }
