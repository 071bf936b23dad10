"""An Avro schema as a tree: names in their place, logical types known, defaults kept. Source: Avro 1.12."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fastavro.schema import SchemaParseException, UnknownType, parse_schema

from kavka.pipeline.schemas.errors import SchemaUnusableError
from kavka.pipeline.schemas.registry.schema import WholeSchema

NO_DEFAULT: Final = object()
_MAX_NODES: Final = 5000
_MAX_DEPTH: Final = 100
"""Types within types: what compiles and decodes a tree goes down it by recursion."""
_MAX_SIZE_BYTES: Final = (1 << 31) - 1
_NAMED: Final = ("record", "error", "enum", "fixed")
_PLAIN: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})


@dataclass(frozen=True)
class Field:
    """One field of a record."""

    name: str
    node: "Node"
    default: Any
    """As JSON has it, or NO_DEFAULT."""
    aliases: frozenset[str]


@dataclass(frozen=True)
class Node:
    """A type where it stands. Which attributes mean something goes by `kind`, Avro's name of the type."""

    kind: str
    path: str
    """Where it stands, for reasons: `visit.pages[].url`."""
    name: str = ""
    """Of a named type, with its namespace."""
    aliases: frozenset[str] = frozenset()
    fields: tuple[Field, ...] = ()
    branches: tuple["Node", ...] = ()
    """Of a union, in order; of an array or map its one kind of item."""
    symbols: tuple[str, ...] = ()
    default_symbol: str | None = None
    size_bytes: int = 0
    logical: str = ""
    precision: int = 0
    scale: int = 0

    @property
    def item(self) -> "Node":
        return self.branches[0]


def tree_of(schema: WholeSchema) -> Node:
    """Raises SchemaUnusableError for what is no Avro schema, and for recursive types, which no table can hold."""
    if schema.kind != "AVRO":
        raise SchemaUnusableError(f"schema {schema.id} is of type {schema.kind}, not AVRO")
    names: dict[str, Any] = {}
    try:
        for _, text in schema.needed:
            parse_schema(json.loads(text), named_schemas=names)
        parsed = parse_schema(json.loads(schema.text), named_schemas=names)
        return _Planter(names).node(parsed, "", ())
    except (SchemaParseException, UnknownType, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise SchemaUnusableError(f"schema {schema.id} is no Avro schema: {error!r}") from error
    except RecursionError:
        raise SchemaUnusableError(f"schema {schema.id} is nested too deep") from None


class _Planter:
    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = names
        self._count = 0
        self._depth = 0

    def node(self, schema: Any, path: str, within: tuple[str, ...]) -> Node:
        self._count += 1
        if self._count > _MAX_NODES:
            raise SchemaUnusableError(f"the schema has more than {_MAX_NODES} parts")
        if self._depth >= _MAX_DEPTH:
            raise SchemaUnusableError(f"the schema is nested deeper than {_MAX_DEPTH} types")
        self._depth += 1
        try:
            return self._planted(schema, path, within)
        finally:
            self._depth -= 1

    def _planted(self, schema: Any, path: str, within: tuple[str, ...]) -> Node:
        if isinstance(schema, list):
            return Node("union", path, branches=tuple(self.node(each, path, within) for each in schema))
        if isinstance(schema, str):
            if schema in _PLAIN:
                return Node(schema, path)
            schema = self._names[schema]
        kind = schema["type"]
        if isinstance(kind, dict | list):
            return self.node(kind, path, within)
        if kind in _NAMED:
            return self._named(schema, kind, path, within)
        if kind == "array":
            return Node("array", path, branches=(self.node(schema["items"], f"{path}[]", within),))
        if kind == "map":
            return Node("map", path, branches=(self.node(schema["values"], f"{path}[]", within),))
        if kind not in _PLAIN:
            return self.node(self._names[kind], path, within)
        return Node(kind, path, **_logical(schema, kind))

    def _named(self, schema: Mapping[str, Any], kind: str, path: str, within: tuple[str, ...]) -> Node:
        name = schema["name"]
        if name in within:
            raise SchemaUnusableError(f"{path or name}: the type {name} holds itself, which no table can")
        namespace = name.rpartition(".")[0]
        aliases = frozenset(
            alias if "." in alias or not namespace else f"{namespace}.{alias}" for alias in schema.get("aliases", ())
        )
        if kind == "enum":
            symbols = tuple(schema["symbols"])
            return Node("enum", path, name, aliases, symbols=symbols, default_symbol=schema.get("default"))
        if kind == "fixed":
            size_bytes = int(schema["size"])
            if not 0 <= size_bytes <= _MAX_SIZE_BYTES:
                raise SchemaUnusableError(f"{path or name}: a fixed type cannot have {size_bytes} bytes")
            return Node("fixed", path, name, aliases, size_bytes=size_bytes, **_logical(schema, kind))
        fields = []
        for each in schema["fields"]:
            inner = self.node(each["type"], f"{path}.{each['name']}" if path else each["name"], (*within, name))
            given = each.get("default", NO_DEFAULT)
            fields.append(Field(each["name"], inner, given, frozenset(each.get("aliases", ()))))
        return Node("record", path, name, aliases, fields=tuple(fields))


def _logical(schema: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """A logical type that this type can have, and that Arrow has: others are their bytes and numbers, as Avro says."""
    logical = schema.get("logicalType")
    if kind == "int" and logical == "date":
        return {"logical": "date"}
    times = ("timestamp-millis", "timestamp-micros", "timestamp-nanos")
    if kind == "long" and logical in (*times, *(f"local-{each}" for each in times)):
        return {"logical": logical}
    if kind in ("bytes", "fixed") and logical == "decimal":
        precision, scale = schema.get("precision", 0), schema.get("scale", 0)
        if isinstance(precision, int) and isinstance(scale, int) and 0 < precision <= 38 and 0 <= scale <= precision:
            return {"logical": "decimal", "precision": precision, "scale": scale}
    return {}
