"""Which Arrow type an Avro type becomes; as Spark's own Avro functions have it, which makes tables interchangeable."""

from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Any, Final

import pyarrow as pa

from kavka.pipeline.schemas.avro.tree import NO_DEFAULT, Node
from kavka.pipeline.schemas.errors import SchemaUnusableError

_MAX_DIGITS: Final = 38
_BEYOND: Final = 10**_MAX_DIGITS
_EXACT: Final = Context(prec=_MAX_DIGITS, traps=[Inexact, InvalidOperation])
_PLAIN: Final = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
    "fixed": pa.binary(),
}


def arrow_type(node: Node) -> pa.DataType:
    """Of a reader's type."""
    if node.kind == "record":
        return pa.struct([(field.name, arrow_type(field.node)) for field in node.fields])
    if node.kind == "array":
        return pa.list_(arrow_type(node.item))
    if node.kind == "map":
        return pa.map_(pa.string(), arrow_type(node.item))
    if node.kind == "union":
        members = member_types(node)
        if len(members) == 1:
            return members[0]
        return pa.struct([(f"member{place}", kind) for place, kind in enumerate(members)])
    if node.logical == "date":
        return pa.date32()
    if node.logical == "decimal":
        return pa.decimal128(node.precision, node.scale)
    if node.logical:
        return pa.timestamp("us", None if node.logical.startswith("local") else "UTC")
    return _PLAIN[node.kind]


def member_types(union: Node) -> list[pa.DataType]:
    """A union's columns: one for each branch but null; `int, long` are a long, `float, double` a double."""
    branches = [branch for branch in union.branches if branch.kind != "null"]
    plain = {branch.kind for branch in branches if not branch.logical}
    if len(branches) == 2 and len(plain) == 2:
        for kinds, kind in (({"int", "long"}, pa.int64()), ({"float", "double"}, pa.float64())):
            if plain == kinds:
                return [kind]
    return [arrow_type(branch) for branch in branches] or [pa.null()]


def decimal_of(data: bytes, scale: int) -> Decimal:
    """The bytes' number, exactly: Python's own context rounds to 28 digits. Raises ValueError for one beyond."""
    number = int.from_bytes(data, "big", signed=True)
    if abs(number) >= _BEYOND:
        raise ValueError(f"a decimal of more than {_MAX_DIGITS} digits")
    return _EXACT.scaleb(Decimal(number), -scale)


def default_value(node: Node, default: Any) -> Any:
    """A default of a schema's JSON, as what makes one element of the node's Arrow type.

    Raises SchemaUnusableError if the default is none of that type.
    """
    try:
        return _value(node, default)
    except (TypeError, ValueError, KeyError, AttributeError, UnicodeError, ArithmeticError) as error:
        raise SchemaUnusableError(f"{node.path}: the default {default!r:.60} does not fit") from error


def _value(node: Node, default: Any) -> Any:
    if node.kind == "union":
        return _of_union(node, default)
    if node.kind == "record":
        return {field.name: _of_field(field.name, field.node, field.default, default) for field in node.fields}
    if node.kind == "array":
        return [_value(node.item, each) for each in default]
    if node.kind == "map":
        return [(name, _value(node.item, each)) for name, each in default.items()]
    if node.logical == "decimal":
        return decimal_of(default.encode("latin-1"), node.scale)
    if node.kind in ("bytes", "fixed"):
        return default.encode("latin-1")
    if node.logical.endswith("millis"):
        return default * 1000
    if node.logical.endswith("nanos"):
        return default // 1000
    return default


def _of_field(name: str, node: Node, own: Any, given: Any) -> Any:
    if name in given:
        return _value(node, given[name])
    if own is NO_DEFAULT:
        raise SchemaUnusableError(f"{node.path}: the record's default has no {name}")
    return _value(node, own)


def _of_union(node: Node, default: Any) -> Any:
    if default is None:
        return None
    branches = [branch for branch in node.branches if branch.kind != "null"]
    many = len(member_types(node)) > 1
    for place, branch in enumerate(branches):
        try:
            value = _value(branch, default)
            pa.array([value], type=arrow_type(branch))
        except (TypeError, ValueError, KeyError, AttributeError, UnicodeError, ArithmeticError, pa.ArrowException):
            continue
        return {f"member{place}": value} if many else value
    raise ValueError("no branch takes it")
