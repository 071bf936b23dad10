"""Fields declared in a job file, as Arrow types: `site string, at timestamp, tags array<string>`, as Spark's DDL."""

import re
from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from kavka.pipeline.running.tables import SettingError

_PLAIN: Final = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "tinyint": pa.int8(),
    "short": pa.int16(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_TOKEN: Final = re.compile(r"\s*(?:`([^`]+)`|([\w.-]+)|([<>(),:]))")
_MAX_DEPTH: Final = 32
_MAX_PRECISION: Final = 38


def declared_type(fields: Mapping[str, object] | str) -> pa.StructType:
    """The struct that these fields make: a text of names and types, or a table of type by name.

    Raises SettingError at what is not a type.
    """
    if isinstance(fields, str):
        return _Reader(fields).struct()
    if not fields:
        raise SettingError("fields", "no field is declared")
    pairs = []
    for name, text in fields.items():
        if not isinstance(text, str):
            raise SettingError("fields", f"the field {name} needs its type as a text, not {text!r}")
        pairs.append((name, _Reader(text).only_type()))
    return pa.struct(pairs)


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[str] = []
        self._next = 0
        position = 0
        while text[position:].strip():
            found = _TOKEN.match(text, position)
            if found is None:
                raise SettingError("fields", f"no field or type begins at {text[position : position + 20]!r}")
            self._tokens.append(found[1] or found[2] or found[3])
            position = found.end()

    def struct(self) -> pa.StructType:
        struct = pa.struct(self._fields(None, 0))
        if struct.num_fields == 0:
            raise SettingError("fields", "no field is declared")
        return struct

    def only_type(self) -> pa.DataType:
        kind = self._type(0)
        if self._next != len(self._tokens):
            raise self._wrong("the end")
        return kind

    def _fields(self, end: str | None, depth: int) -> list[pa.Field]:
        fields: list[pa.Field] = []
        while True:
            name = self._take("a name")
            if name in "<>(),:":
                raise self._wrong("a name", name)
            if any(field.name == name for field in fields):
                raise SettingError("fields", f"the field {name} is declared twice")
            if self._peek() == ":":
                self._next += 1
            fields.append(pa.field(name, self._type(depth)))
            following = self._peek()
            if following == end:
                return fields
            self._expect(",")

    def _type(self, depth: int) -> pa.DataType:
        if depth > _MAX_DEPTH:
            raise SettingError("fields", f"types lie in one another deeper than {_MAX_DEPTH}")
        name = self._take("a type").lower()
        if name in _PLAIN:
            return _PLAIN[name]
        if name in ("decimal", "numeric"):
            return self._decimal()
        if name not in ("array", "map", "struct"):
            known = ", ".join([*_PLAIN, "decimal(p,s)", "array<t>", "map<string,t>", "struct<a: t, ...>"])
            raise SettingError("fields", f"{name!r} is no type: there are {known}")
        self._expect("<")
        kind: pa.DataType
        if name == "array":
            kind = pa.list_(self._type(depth + 1))
        elif name == "struct":
            kind = pa.struct(self._fields(">", depth + 1))
        else:
            if self._take("string").lower() != "string":
                raise SettingError("fields", "the keys of a map in JSON are strings: map<string, ...>")
            self._expect(",")
            kind = pa.map_(pa.string(), self._type(depth + 1))
        self._expect(">")
        return kind

    def _decimal(self) -> pa.DataType:
        if self._peek() != "(":
            return pa.decimal128(10, 0)
        self._expect("(")
        precision, scale = self._number(), 0
        if self._peek() == ",":
            self._next += 1
            scale = self._number()
        self._expect(")")
        if not (0 < precision <= _MAX_PRECISION and 0 <= scale <= precision):
            raise SettingError(
                "fields", f"decimal({precision},{scale}) is not possible: at most {_MAX_PRECISION} digits"
            )
        return pa.decimal128(precision, scale)

    def _number(self) -> int:
        text = self._take("a number")
        if not text.isdecimal() or len(text) > 3:
            raise self._wrong("a number", text)
        return int(text)

    def _peek(self) -> str | None:
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def _take(self, what: str) -> str:
        token = self._peek()
        if token is None:
            raise self._wrong(what)
        self._next += 1
        return token

    def _expect(self, token: str) -> None:
        if self._peek() != token:
            raise self._wrong(repr(token), self._peek())
        self._next += 1

    def _wrong(self, wanted: str, found: str | None = None) -> SettingError:
        return SettingError("fields", f"{wanted} is expected in {self._text!r}, not {found or 'what stands there'}")
