"""Rows that a job could not use, as records: the row as it came, and headers that say why and where it came from."""

from typing import Final

from pyspark.sql import Column, DataFrame, functions

REASON: Final = "kavka.reason"
TOPIC: Final = "kavka.topic"
PARTITION: Final = "kavka.partition"
OFFSET: Final = "kavka.offset"
JOB: Final = "kavka.job"
RETRIES: Final = "kavka.retries"
OWN: Final = (REASON, TOPIC, PARTITION, OFFSET, JOB, RETRIES)
LONGEST_REASON: Final = 1000
"""Characters: a parser's error may quote what it could not read."""
_OF_RECORDS: Final = ("topic", "partition", "offset", "timestamp", "key", "value")


def dead_rows(rows: DataFrame, job: str, reason: Column) -> DataFrame:
    """Key, value, headers, time and position as they came, with further headers: reason, source position, job.

    `rows` have the columns of the source `kavka`, or those of them that transforms have left. Where the value is gone
    it is JSON of all that there is.
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
        empty = functions.array().cast("array<struct<key: string, value: binary>>")
        kept = functions.concat(functions.coalesce(own, empty), added)
    columns = [functions.col(name) for name in _OF_RECORDS if name in rows.columns]
    if "value" not in rows.columns:
        fields = [functions.col(name) for name in rows.columns if not name.startswith("_")]
        columns.append(functions.to_json(functions.struct(*fields)).alias("value"))
    return rows.select(*columns, kept.alias("headers"))
