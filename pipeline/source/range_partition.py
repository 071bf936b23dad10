"""What Spark gives a task: a range of a partition's offsets."""

from collections.abc import Iterable

from pyspark.sql.datasource import InputPartition

from kavka.pipeline.source.offsets import OffsetRange


class RangePartition(InputPartition):
    """Goes to executors by pickle. `value` is its OffsetRange."""

    def __init__(self, value: OffsetRange) -> None:
        super().__init__(value)
        self.value: OffsetRange = value


def range_partitions(ranges: Iterable[OffsetRange]) -> list[InputPartition]:
    return [RangePartition(each) for each in ranges]
