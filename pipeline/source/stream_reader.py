"""`spark.readStream`: which offsets each batch ends at, and what it reads.

Source: KafkaMicroBatchStream of spark-sql-kafka.
"""

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from kavka.client.topic_partition import TopicPartition
from kavka.pipeline.source.batch_reader import check_all_there
from kavka.pipeline.source.choices import resolved
from kavka.pipeline.source.data_loss import batch_ranges, report_loss
from kavka.pipeline.source.errors import OptionError
from kavka.pipeline.source.log_bounds import LogBounds
from kavka.pipeline.source.logs import log_bounds
from kavka.pipeline.source.offsets import Nested, Offsets, flat, nested
from kavka.pipeline.source.planning import count, limited, limited_by_bytes, tasks
from kavka.pipeline.source.range_partition import range_partitions, read_rows
from kavka.pipeline.source.read_options import ReadOptions

LOOKS: Final = 10
LOOK_AGAIN_S: Final = 0.5
"""Where partitions are missing they are looked for so often: a broker that has just started may not know of any."""


def _wait(seconds: float) -> None:
    threading.Event().wait(seconds)


class KavkaStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Lives in a process of the driver's for as long as its query; executors have copies that only `read`.

    Threads: one at a time.
    """

    def __init__(
        self,
        options: ReadOptions,
        opened: Callable[[ReadOptions], LogBounds] = log_bounds,
        now_s: Callable[[], float] = time.monotonic,
        wait_s: Callable[[float], None] = _wait,
    ) -> None:
        self._options: Final = options
        self._open: Final = opened
        self._now_s: Final = now_s
        self._wait_s: Final = wait_s
        self._bounds: LogBounds | None = None
        self._initial: Nested | None = None
        self._target: Offsets | None = None
        self._latest: Offsets | None = None
        # Long ago: the first trigger waits for nothing, as what came while no query ran may have waited already.
        self._triggered_s = -math.inf

    def initialOffset(self) -> Nested:  # noqa: N802  # Spark's name
        """Where a query without a checkpoint begins. Raises OptionError, KafkaError."""
        bounds = self._opened()
        partitions = bounds.partitions(self._options.subscription)
        check_all_there(self._options, partitions)
        # Records that come once the target is set are the next run's: the latest offset is the target's then.
        self._initial = nested(resolved(self._options.starting, partitions, bounds, self._target))
        return self._initial

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  # Spark's name
        """That there are limits; `latestOffset` knows them all, of which Spark's API could pass one."""
        options = self._options
        if options.max_offsets is not None:
            return ReadMaxRows(options.max_offsets)
        if options.max_bytes is not None:
            return ReadMaxRows(2**63 - 1)
        return ReadAllAvailable() if options.min_offsets is None else ReadMinRows(options.min_offsets)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  # Spark's name
        """What is there now is all that the query reads."""
        self._target = self._ends({})

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> Nested:  # noqa: N802  # Spark's name
        """Where the batch that begins at `start` ends; `start` itself when there is to be none.

        Raises DataLossError, KafkaError.
        """
        if start == self._initial and self._options.starting.may_mean_latest:
            # The first batch is empty. The checkpoint has its end, so that a query which is killed before it has read
            # anything does not begin at what is the latest offset by then.
            self._initial = None
            return start
        begin = flat(start, "the checkpoint's offsets")
        end = self._ends(begin) if self._target is None else self._available(begin, self._target)
        self._latest = end
        if not isinstance(limit, ReadAllAvailable):
            end = self._limited(begin, end)
        return nested(end)

    def _available(self, begin: Offsets, target: Offsets) -> Offsets:
        """The target, or a log's present end where it was cut since; never before `begin` while the log goes so far.

        A batch that ended before it began would be in the checkpoint for good, and end the query each time.
        """
        now = self._ends(begin)
        found = {each: begin[each] for each in begin if each in target and each not in now}
        for each, end in now.items():
            if each in target or each in begin:
                found[each] = min(end, max(target.get(each, 0), begin.get(each, 0)))
        return found

    def _ends(self, begin: Mapping[TopicPartition, int]) -> Offsets:
        bounds = self._opened()
        partitions, missing = self._found(begin)
        if missing is not None:
            report_loss(str(missing), fails=self._options.fails_on_data_loss)
        end = bounds.end_offsets(partitions)
        behind = [each for each in end if end[each] < begin.get(each, 0)]
        for each, log_end in (bounds.log_ends(behind) if behind else {}).items():
            # An open transaction holds back what is stable; what was read before, by read_uncommitted, stays read.
            end[each] = begin[each] if log_end >= begin[each] else end[each]
        return end

    def _found(self, begin: Mapping[TopicPartition, int]) -> tuple[list[TopicPartition], OptionError | None]:
        """The partitions that are there, and what is said of those that are named and are not.

        What a checkpoint does not name any more is read from its first offset on: so that nothing gets lost from it by
        a broker that knows of nothing yet.
        """
        left = LOOKS
        while True:
            left -= 1
            partitions = self._opened().partitions(self._options.subscription)
            missing = _missing(self._options, partitions)
            if not left or (missing is None and begin.keys() <= set(partitions)):
                return partitions, missing
            self._wait_s(LOOK_AGAIN_S)

    def _limited(self, begin: Offsets, end: Offsets) -> Offsets:
        options = self._options
        new = [each for each in end if each not in begin]
        known = {**self._opened().first_offsets(new), **begin} if new else begin
        now_s = self._now_s()
        if (
            options.min_offsets is not None
            and self._target is None
            and count(known, end) < options.min_offsets
            and now_s - self._triggered_s < options.max_trigger_delay_ms / 1000
        ):
            return begin
        self._triggered_s = now_s
        if options.max_offsets is not None:
            end = limited(known, end, options.max_offsets)
        if options.max_bytes is not None:
            end = limited_by_bytes(known, end, options.max_bytes, self._bytes_per_offset(end))
        return end

    def _bytes_per_offset(self, end: Offsets) -> dict[Any, float]:
        bounds = self._opened()
        partitions = list(end)
        first, last = bounds.first_offsets(partitions), bounds.log_ends(partitions)
        sizes = bounds.sizes_bytes(partitions)
        return {each: sizes[each] / max(last[each] - first[each], 1) for each in partitions}

    def reportLatestOffset(self) -> Nested | None:  # noqa: N802  # Spark's name
        """The ends as last seen, for the query's progress."""
        return None if self._latest is None else nested(self._latest)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """The tasks of a batch. Raises DataLossError, KafkaError."""
        options = self._options
        begin, until = flat(start, "the checkpoint's offsets"), flat(end, "the checkpoint's offsets")
        if start == self._initial and options.starting.may_mean_latest:
            # The first batch, done again: it was empty, wherever the latest offset was then.
            return []
        ranges = batch_ranges(begin, until, self._opened(), fails=options.fails_on_data_loss)
        return range_partitions(tasks(ranges, options.min_partitions, options.max_records_per_partition))

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """In an executor."""
        return read_rows(partition, self._options)

    def stop(self) -> None:
        """Close what was opened."""
        if self._bounds is not None:
            self._bounds.close()
            self._bounds = None

    def _opened(self) -> LogBounds:
        if self._bounds is None:
            self._bounds = self._open(self._options)
        return self._bounds


def _missing(options: ReadOptions, partitions: list[TopicPartition]) -> OptionError | None:
    try:
        check_all_there(options, partitions)
    except OptionError as missing:
        return missing
    return None
