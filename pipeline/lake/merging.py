"""Files of rows that are sorted made one file of rows that are sorted, in bounded memory, by pyarrow.

The manifest says how many rows of each topic-partition a file has, so that where they lie in it is known beforehand: no
row is compared with another. What is read has to be what the manifest says, or nothing is made.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow
import pyarrow.parquet

from kavka.pipeline.lake.entries import DataFile
from kavka.pipeline.lake.errors import LakeError, ManifestError

READ_BYTES: Final = 4 << 20
"""Of each file at once, about."""
GROUP_BYTES: Final = 64 << 20
"""Of rows in memory before a row group is written."""
_MAX_BATCH_ROWS: Final = 1 << 16


class FileRows:
    """One file's rows, taken from the front. Owned by one thread, which closes it."""

    def __init__(self, path: Path, entry: DataFile) -> None:
        self._path = path
        try:
            self._file: Any = pyarrow.parquet.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False)
        except pyarrow.ArrowException as error:
            raise LakeError(f"{path}: {error}") from error
        metadata = self._file.metadata
        if metadata.num_rows != entry.rows:
            self.close()
            raise ManifestError(f"{path}: it has {metadata.num_rows} rows, and the manifest says {entry.rows}")
        size = sum(metadata.row_group(each).total_byte_size for each in range(metadata.num_row_groups))
        rows = max(1, min(_MAX_BATCH_ROWS, READ_BYTES * entry.rows // max(size, 1)))
        self._batches: Iterator[pyarrow.RecordBatch] = self._file.iter_batches(rows)
        self._rest: pyarrow.RecordBatch | None = None

    @property
    def schema(self) -> pyarrow.Schema:
        return self._file.schema_arrow

    def take(self, topic: str, partition: int, rows: int) -> Iterator[pyarrow.RecordBatch]:
        """The next rows, which have to be this topic-partition's. Raises ManifestError where they are not."""
        while rows:
            batch = self._rest if self._rest is not None else next(self._batches, None)
            if batch is None:
                raise ManifestError(f"{self._path}: it ends before all its rows came")
            taken, self._rest = batch.slice(0, rows), batch.slice(rows) if batch.num_rows > rows else None
            if taken.num_rows == 0:
                continue
            self._check(taken, topic, partition)
            rows -= taken.num_rows
            yield taken

    def close(self) -> None:
        self._file.close()

    def _check(self, taken: pyarrow.RecordBatch, topic: str, partition: int) -> None:
        for row in (0, taken.num_rows - 1):
            found = taken.column("topic")[row].as_py(), taken.column("partition")[row].as_py()
            if found != (topic, partition):
                raise ManifestError(f"{self._path}: a row of {found} lies where the manifest has {topic}-{partition}")


def merge(lake: Path, entries: Iterable[DataFile], target: Path, compression: str) -> None:
    """Write the rows of all these files, in the order of topic, partition and offset, to `target`.

    The files have one schema, and no two of them offsets that mix. Raises LakeError, ManifestError, OSError.
    """
    opened: dict[str, FileRows] = {}
    codec = "none" if compression == "uncompressed" else compression
    try:
        for each in entries:
            opened[each.path] = FileRows(lake / each.path, each)
        schema = _unified([each.schema for each in opened.values()])
        with pyarrow.parquet.ParquetWriter(target, schema, compression=codec) as writer:
            pending: list[pyarrow.RecordBatch] = []
            size = 0
            for batch in _in_order(opened, list(entries)):
                pending.append(pyarrow.RecordBatch.from_arrays(batch.columns, schema=schema))
                size += batch.nbytes
                if size >= GROUP_BYTES:
                    writer.write_table(pyarrow.Table.from_batches(pending, schema))
                    pending, size = [], 0
            if pending:
                writer.write_table(pyarrow.Table.from_batches(pending, schema))
    except pyarrow.ArrowException as error:
        raise LakeError(f"{target}: {error}, where {len(opened)} files were to become one") from error
    finally:
        for file in opened.values():
            file.close()


def _unified(schemas: "list[pyarrow.Schema]") -> pyarrow.Schema:
    """The first, where a column may be null that may be in any of them: all else is alike."""
    fields = [
        field.with_nullable(any(each.field(number).nullable for each in schemas))
        for number, field in enumerate(schemas[0])
    ]
    return pyarrow.schema(fields, schemas[0].metadata)


def _in_order(opened: dict[str, FileRows], entries: list[DataFile]) -> Iterator[pyarrow.RecordBatch]:
    stretches = [
        (topic, partition, offsets.first, offsets.last, offsets.rows, each.path)
        for each in entries
        for topic, partitions in each.offsets.items()
        for partition, offsets in partitions.items()
    ]
    for topic, partition, _, _, rows, path in sorted(stretches):
        yield from opened[path].take(topic, partition, rows)


def mixes(entry: DataFile, others: Iterable[DataFile]) -> bool:
    """Whether offsets of a file lie among those of others."""
    return any(
        (known := other.offsets.get(topic, {}).get(partition)) is not None
        and known.first <= offsets.last
        and offsets.first <= known.last
        for topic, partitions in entry.offsets.items()
        for partition, offsets in partitions.items()
        for other in others
    )
