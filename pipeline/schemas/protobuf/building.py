"""Messages as Arrow columns: for each field all its values at once.

A field without presence has its default where it was not written, one with presence is null then. An enum is its
value's name. `uint32` is a long, `uint64` a decimal(20,0). Of the well-known types, Timestamp is a time in
microseconds, wrappers are what they wrap, Struct, Value and ListValue are JSON text. Where a message holds itself, the
inner one is left in its bytes: no table has a column for it.
"""

from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import chain
from operator import attrgetter
from typing import Any, Final

import numpy as np
import pyarrow as pa
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.json_format import MessageToJson

from kavka.pipeline.schemas.errors import SchemaUnusableError, UnfitValueError

_MAX_FIELDS: Final = 5000
_SCALARS: Final = {
    FieldDescriptor.TYPE_DOUBLE: pa.float64(),
    FieldDescriptor.TYPE_FLOAT: pa.float32(),
    FieldDescriptor.TYPE_INT32: pa.int32(),
    FieldDescriptor.TYPE_SINT32: pa.int32(),
    FieldDescriptor.TYPE_SFIXED32: pa.int32(),
    FieldDescriptor.TYPE_INT64: pa.int64(),
    FieldDescriptor.TYPE_SINT64: pa.int64(),
    FieldDescriptor.TYPE_SFIXED64: pa.int64(),
    FieldDescriptor.TYPE_UINT32: pa.int64(),
    FieldDescriptor.TYPE_FIXED32: pa.int64(),
    FieldDescriptor.TYPE_UINT64: pa.decimal128(20, 0),
    FieldDescriptor.TYPE_FIXED64: pa.decimal128(20, 0),
    FieldDescriptor.TYPE_BOOL: pa.bool_(),
    FieldDescriptor.TYPE_STRING: pa.string(),
    FieldDescriptor.TYPE_BYTES: pa.binary(),
    FieldDescriptor.TYPE_ENUM: pa.string(),
}
_WRAPPERS: Final = frozenset(
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
_AS_JSON: Final = frozenset(f"google.protobuf.{name}" for name in ("Struct", "Value", "ListValue"))
_TIMESTAMP: Final = "google.protobuf.Timestamp"
_MAX_SECONDS: Final = 253_402_300_800
"""The end of the year 9999, where the specification of Timestamp ends."""

Column = Callable[[Sequence[Any]], pa.Array]
"""Messages to one field's column; or values to their array."""


class MessageColumns:
    """The columns of one message. Raises SchemaUnusableError if no table can be made of it."""

    def __init__(self, descriptor: Any) -> None:
        self._count = 0
        self.type, self.build = self._struct(descriptor, ())

    def _struct(self, descriptor: Any, within: tuple[str, ...]) -> tuple[pa.DataType, Column]:
        within = (*within, descriptor.full_name)
        columns: list[Column] = []
        fields: list[pa.Field] = []
        for field in descriptor.fields:
            self._count += 1
            if self._count > _MAX_FIELDS:
                raise SchemaUnusableError(f"the message has more than {_MAX_FIELDS} fields")
            kind, column = self._field(field, within)
            fields.append(pa.field(field.name, kind))
            columns.append(column)
        struct = pa.struct(fields)

        def build(messages: Sequence[Any]) -> pa.Array:
            if not columns:
                return pa.array([{}] * len(messages), struct)
            return pa.StructArray.from_arrays([column(messages) for column in columns], fields=fields)

        return struct, build

    def _field(self, field: Any, within: tuple[str, ...]) -> tuple[pa.DataType, Column]:
        get = attrgetter(field.name)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            return self._map(field, get, within)
        kind, values = self._values(field, within)
        if field.is_repeated:
            listed = pa.list_(kind)

            def repeated(messages: Sequence[Any]) -> pa.Array:
                lists = list(map(get, messages))
                items = values(list(chain.from_iterable(lists)))
                return pa.ListArray.from_arrays(_offsets(lists), items, type=listed)

            return listed, repeated
        if not field.has_presence:
            return kind, lambda messages: values(list(map(get, messages)))

        def optional(messages: Sequence[Any]) -> pa.Array:
            given = np.fromiter((message.HasField(field.name) for message in messages), bool, len(messages))
            if given.all():
                return values(list(map(get, messages)))
            found = values([get(messages[row]) for row in np.flatnonzero(given).tolist()])
            return found.take(pa.array(np.cumsum(given) - 1, mask=~given))

        return kind, optional

    def _map(self, field: Any, get: Callable[[Any], Any], within: tuple[str, ...]) -> tuple[pa.DataType, Column]:
        key_kind, keys = self._values(field.message_type.fields_by_name["key"], within)
        value_kind, values = self._values(field.message_type.fields_by_name["value"], within)
        kind = pa.map_(key_kind, value_kind)

        def build(messages: Sequence[Any]) -> pa.Array:
            maps = list(map(get, messages))
            pairs = [sorted(each.items(), key=_key) for each in maps]
            flat = list(chain.from_iterable(pairs))
            arrays = keys([key for key, _ in flat]), values([value for _, value in flat])
            return pa.MapArray.from_arrays(_offsets(pairs), *arrays, type=kind)

        return kind, build

    def _values(self, field: Any, within: tuple[str, ...]) -> tuple[pa.DataType, Column]:
        """Of a field's single values."""
        if field.message_type is not None:
            return self._messages(field.message_type, within)
        kind = _SCALARS[field.type]
        if field.type == FieldDescriptor.TYPE_ENUM:
            # Of a number with two names it is the first one.
            names = {value.number: value.name for value in reversed(field.enum_type.values)}
            return kind, lambda numbers: pa.array([names.get(each) or str(each) for each in numbers], kind)
        if pa.types.is_decimal(kind):
            return kind, lambda numbers: pa.array(list(map(Decimal, numbers)), kind)
        return kind, lambda values: pa.array(values, kind)

    def _messages(self, descriptor: Any, within: tuple[str, ...]) -> tuple[pa.DataType, Column]:
        name = descriptor.full_name
        if name == _TIMESTAMP:
            return pa.timestamp("us", "UTC"), _timestamps
        if name in _AS_JSON:
            return pa.string(), lambda messages: pa.array(
                [MessageToJson(each, indent=None) for each in messages], pa.string()
            )
        if name in _WRAPPERS:
            kind, values = self._values(descriptor.fields_by_name["value"], within)
            return kind, lambda messages: values([each.value for each in messages])
        if name in within:
            return pa.binary(), lambda messages: pa.array([each.SerializeToString() for each in messages], pa.binary())
        return self._struct(descriptor, within)


def _timestamps(messages: Sequence[Any]) -> pa.Array:
    seconds = np.array([each.seconds for each in messages], np.int64)
    nanos = np.array([each.nanos for each in messages], np.int64)
    if (abs(seconds) > _MAX_SECONDS).any():
        raise UnfitValueError("a timestamp beyond the year 9999")
    return pa.array(seconds * 1_000_000 + nanos // 1000).view(pa.timestamp("us", "UTC"))


def _offsets(lists: Sequence[Any]) -> pa.Array:
    offsets = np.zeros(len(lists) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, lists), np.int64, len(lists)), out=offsets[1:])
    return pa.array(offsets).cast(pa.int32())


def _key(pair: tuple[Any, Any]) -> Any:
    return pair[0]
