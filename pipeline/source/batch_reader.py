"""`spark.read`: the whole range is planned at once."""

from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Any, Final

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from kavka.client.topic_partition import TopicPartition
from kavka.pipeline.source.choices import Kind, resolved
from kavka.pipeline.source.data_loss import report_loss
from kavka.pipeline.source.errors import OptionError
from kavka.pipeline.source.filters import Wanted, narrowed, wanted
from kavka.pipeline.source.log_bounds import LogBounds
from kavka.pipeline.source.logs import log_bounds
from kavka.pipeline.source.offsets import OffsetRange, Offsets, listed
from kavka.pipeline.source.planning import tasks
from kavka.pipeline.source.range_partition import range_partitions, read_rows
from kavka.pipeline.source.read_options import ReadOptions


class KavkaBatchReader(DataSourceReader):
    """Made on the driver, and pickled to executors. Threads: one at a time."""

    def __init__(self, options: ReadOptions) -> None:
        self._options: Final = options

    def partitions(self) -> list[InputPartition]:
        """One for each task. Raises OptionError, DataLossError, KafkaError."""
        options = self._options
        with closing(log_bounds(options)) as bounds:
            ranges = self._narrowed(planned(options, bounds), bounds)
        return range_partitions(tasks(ranges, options.min_partitions, options.max_records_per_partition))

    def _narrowed(self, ranges: list[OffsetRange], bounds: LogBounds) -> list[OffsetRange]:
        return ranges

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """In an executor. A partition without a value is Spark's own, where there is nothing to read."""
        return read_rows(partition, self._options)


class FilteredBatchReader(KavkaBatchReader):
    """Reads no more than a query's filters let pass, as far as they are about places.

    A class of its own: Spark refuses a reader that takes filters where spark.sql.python.filterPushdown.enabled is off.
    """

    def __init__(self, options: ReadOptions) -> None:
        super().__init__(options)
        self._wanted = Wanted()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802  # Spark's name
        """Those that Spark is to apply to the rows: all of them."""
        self._wanted = wanted(filters)
        return filters

    def _narrowed(self, ranges: list[OffsetRange], bounds: LogBounds) -> list[OffsetRange]:
        return narrowed(ranges, self._wanted, bounds)


def planned(options: ReadOptions, bounds: LogBounds) -> list[OffsetRange]:
    """What a batch read reads of each partition, empty ranges too. Raises OptionError, DataLossError, KafkaError."""
    partitions = bounds.partitions(options.subscription)
    check_all_there(options, partitions)
    starts = resolved(options.starting, partitions, bounds)
    ends = resolved(options.ending, partitions, bounds)
    if options.starting.kind is Kind.OFFSETS:
        starts = _from_first_on(starts, bounds, fails=options.fails_on_data_loss)
    if options.ending.kind is Kind.OFFSETS:
        ends = _to_last(ends, bounds, fails=options.fails_on_data_loss)
    return [OffsetRange(*each, starts[each], ends[each]) for each in partitions]


def check_all_there(options: ReadOptions, partitions: list[TopicPartition]) -> None:
    """Raises OptionError where a topic or partition was named that is not there."""
    there = {each.topic for each in partitions}
    missing = [name for name in options.subscription.topics or () if name not in there]
    if missing:
        raise OptionError(f"there is no topic {', '.join(missing)}")
    gone = set(options.subscription.assigned) - set(partitions)
    if gone:
        raise OptionError(f"assign: there is no {listed(gone)}")


def _from_first_on(starts: Offsets, bounds: LogBounds, *, fails: bool) -> Offsets:
    first = bounds.first_offsets(list(starts))
    for each, start in starts.items():
        if start < first[each]:
            report_loss(f"{each} begins at {first[each]}, not at {start}", fails=fails)
    return {each: max(start, first[each]) for each, start in starts.items()}


def _to_last(ends: Offsets, bounds: LogBounds, *, fails: bool) -> Offsets:
    last = bounds.end_offsets(list(ends))
    for each, end in ends.items():
        if end > last[each]:
            report_loss(f"{each} can be read to {last[each]} only, not to {end}", fails=fails)
    return {each: min(end, last[each]) for each, end in ends.items()}
