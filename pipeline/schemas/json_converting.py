"""What Python's JSON parser gives, as what Arrow takes for a declared type; anything else is a reason."""

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Context, Decimal, InvalidOperation
from functools import partial
from math import isfinite
from typing import Any, Final

import pyarrow as pa

from kavka.pipeline.running.tables import SettingError
from kavka.pipeline.schemas.errors import UnfitValueError

UNDECLARED: Final = "_undeclared"
"""The field that keeps what is not declared: its name (of inner fields `outer.inner`) to its JSON text."""

_DECIMALS: Final = Context(prec=38)

Undeclared = dict[str, str]
_Convert = Callable[[Any, str, Undeclared | None], Any]


class WrittenFloat(float):
    """A number that knows how it was written: decimals have more digits than it can hold."""

    def __init__(self, text: str) -> None:
        self.text: Final = text


def with_undeclared(fields: pa.StructType, required: Sequence[str], *, keep: bool) -> pa.StructType:
    """The struct, with the field `_undeclared` if what is not declared is kept. Raises SettingError."""
    names = {field.name for field in fields}
    for name in required:
        if name not in names:
            raise SettingError("required", f"the field {name} is not declared")
    if not keep:
        return fields
    if UNDECLARED in names:
        raise SettingError("fields", f"the field {UNDECLARED} is what on_change = evolve adds: call yours otherwise")
    return pa.struct([*fields, pa.field(UNDECLARED, pa.map_(pa.string(), pa.string()))])


def object_converter(
    fields: pa.StructType, required: Sequence[str], *, notice: bool
) -> Callable[[Any], tuple[dict[str, Any], Undeclared]]:
    """Makes a function of a parsed document: its declared fields, and if `notice` those that are not declared.

    The function raises UnfitValueError.
    """
    convert = _converter(fields)

    def object_of(document: Any) -> tuple[dict[str, Any], Undeclared]:
        undeclared: Undeclared = {}
        if not isinstance(document, dict):
            raise UnfitValueError(f"expected an object, got {_name(document)}")
        values = convert(document, "", undeclared if notice else None)
        for name in required:
            if values.get(name) is None:
                raise UnfitValueError(f"{name}: missing, and required")
        return values, undeclared

    return object_of


def _converter(kind: pa.DataType) -> _Convert:
    if pa.types.is_struct(kind):
        return partial(_struct, {field.name: _converter(field.type) for field in kind})
    if pa.types.is_list(kind):
        return partial(_list, _converter(kind.value_type))
    if pa.types.is_map(kind):
        return partial(_map, _converter(kind.item_type))
    if pa.types.is_integer(kind):
        highest = (1 << (kind.bit_width - 1)) - 1
        return partial(_integer, highest)
    if pa.types.is_floating(kind):
        return _float
    if pa.types.is_boolean(kind):
        return partial(_is, bool, "true or false")
    if pa.types.is_string(kind):
        return partial(_is, str, "a string")
    if pa.types.is_decimal(kind):
        return partial(_decimal, kind.precision, kind.scale)
    if pa.types.is_date(kind):
        return _date
    if pa.types.is_timestamp(kind):
        return partial(_timestamp, kind.tz is not None)
    return _binary


def _struct(converters: Mapping[str, _Convert], value: Any, path: str, undeclared: Undeclared | None) -> Any:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise _unfit(path, "an object", value)
    begin = f"{path}." if path else ""
    if undeclared is not None and not value.keys() <= converters.keys():
        undeclared |= {begin + name: json.dumps(value[name]) for name in value.keys() - converters.keys()}
    return {
        name: convert(value[name], begin + name, undeclared) if name in value else None
        for name, convert in converters.items()
    }


def _list(convert: _Convert, value: Any, path: str, undeclared: Undeclared | None) -> Any:
    if value is None:
        return None
    if not isinstance(value, list):
        raise _unfit(path, "an array", value)
    return [convert(each, f"{path}[]", undeclared) for each in value]


def _map(convert: _Convert, value: Any, path: str, undeclared: Undeclared | None) -> Any:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise _unfit(path, "an object", value)
    return [(name, convert(each, f"{path}.{name}", undeclared)) for name, each in value.items()]


def _is(wanted: type, what: str, value: Any, path: str, _undeclared: Undeclared | None) -> Any:
    if value is not None and not isinstance(value, wanted):
        raise _unfit(path, what, value)
    return value


def _integer(highest: int, value: Any, path: str, _undeclared: Undeclared | None) -> Any:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        raise _unfit(path, "a whole number", value)
    if not -highest - 1 <= value <= highest:
        raise UnfitValueError(f"{path}: a number beyond {highest}")
    return value


def _float(value: Any, path: str, _undeclared: Undeclared | None) -> Any:
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise _unfit(path, "a number", value)
    try:
        number = float(value)
    except OverflowError:
        number = float("inf")
    if not isfinite(number):
        raise UnfitValueError(f"{path}: a number that is not finite")
    return number


def _decimal(precision: int, scale: int, value: Any, path: str, _undeclared: Undeclared | None) -> Any:
    if value is None:
        return None
    if not isinstance(value, int | float | str) or isinstance(value, bool):
        raise _unfit(path, "a number", value)
    try:
        number = Decimal(value.text if isinstance(value, WrittenFloat) else str(value))
        # Python's own context has 28 digits.
        rounded = number.quantize(Decimal(1).scaleb(-scale), context=_DECIMALS)
    except InvalidOperation:
        raise UnfitValueError(f"{path}: no decimal({precision},{scale})") from None
    if rounded != number or rounded.adjusted() >= precision - scale:
        raise UnfitValueError(f"{path}: no decimal({precision},{scale})")
    return rounded


def _date(value: Any, path: str, _undeclared: Undeclared | None) -> Any:
    if value is None:
        return None
    if not isinstance(value, str):
        raise _unfit(path, "a date as text", value)
    try:
        return date.fromisoformat(value)
    except ValueError:
        raise UnfitValueError(f"{path}: no date: {value[:40]!r}") from None


def _timestamp(has_zone: bool, value: Any, path: str, _undeclared: Undeclared | None) -> Any:
    """ISO 8601; without a zone it is UTC's."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise _unfit(path, "a time as text", value)
    try:
        time = datetime.fromisoformat(value)
        if not has_zone:
            return time if time.tzinfo is None else time.astimezone(UTC).replace(tzinfo=None)
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        raise UnfitValueError(f"{path}: no time: {value[:40]!r}") from None


def _binary(value: Any, path: str, _undeclared: Undeclared | None) -> Any:
    if value is None:
        return None
    if not isinstance(value, str):
        raise _unfit(path, "base64 as text", value)
    try:
        return base64.b64decode(value, validate=True)
    except ValueError:
        raise UnfitValueError(f"{path}: no base64") from None


def _unfit(path: str, wanted: str, value: Any) -> UnfitValueError:
    return UnfitValueError(f"{path}: expected {wanted}, got {_name(value)}")


def _name(value: Any) -> str:
    kinds = {dict: "an object", list: "an array", str: "a string", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number")
