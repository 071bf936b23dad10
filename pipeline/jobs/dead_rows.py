"""Rows that a job could not use, as records: the row as it came, and headers that say why and where it came from."""

from typing import Final

from pyspark.sql import Column, DataFrame, functions

PREFIX: Final = "kavka."
REASON: Final = "kavka.reason"
TOPIC: Final = "kavka.topic"
PARTITION: Final = "kavka.partition"
OFFSET: Final = "kavka.offset"
JOB: Final = "kavka.job"
RETRIES: Final = "kavka.retries"
OWN: Final = (REASON, TOPIC, PARTITION, OFFSET, JOB, RETRIES)
LONGEST_REASON: Final = 1000
"""Characters: a parser's error may quote what it could not read."""


def dead_rows(rows: DataFrame, job: str, reason: Column) -> DataFrame:
    """Key, value, headers, time and position as they came, with further headers: reason, source position, job.

    `rows` have the columns of the source `kavka`; headers may be missing.
    """

    def header(name: str, value: Column) -> Column:
        return functions.struct(functions.lit(name).alias("key"), value.cast("string").cast("binary").alias("value"))

    added = functions.array(
        header(REASON, functions.substring(reason.cast("string"), 1, LONGEST_REASON)),
        header(TOPIC, functions.col("topic")),
        header(PARTITION, functions.col("partition")),
        header(OFFSET, functions.col("offset")),
        header(JOB, functions.lit(job)),
    )
    kept = added
    if "headers" in rows.columns:
        replaced = functions.lit([name for name in OWN if name != RETRIES])
        own = functions.filter(
            functions.col("headers"), lambda each: ~functions.array_contains(replaced, each.getField("key"))
        )
        empty = functions.array().cast("array<struct<key: string, value: binary>>")
        kept = functions.concat(functions.coalesce(own, empty), added)
    names = [name for name in ("topic", "partition", "offset", "timestamp", "key", "value") if name in rows.columns]
    return rows.select(*names, kept.alias("headers"))
