"""What is counted of each group, in parts that can be merged: a batch's part with that of all batches before."""

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import pyarrow
import pyarrow.compute
from pyspark.sql import Column, DataFrame, functions
from pyspark.sql.types import (
    ArrayType,
    CalendarIntervalType,
    DataType,
    DayTimeIntervalType,
    MapType,
    StringType,
    StructType,
    VariantType,
    YearMonthIntervalType,
)

from kavka.pipeline.jobs.short_values import short

FUNCTIONS: Final = ("count", "sum", "min", "max", "avg")
_NESTED: Final = (ArrayType, MapType, StructType, VariantType)
_WITHOUT_ARROW: Final = (YearMonthIntervalType, CalendarIntervalType)
"""Types that Spark does not bring to Arrow."""
_INTERVALS: Final = (DayTimeIntervalType, *_WITHOUT_ARROW)
_MOST_SHOWN: Final = 60
_LARGEST: Final = (1 << 63) - 1
_ROUNDING: Final = 1 << 32
"""More than floating sums are off, and less than those that went round are."""
_ABOUT: Final = "_about"
_ABOUT_SUM: Final = f"{_ABOUT}_sum"
_FORM: Final = re.compile(r"\s*(\w+)\s*(?:\(\s*([^()]+?)\s*\))?\s*")


class Measure(NamedTuple):
    """A number of a group: `sum` of a column, or `count` of rows (column "*") or of a column's values."""

    name: str
    function: str
    column: str

    @property
    def merges(self) -> dict[str, str]:
        """The state's columns of it, and how two of each are merged."""
        if self.function == "avg":
            return {f"{self.name}.sum": "sum", f"{self.name}.count": "sum"}
        return {self.name: "sum" if self.function == "count" else self.function}

    def of_rows(self, rows: DataFrame) -> list[Column]:
        """These columns, as Spark makes them of a group's rows. A text that is no number is none to `sum` and `avg`."""
        value = functions.lit(1) if self.column == "*" else functions.col(self.column)
        kind = None if self.column == "*" else type_of(rows, self.column)
        if self.function == "avg" or (self.function == "sum" and isinstance(kind, StringType)):
            value = value.try_cast("double")
        elif self.function in ("min", "max") and kind is not None:
            value = short(value, kind)
        made = {"count": functions.count, "sum": functions.sum, "min": functions.min, "max": functions.max}
        if self.function == "avg":
            found = [functions.sum(value), functions.count(value)]
        else:
            found = [made[self.function](value)]
        return [column.alias(name) for name, column in zip(self.merges, found, strict=True)]

    def result(self, row: Mapping[str, object]) -> object:
        """Its value, of a row of the state."""
        if self.function != "avg":
            return row[self.name]
        total, count = (row[column] for column in self.merges)
        assert isinstance(count, int)
        return total / count if count and isinstance(total, float) else None


def type_of(rows: DataFrame, name: str) -> DataType:
    """Of a column, or of a field in one."""
    return rows.select(functions.col(name)).schema.fields[0].dataType


def check_types(kinds: Mapping[str, DataType], by: Iterable[str], measures: Iterable[Measure]) -> None:
    """Raises ValueError for columns of types by which, or of which, nothing can be counted from batch to batch."""
    for name in by:
        kind = kinds.get(name)
        if isinstance(kind, _NESTED):
            raise ValueError(f"by: {name} is of type {_shown(kind)}: name its parts, or make a text of it")
        if isinstance(kind, _WITHOUT_ARROW):
            raise ValueError(f"by: {name} is of type {_shown(kind)}: make a text of it, or a number")
    for each in measures:
        kind = kinds.get(each.column)
        is_compared = each.function in ("min", "max") and isinstance(kind, _NESTED)
        # Spark adds and compares intervals, and Arrow, which merges what batches come to, does not.
        if kind is not None and (is_compared or (each.function != "count" and isinstance(kind, _INTERVALS))):
            raise ValueError(f"measures.{each.name}: there is no {each.function} of {_shown(kind)}")


