"""What is counted of each group, in parts that can be merged: a batch's part with that of all batches before."""

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import pyarrow
import pyarrow.compute
from pyspark.sql import Column, functions

FUNCTIONS: Final = ("count", "sum", "min", "max", "avg")
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

    def of_rows(self) -> list[Column]:
        """These columns, as Spark makes them of a group's rows."""
        value = functions.lit(1) if self.column == "*" else functions.col(self.column)
        made = {"count": functions.count, "sum": functions.sum, "min": functions.min, "max": functions.max}
        if self.function == "avg":
            found = [functions.sum(value.cast("double")), functions.count(value)]
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


def measure(name: str, text: str) -> Measure:
    """Of `count`, `count(ip)`, `sum(bytes)`, `min(..)`, `max(..)`, `avg(..)`. Raises ValueError."""
    found = _FORM.fullmatch(text)
    function = found[1].lower() if found else ""
    column = (found[2] if found else None) or "*"
    if function not in FUNCTIONS or (column == "*" and function != "count"):
        raise ValueError(f"{text!r} is none of count, {', '.join(f'{each}(column)' for each in FUNCTIONS)}")
    return Measure(name, function, column)


def merged(tables: Iterable[pyarrow.Table], groups: list[str], merges: Mapping[str, str]) -> pyarrow.Table:
    """Tables of one schema as one, with one row a group; each other column as `merges` says. Raises ValueError."""
    whole = pyarrow.concat_tables(list(tables))
    found = whole.group_by(groups, use_threads=False).aggregate(list(merges.items()))
    named = found.rename_columns([*groups, *merges] if found.column_names[0] == groups[0] else [*merges, *groups])
    return named.select(whole.column_names).cast(whole.schema)
