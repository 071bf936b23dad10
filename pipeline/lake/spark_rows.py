"""What Spark does for the archive: rows that are already there cut off, folders' values made, sorted files written."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kavka.pipeline.lake.entries import NO_VALUE
from kavka.pipeline.lake.errors import LakeError
from kavka.pipeline.lake.footers import POSITION, TIMESTAMP
from kavka.pipeline.lake.partition_spec import MOST_VALUE_BYTES, PartitionField, PartitionSpec
from kavka.pipeline.lake.publishing import STAGED_LEVEL
from kavka.pipeline.lake.spark_paths import to_write
from kavka.pipeline.lake.state import LakeState

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

Ranges = dict[str, dict[int, list[tuple[int, int]]]]
"""Offsets [start, end) by topic and partition."""

_TIMESTAMPS: Final = "spark.sql.parquet.outputTimestampType"
_ESCAPED: Final = r"[\x00-\x1f\x7f\"#%'*/:=?\\\[\]{^]"
"""What Spark writes as %XX in a folder's name."""
_NUL: Final = "\0"
"""JSON's texts may hold it, and no file system's names."""
_REPLACEMENT: Final = "\ufffd"
_BEGIN_CHARACTERS: Final = 16
_DIGEST_CHARACTERS: Final = 32
_DAY_US: Final = 86_400_000_000
_HOUR_US: Final = 3_600_000_000


def check_columns(batch: "DataFrame", spec: PartitionSpec) -> None:
    """Raises LakeError where rows lack what the archive needs of them."""
    types = dict(batch.dtypes)
    missing = [name for name in (*POSITION, TIMESTAMP) if name not in types]
    missing += [field.column for field in spec.fields if field.column not in types and field.column not in missing]
    if missing:
        raise LakeError(
            f"the rows have no column {', '.join(missing)}: the archive needs it; leave it in the transform"
        )
    for field in spec.fields:
        if field.transform != "identity" and types[field.column] not in ("timestamp", "date"):
            raise LakeError(f"partition_by: {field.column} is a {types[field.column]} and no timestamp")


def to_cut(state: LakeState, query: str, batch: int) -> Ranges:
    """The offsets in the lake that a batch may bring again.

    Those of other queries, where this one is not past them, and its own where the batch itself comes again.
    """
    progress = state.queries.get(query)
    if progress is not None and batch <= progress.batch:
        return state.archived()
    found: Ranges = {}
    for topic, partitions in state.archived(but=query).items():
        for partition, bounds in partitions.items():
            own = progress.ranges.get(topic, {}).get(partition) if progress is not None else None
            ahead = [each for each in bounds if own is None or each[1] > own[1]]
            if ahead:
                found.setdefault(topic, {})[partition] = ahead
    return found


def without(batch: "DataFrame", ranges: Ranges) -> "DataFrame":
    """The rows that lie in none of these ranges."""
    from pyspark.sql import functions as f

    for topic, partitions in ranges.items():
        inside: Column = f.lit(False)
        for partition, bounds in partitions.items():
            covered: Column = f.lit(False)
            for start, end in bounds:
                covered = covered | ((f.col("offset") >= start) & (f.col("offset") < end))
            inside = inside | ((f.col("partition") == partition) & covered)
        batch = batch.where(~((f.col("topic") == topic) & inside))
    return batch


def stage(batch: "DataFrame", folder: Path, spec: PartitionSpec, compression: str, rows_per_file: int) -> int:
    """Write the rows below `folder`, a level of folders for each field of the spec; how many there were."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    counted = Observation()
    levels = [f"{STAGED_LEVEL}{number}" for number in range(len(spec.fields))]
    values = {level: _value(batch, field) for level, field in zip(levels, spec.fields, strict=True)}
    laid_out = batch.withColumns(values) if values else batch
    # In the order that Spark's writer wants for its folders, too, which therefore sorts no more.
    ordered = laid_out.observe(counted, f.count(f.lit(1)).alias("rows")).sortWithinPartitions(*levels, *POSITION)
    with _microseconds(batch.sparkSession):
        writer = ordered.write.mode("errorifexists").option("compression", compression)
        writer.option("maxRecordsPerFile", rows_per_file).partitionBy(*levels).parquet(to_write(folder))
    return int(counted.get.get("rows", 0))


def _value(batch: "DataFrame", field: PartitionField) -> "Column":
    """The name of the folder that a row belongs in. Spark's time zone plays no part in it."""
    from pyspark.sql import functions as f

    column = batch[field.column]
    if field.transform == "identity":
        return _short(column.cast("string"))
    if dict(batch.dtypes)[field.column] == "date":
        date = column.cast("string")
        return date if field.transform == "day" else f.concat(date, f.lit("-00"))
    time_us = f.unix_micros(column)
    into_day_us = f.pmod(time_us, f.lit(_DAY_US))
    # Not the day's begin divided: below the least time of all there is none.
    is_before = (time_us < 0) & (into_day_us > 0)
    day = f.call_function("div", time_us, f.lit(_DAY_US)) - f.when(is_before, 1).otherwise(0)
    date = f.date_from_unix_date(day.cast("int")).cast("string")
    if field.transform == "day":
        return date
    hour = f.floor(into_day_us / _HOUR_US).cast("string")
    return f.concat(date, f.lit("-"), f.lpad(hour, 2, "0"))


def _short(text: "Column") -> "Column":
    """The text, or where it would be too long for a folder's name, or is the one for no value, or holds the character
    that no name may hold, its begin and a digest.

    No two values share a folder: Spark's writer fails by the second one. So what is no UTF-8 is made it here, and not
    when Java names the folder.
    """
    from pyspark.sql import functions as f

    text = f.make_valid_utf8(text)
    escaped = f.octet_length(text) + 2 * f.regexp_count(text, f.lit(_ESCAPED))
    digest = f.substring(f.sha2(text.cast("binary"), 256), 1, _DIGEST_CHARACTERS)
    begin = f.translate(f.substring(text, 1, _BEGIN_CHARACTERS), _NUL, _REPLACEMENT)
    shortened = f.concat(begin, f.lit("~"), digest)
    is_no_name = (escaped > MOST_VALUE_BYTES) | (text == f.lit(NO_VALUE)) | f.contains(text, f.lit(_NUL))
    return f.when(is_no_name, shortened).otherwise(text)


@contextmanager
def _microseconds(session: "SparkSession") -> Iterator[None]:
    """Have timestamps written as microseconds: Spark's old default, INT96, has no statistics."""
    before = session.conf.get(_TIMESTAMPS)
    session.conf.set(_TIMESTAMPS, "TIMESTAMP_MICROS")
    try:
        yield
    finally:
        session.conf.set(_TIMESTAMPS, before or "")