def _shown(kind: DataType) -> str:
    return kind.simpleString()[:_MOST_SHOWN]


def measure(name: str, text: str) -> Measure:
    """Of `count`, `count(ip)`, `sum(bytes)`, `min(..)`, `max(..)`, `avg(..)`. Raises ValueError."""
    found = _FORM.fullmatch(text)
    function = found[1].lower() if found else ""
    column = (found[2] if found else None) or "*"
    if function not in FUNCTIONS or (column == "*" and function != "count"):
        raise ValueError(f"{text!r} is none of count, {', '.join(f'{each}(column)' for each in FUNCTIONS)}")
    return Measure(name, function, column)


def of_one_schema(before: pyarrow.Table, fresh: pyarrow.Table) -> list[pyarrow.Table]:
    """Groups of a state, and those of a batch: a column that has become wider is wide in both.

    Raises ValueError for one that has become something else.
    """
    fresh = fresh.select(before.column_names)
    fields = [_common(old, new) for old, new in zip(before.schema, fresh.schema, strict=True)]
    try:
        return [each.cast(pyarrow.schema(fields)) for each in (before, fresh)]
    except pyarrow.ArrowException:
        changed = [f"{old.name} was {old.type} and is {new.type}" for old, new in _changes(before, fresh)]
        raise ValueError(f"{', '.join(changed)}: begin anew with a new checkpoint") from None


def _changes(before: pyarrow.Table, fresh: pyarrow.Table) -> list[tuple[pyarrow.Field, pyarrow.Field]]:
    return [(old, new) for old, new in zip(before.schema, fresh.schema, strict=True) if old.type != new.type]


def _common(old: pyarrow.Field, new: pyarrow.Field) -> pyarrow.Field:
    """The wider of two, where that changes no value's text, which is in groups' keys; else the old one."""
    kinds = (old.type, new.type)
    is_alike = all(map(pyarrow.types.is_integer, kinds)) or all(map(pyarrow.types.is_floating, kinds))
    wider = new if is_alike and new.type.bit_width > old.type.bit_width else old
    # A job's columns may come to have nulls, too.
    return wider.with_nullable(True)


def merged(tables: Iterable[pyarrow.Table], groups: list[str], merges: Mapping[str, str]) -> pyarrow.Table:
    """Tables of one schema as one, with one row a group; each other column as `merges` says.

    Raises ValueError, OverflowError where a sum of whole numbers goes beyond 64 bits.
    """
    whole = pyarrow.concat_tables(list(tables))
    for name in [name for name, how in merges.items() if how == "sum"]:
        _check_sums(whole, groups, name)
    found = whole.group_by(groups, use_threads=False).aggregate(list(merges.items()))
    named = found.rename_columns([*groups, *merges] if found.column_names[0] == groups[0] else [*merges, *groups])
    return named.select(whole.column_names).cast(whole.schema)


def _check_sums(whole: pyarrow.Table, groups: list[str], name: str) -> None:
    """Arrow's sums of whole numbers go round where 64 bits end: floating ones would be far beyond then."""
    column = whole.column(name)
    if not pyarrow.types.is_int64(column.type):
        return
    bounds = pyarrow.compute.min_max(column)
    most = max(abs(bounds[each].as_py() or 0) for each in ("min", "max"))
    if most * whole.num_rows <= _LARGEST:
        return
    column = column.cast(pyarrow.float64(), safe=False)
    both = whole.select([*groups, name]).append_column(_ABOUT, column).group_by(groups, use_threads=False)
    sums = both.aggregate([(name, "sum"), (_ABOUT, "sum")])
    off = pyarrow.compute.subtract(
        sums.column(f"{name}_sum").cast(pyarrow.float64(), safe=False), sums.column(_ABOUT_SUM)
    )
    if (pyarrow.compute.max(pyarrow.compute.abs(off)).as_py() or 0) > _ROUNDING:
        raise OverflowError(f"measures.{name}: a sum goes beyond 64 bits: cast its column to decimal(38,0) or double")
