"""What a Parquet file holds, told by its footer: rows, offsets of each topic-partition, bounds of the times.

A file's rows are sorted by topic, partition and offset. Where a row group has one topic-partition alone, which is what
a batch's files mostly have, its statistics say all; else the columns are read.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow
import pyarrow.compute
import pyarrow.parquet

from kavka.pipeline.lake.commit import Schema
from kavka.pipeline.lake.entries import OffsetRange
from kavka.pipeline.lake.errors import LakeError

POSITION: Final = ("topic", "partition", "offset")
"""The columns that say where a row comes from. Every row has them."""
TIMESTAMP: Final = "timestamp"

_BATCH_ROWS: Final = 1 << 16


@dataclass
class Footer:
    """One file's content in brief."""

    rows: int
    size_bytes: int
    schema: Schema
    offsets: dict[str, dict[int, OffsetRange]]
    min_timestamp_us: int | None
    max_timestamp_us: int | None


def read_footer(path: Path) -> Footer:
    """Raises LakeError for a file that is no Parquet or has rows without position, OSError."""
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            return _read(file, path.stat().st_size)
    except (pyarrow.ArrowException, KeyError) as error:
        raise LakeError(f"{path}: {str(error).splitlines()[0] if str(error) else type(error).__name__}") from error


def _read(file: Any, size_bytes: int) -> Footer:
    schema = file.schema_arrow
    missing = [name for name in (*POSITION, TIMESTAMP) if name not in schema.names]
    if missing:
        raise KeyError(f"it has no column {', '.join(missing)}")
    found = Footer(file.metadata.num_rows, size_bytes, schema_of(schema), {}, None, None)
    columns = {file.metadata.schema.column(each).path: each for each in range(file.metadata.num_columns)}
    for number in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(number)
        if group.num_rows and not _from_statistics(found, group, columns):
            for batch in file.iter_batches(_BATCH_ROWS, [number], columns=[*POSITION, TIMESTAMP]):
                _from_rows(found, batch)
    return found


def schema_of(schema: pyarrow.Schema) -> Schema:
    """Names and types of the columns, in order."""
    return tuple((field.name, str(field.type)) for field in schema)


def _from_statistics(found: Footer, group: Any, columns: dict[str, int]) -> bool:
    """Add a row group by its statistics; False where they do not say it."""
    bounds = {}
    for name in (*POSITION, TIMESTAMP):
        statistics = group.column(columns[name]).statistics
        if statistics is None or not statistics.has_min_max or statistics.null_count:
            return False
        try:
            bounds[name] = (statistics.min, statistics.max)
        except (OverflowError, ValueError):
            # A producer may give a time that datetime does not know: before year 1, or from year 10000 on.
            return False
    (topic, last_topic), (partition, last_partition) = bounds["topic"], bounds["partition"]
    times = [pyarrow.scalar(each, pyarrow.timestamp("us", "UTC")).value for each in bounds[TIMESTAMP]]
    if topic != last_topic or partition != last_partition:
        return False
    _add(found, topic, partition, *bounds["offset"], group.num_rows)
    _add_times(found, *times)
    return True


def _from_rows(found: Footer, batch: pyarrow.RecordBatch) -> None:
    table = pyarrow.Table.from_batches([batch])
    grouped = table.group_by(["topic", "partition"]).aggregate(
        [("offset", "min"), ("offset", "max"), ("offset", "count")]
    )
    for row in grouped.to_pylist():
        if any(value is None for value in row.values()) or row["offset_count"] == 0:
            raise KeyError("a row has no topic, partition or offset")
        _add(found, row["topic"], row["partition"], row["offset_min"], row["offset_max"], row["offset_count"])
    if batch.column("offset").null_count:
        raise KeyError("a row has no offset")
    times = batch.column(TIMESTAMP).cast(pyarrow.timestamp("us", "UTC"))
    bounds = pyarrow.compute.min_max(times)
    if bounds["min"].is_valid:
        _add_times(found, bounds["min"].value, bounds["max"].value)


def _add(found: Footer, topic: str, partition: int, first: int, last: int, rows: int) -> None:
    partitions = found.offsets.setdefault(topic, {})
    known = partitions.get(partition)
    if known is not None:
        first, last, rows = min(first, known.first), max(last, known.last), rows + known.rows
    partitions[partition] = OffsetRange(first, last, rows)


def _add_times(found: Footer, low: int, high: int) -> None:
    found.min_timestamp_us = low if found.min_timestamp_us is None else min(low, found.min_timestamp_us)
    found.max_timestamp_us = high if found.max_timestamp_us is None else max(high, found.max_timestamp_us)
