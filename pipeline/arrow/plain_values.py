"""Columns of Arrow as Python's values, whatever they hold: nobody's record shall end a job."""

from typing import Any

import numpy
import pyarrow


def plain_values(column: pyarrow.ChunkedArray | pyarrow.Array) -> list[Any]:
    """As `to_pylist`. A time or date that Python has not, of the year 10000, is its text in ISO 8601; of a text that
    is no UTF-8, each byte that is none of it is `\\\\x` and its number.
    """
    try:
        values: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):
        return [_plain(each) for each in column]
    return values


def _plain(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except UnicodeDecodeError:
        return scalar.as_buffer().to_pybytes().decode(errors="backslashreplace")
    except (OverflowError, ValueError):
        kind = scalar.type
        if pyarrow.types.is_date(kind):
            return str(numpy.datetime64(scalar.value, "D"))
        return f"{numpy.datetime64(scalar.value, kind.unit)}Z"
