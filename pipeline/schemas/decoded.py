"""What decoders give back, and what all of them share: values as an Arrow array, and why others are none."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

MAX_REASON_CHARACTERS = 300


class Decoded(NamedTuple):
    """An array as long as what came in; null where nothing came, or where `reasons` or `missing` has the row."""

    values: pa.Array
    reasons: dict[int, str]
    """Row to why its value is bad."""
    missing: dict[int, int]
    """Row to the schema id that is still to be looked up."""


class ColumnDecoder(Protocol):
    """Decodes a column's bytes. It is picklable, knows no Spark, and asks nobody: what it needs came with it."""

    @property
    def type(self) -> pa.DataType:
        """Of the values it gives."""

    def decode(self, values: pa.Array) -> Decoded:
        """Raises SchemaChangedError where `on_change` is `fail` and something has no column."""


def column_of(objects: Sequence[Any], kind: pa.DataType) -> tuple[pa.Array, dict[int, str]]:
    """Python's objects as one array; those that do not fit are null, with the reason by their place.

    All at once as a rule; where that fails, by halves until those are found that do not fit.
    """
    try:
        return pa.array(objects, type=kind), {}
    except (pa.ArrowException, ValueError, TypeError, OverflowError, KeyError) as error:
        if len(objects) == 1:
            return pa.nulls(1, kind), {0: reason_of(error)}
    middle = len(objects) // 2
    left, left_reasons = column_of(objects[:middle], kind)
    right, right_reasons = column_of(objects[middle:], kind)
    moved = {middle + place: reason for place, reason in right_reasons.items()}
    return pa.concat_arrays([left, right]), left_reasons | moved


def reason_of(error: BaseException) -> str:
    """An error as one short line."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= MAX_REASON_CHARACTERS else text[: MAX_REASON_CHARACTERS - 3] + "..."
