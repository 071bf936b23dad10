"""JSON objects with declared fields as Arrow structs.

Arrow's own parser takes a whole batch at once. It does not say which value was wrong, so that what it refuses is
decoded again, value by value, by Python's parser: what that says counts. Where both succeed they agree.

Two things end the process in Arrow's parser (26): `null` as a document, and deep nesting where types are inferred. So a
batch goes there only if each value is an object by its first and last byte and nothing like `} null` is in it, and
types are never inferred.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as arrow_json

from kavka.pipeline.schemas.decoded import Decoded, column_of, reason_of
from kavka.pipeline.schemas.errors import SchemaChangedError, UnfitValueError
from kavka.pipeline.schemas.json_converting import UNDECLARED, WrittenFloat, object_converter, with_undeclared

_NULL_DOCUMENT: Final = re.compile(rb"\}[ \t\r\n]*null")
_OBJECT: Final = r"^[ \t\r\n]*\{(?s:.*)\}[ \t\r\n]*$"
_MAX_BLOCK_BYTES: Final = 1 << 30
_FEW: Final = 200


class JsonDecoder:
    """Decodes JSON objects; picklable, for one thread at a time.

    `on_change`: what is not declared is left out (`ignore`), stops the batch (`fail`), or is kept as JSON text by name
    in the field `_undeclared` (`evolve`): JSON does not say what type a new column would have.
    """

    def __init__(self, fields: pa.StructType, required: Sequence[str] = (), on_change: str = "ignore") -> None:
        """Raises SettingError if `_undeclared` is declared where that is kept, or `required` names no field."""
        self.type: Final = with_undeclared(fields, required, keep=on_change == "evolve")
        self._fields = fields
        self._required = tuple(required)
        self._on_change = on_change
        self._float = WrittenFloat if _has_decimal(fields) else None
        self._is_plain = all(_is_plain(fields.field(place).type) for place in range(fields.num_fields))

    def decode(self, values: pa.Array) -> Decoded:
        """Raises SchemaChangedError for a field that is not declared, where that is to stop the batch."""
        present = pc.is_valid(values)
        given = values.filter(present) if values.null_count else values
        decoded, reasons = self._decoded(given)
        if not values.null_count:
            return Decoded(decoded, reasons, {})
        rows = pc.indices_nonzero(present)
        places = pc.if_else(present, pc.subtract(pc.cumulative_sum(present.cast(pa.int64())), 1), None)
        moved = {rows[place].as_py(): reason for place, reason in reasons.items()}
        return Decoded(decoded.take(places), moved, {})

    def _decoded(self, values: pa.Array) -> tuple[pa.Array, dict[int, str]]:
        decoded = self._at_once(values) if len(values) and self._is_plain else None
        if decoded is not None:
            return decoded, {}
        if len(values) <= _FEW or not self._is_plain:
            return self._one_by_one(values.to_pylist())
        # Few values that do not fit shall not make all the others slow.
        middle = len(values) // 2
        left, reasons = self._decoded(values.slice(0, middle))
        right, moved = self._decoded(values.slice(middle))
        reasons |= {middle + place: reason for place, reason in moved.items()}
        return pa.concat_arrays([left, right]), reasons

    def _at_once(self, values: pa.Array) -> pa.Array | None:
        """None if a value may not fit."""
        try:
            text = values.cast(pa.string())
        except pa.ArrowInvalid:
            return None
        if not pc.all(pc.match_substring_regex(text, _OBJECT)).as_py():
            return None
        block = b"\n".join(values.to_pylist())
        if len(block) > _MAX_BLOCK_BYTES or _NULL_DOCUMENT.search(block):
            return None
        # What must be noticed is noticed by an error.
        unexpected = "ignore" if self._on_change == "ignore" else "error"
        try:
            table = arrow_json.read_json(
                pa.BufferReader(block),
                read_options=arrow_json.ReadOptions(use_threads=False, block_size=len(block) + 1),
                parse_options=arrow_json.ParseOptions(
                    explicit_schema=pa.schema(list(self._fields)),
                    newlines_in_values=block.count(b"\n") >= len(values),
                    unexpected_field_behavior=unexpected,
                ),
            )
        except (pa.ArrowException, ValueError):
            return None
        # As many documents as values, each beginning and ending as an object does, is one document each.
        if table.num_rows != len(values) or table.schema != pa.schema(list(self._fields)):
            return None
        columns = [column.combine_chunks() for column in table.columns]
        if any(column.null_count for column, field in zip(columns, self._fields, strict=True) if self._needs(field)):
            return None
        if not all(_is_finite(column) for column in columns):
            return None
        if self._on_change == "evolve":
            columns.append(pa.nulls(len(values), pa.map_(pa.string(), pa.string())))
        return pa.StructArray.from_arrays(columns, fields=list(self.type))

    def _needs(self, field: pa.Field) -> bool:
        return field.name in self._required

    def _one_by_one(self, values: Sequence[bytes]) -> tuple[pa.Array, dict[int, str]]:
        convert = object_converter(self._fields, self._required, notice=self._on_change != "ignore")
        objects: list[dict[str, Any] | None] = []
        reasons: dict[int, str] = {}
        for place, value in enumerate(values):
            try:
                fields, undeclared = convert(json.loads(str(value, "utf-8"), parse_float=self._float))
            except (ValueError, RecursionError) as error:
                reasons[place] = _json_reason(error)
                objects.append(None)
                continue
            if undeclared and self._on_change == "fail":
                raise SchemaChangedError(
                    f"the field {min(undeclared)} is not declared: declare it, or set on_change = ignore"
                )
            if self._on_change == "evolve":
                fields[UNDECLARED] = list(undeclared.items()) if undeclared else None
            objects.append(fields)
        column, unfit = column_of(objects, self.type)
        return column, reasons | unfit


def _json_reason(error: Exception) -> str:
    if isinstance(error, UnfitValueError):
        return reason_of(error)
    if isinstance(error, RecursionError):
        return "no JSON: nested too deep"
    return f"no JSON: {reason_of(error)}"


def _is_plain(kind: pa.DataType) -> bool:
    """Whether Arrow's parser makes the same of it as ours."""
    if pa.types.is_list(kind):
        return _is_plain(kind.value_type)
    if pa.types.is_struct(kind):
        return all(_is_plain(field.type) for field in kind)
    return bool(
        pa.types.is_boolean(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_string(kind)
        or kind == pa.timestamp("us", "UTC")
    )


def _has_decimal(kind: pa.DataType) -> bool:
    if pa.types.is_decimal(kind):
        return True
    inner = [kind.field(place).type for place in range(kind.num_fields)]
    return any(map(_has_decimal, inner))


def _is_finite(column: pa.Array) -> bool:
    """Arrow takes NaN and Inf, which are no JSON."""
    if pa.types.is_floating(column.type):
        return bool(pc.all(pc.is_finite(column)).as_py() in (True, None))
    if pa.types.is_struct(column.type):
        return all(_is_finite(each) for each in column.flatten())
    return _is_finite(column.flatten()) if pa.types.is_list(column.type) else True
