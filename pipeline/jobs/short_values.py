"""Texts and bytes of columns, short enough for a record's key: whoever writes to a topic chooses how long they are."""

from typing import Final

from pyspark.sql import Column, functions
from pyspark.sql.types import BinaryType, DataType, StringType

MOST_BYTES: Final = 4096
"""A group's values stand in its record twice, and a character may become six in JSON."""
_BEGIN: Final = 1000
_DIGEST: Final = 32


def short(column: Column, kind: DataType) -> Column:
    """A column of this type with what is longer, or no UTF-8, as its begin, `~`, and a digest of all of it.

    No two become the same one, unless somebody writes a text that is what another becomes.
    """
    if isinstance(kind, BinaryType):
        digest = functions.sha2(column, 256).cast("binary")
        cut = functions.concat(functions.substring(column, 1, _BEGIN), digest)
        return functions.when(functions.octet_length(column) > MOST_BYTES, cut).otherwise(column)
    if not isinstance(kind, StringType):
        return column
    digest = functions.substring(functions.sha2(column.cast("binary"), 256), 1, _DIGEST)
    begin = functions.substring(functions.make_valid_utf8(column), 1, _BEGIN)
    is_cut = (functions.octet_length(column) > MOST_BYTES) | ~functions.is_valid_utf8(column)
    return functions.when(is_cut, functions.concat(begin, functions.lit("~"), digest)).otherwise(column)
