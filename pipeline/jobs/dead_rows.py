"""Rows that a job could not use, as records: the row as it came, and headers that say why and where it came from."""

from typing import Final

from pyspark.sql import Column, DataFrame, functions
from pyspark.sql.types import ArrayType, BinaryType, MapType, StringType, StructType, VariantType

REASON: Final = "kavka.reason"
TOPIC: Final = "kavka.topic"
PARTITION: Final = "kavka.partition"
OFFSET: Final = "kavka.offset"
JOB: Final = "kavka.job"
RETRIES: Final = "kavka.retries"
CUT: Final = "kavka.cut"
"""Of a letter whose key, value and headers are left out, as no record may be so long: how many bytes they had."""
OWN: Final = (REASON, TOPIC, PARTITION, OFFSET, JOB, RETRIES, CUT)
LONGEST_REASON: Final = 1000
"""Characters: a parser's error may quote what it could not read."""
_ADDED: Final = "_kavka_added"
_OF_A_HEADER: Final = 20
"""Bytes beside its key and value, at most."""
_HEADERS_TYPE: Final = "array<struct<key: string, value: binary>>"
_OF_RECORDS: Final = ("topic", "partition", "offset", "timestamp", "key", "value")
_NESTED: Final = (ArrayType, MapType, StructType, VariantType)


def dead_rows(rows: DataFrame, job: str, reason: Column, most_bytes: int) -> DataFrame:
    """Key, value, headers, time and position as they came, with further headers: reason, source position, job.

    `rows` have the columns of the source `kavka`, or those of them that transforms have left. Where the value is gone
    it is JSON of all that there is. A key or value that was made something else is its text, or JSON if it has parts.
    Of a letter that would be larger than `most_bytes` there are the further headers alone: the record lies where they
    say.
    """

    def of(name: str) -> Column:
        return functions.col(name) if name in rows.columns else functions.lit(None)

    def header(name: str, value: Column) -> Column:
        return functions.struct(functions.lit(name).alias("key"), value.cast("string").cast("binary").alias("value"))

    added = functions.array(
        header(REASON, functions.substring(reason.cast("string"), 1, LONGEST_REASON)),
        header(TOPIC, of("topic")),
        header(PARTITION, of("partition")),
        header(OFFSET, of("offset")),
        header(JOB, functions.lit(job)),
    )
    kept = added
    if "headers" in rows.columns:
        replaced = functions.lit([name for name in OWN if name != RETRIES])
        own = functions.filter(
            functions.col("headers"), lambda each: ~functions.array_contains(replaced, each.getField("key"))
        )
        empty = functions.array().cast(_HEADERS_TYPE)
        kept = functions.concat(functions.coalesce(own, empty), added)
    columns = [_as_bytes(rows, name) for name in _OF_RECORDS if name in rows.columns]
    if "value" not in rows.columns:
        fields = [functions.col(name) for name in rows.columns if not name.startswith("_")]
        columns.append(functions.to_json(functions.struct(*fields)).alias("value"))
    whole = rows.select(*columns, kept.cast(_HEADERS_TYPE).alias("headers"), added.alias(_ADDED))
    size = _size_bytes(whole)
    is_cut = size > functions.lit(most_bytes)
    marked = functions.concat(functions.col(_ADDED), functions.array(header(CUT, size))).cast(_HEADERS_TYPE)
    left: dict[str, Column] = {"headers": functions.when(is_cut, marked).otherwise(functions.col("headers"))}
    for name in ("key", "value"):
        left[name] = functions.when(~is_cut, functions.col(name))
    return whole.select([left.get(name, functions.col(name)).alias(name) for name in whole.columns if name != _ADDED])


def _as_bytes(rows: DataFrame, name: str) -> Column:
    """A column of records; key and value as something that can be bytes, which Spark makes of nothing but texts."""
    column, kind = functions.col(name), rows.schema[name].dataType
    if name not in ("key", "value") or isinstance(kind, BinaryType | StringType):
        return column
    return (functions.to_json(column) if isinstance(kind, _NESTED) else column.cast("string")).alias(name)


def _size_bytes(letters: DataFrame) -> Column:
    def length(column: Column) -> Column:
        return functions.coalesce(functions.octet_length(column.cast("binary")), functions.lit(0)).cast("long")

    def with_header(so_far: Column, each: Column) -> Column:
        return so_far + length(each.getField("key")) + length(each.getField("value")) + functions.lit(_OF_A_HEADER)

    size = functions.aggregate(functions.col("headers"), functions.lit(0).cast("long"), with_header)
    for name in ("key", "value"):
        if name in letters.columns:
            size = size + length(functions.col(name))
    return size
