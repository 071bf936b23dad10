"""What Spark gives a task: a range of a partition's offsets."""

from collections.abc import Iterable, Iterator
from typing import Any

from pyspark.sql.datasource import InputPartition

from kavka.pipeline.source.offsets import OffsetRange
from kavka.pipeline.source.read_options import ReadOptions


class RangePartition(InputPartition):
    """Goes to executors by pickle. `value` is its OffsetRange."""

    def __init__(self, value: OffsetRange) -> None:
        super().__init__(value)
        self.value: OffsetRange = value


def range_partitions(ranges: Iterable[OffsetRange]) -> list[InputPartition]:
    return [RangePartition(each) for each in ranges]


def read_rows(partition: InputPartition, options: ReadOptions) -> Iterator[Any]:
    """In an executor: the range's record batches. One without a value is Spark's own, where there is nothing to read.

    numpy, pyarrow and the consumer are loaded here: a process that only plans does without.
    """
    if partition.value is None:
        return iter(())
    if options.directories:
        from kavka.pipeline.source import file_reading

        return file_reading.rows(partition.value, options)
    from kavka.pipeline.source import range_reading

    return range_reading.rows(partition.value, options)
