"""Avro schemas and values for tests, and values framed as a registry's serializers do it."""

import io
import json
import struct
from typing import Any

from fastavro import parse_schema, schemaless_writer
from hypothesis import strategies as st

from kavka.pipeline.schemas.registry.schema import WholeSchema

SIMPLE: dict[str, st.SearchStrategy[Any]] = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "bytes": st.binary(max_size=20),
    "string": st.text(max_size=10),
}


def framed(schema_id: int, body: bytes) -> bytes:
    """As a serializer sends it."""
    return b"\0" + struct.pack(">i", schema_id) + body


def whole(schema: Any, schema_id: int = 7) -> WholeSchema:
    """An Avro schema as a catalogue has it."""
    return WholeSchema(schema_id, "AVRO", json.dumps(schema))


def avro(schema: Any, value: Any, schema_id: int = 7) -> bytes:
    """A value as fastavro writes it, framed."""
    out = io.BytesIO()
    schemaless_writer(out, parse_schema(schema), value)
    return framed(schema_id, out.getvalue())


@st.composite
def schemas_and_values(draw: st.DrawFn, depth: int = 3) -> tuple[Any, st.SearchStrategy[Any]]:
    """A schema without names that could clash, and values of it, as Arrow gives them back."""
    kinds = [*SIMPLE, "enum", "fixed"] + (["array", "map", "record", "nullable"] if depth else [])
    kind = draw(st.sampled_from(kinds))
    if kind in SIMPLE:
        return kind, SIMPLE[kind]
    name = f"n{draw(st.uuids()).hex}"
    if kind == "enum":
        symbols = draw(st.lists(st.sampled_from("ABCDEFG"), min_size=1, unique=True))
        return {"type": "enum", "name": name, "symbols": symbols}, st.sampled_from(symbols)
    if kind == "fixed":
        size = draw(st.integers(1, 9))
        return {"type": "fixed", "name": name, "size": size}, st.binary(min_size=size, max_size=size)
    if kind == "record":
        fields, values = [], {}
        for number in range(draw(st.integers(1, 4))):
            inner, value = draw(schemas_and_values(depth=depth - 1))
            fields.append({"name": f"f{number}", "type": inner})
            values[f"f{number}"] = value
        return {"type": "record", "name": name, "fields": fields}, st.fixed_dictionaries(values)
    inner, value = draw(schemas_and_values(depth=depth - 1))
    if kind == "array":
        return {"type": "array", "items": inner}, st.lists(value, max_size=4)
    if kind == "map":
        return {"type": "map", "values": inner}, st.dictionaries(st.text(max_size=5), value, max_size=3)
    if inner == "null" or isinstance(inner, list):
        return inner, value
    return ["null", inner], st.none() | value
