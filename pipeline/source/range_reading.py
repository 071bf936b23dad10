"""One range's rows, in an executor: over TCP by a consumer's columns."""

import logging
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from kavka.client.api_errors import KafkaTimeoutError
from kavka.client.consumer.columns import RecordColumns
from kavka.client.consumer.consumer import Consumer
from kavka.client.consumer.errors import InvalidOffsetError
from kavka.pipeline.arrow.rows import record_batch
from kavka.pipeline.source.consumer_pool import ConsumerPool
from kavka.pipeline.source.data_loss import report_loss
from kavka.pipeline.source.errors import NoProgressError
from kavka.pipeline.source.offsets import OffsetRange
from kavka.pipeline.source.read_options import ReadOptions

POOL: Final = ConsumerPool()
"""The process's: Spark's workers call nothing but `read`, task after task, and nothing else could hold it."""
POLL_MS: Final = 50
"""A range may end by what is no record, as a transaction's marker: no poll returns for that, so none lasts long."""
LOOK_AROUND_MS: Final = 2_000
"""After so long without progress it is asked whether the topic is still there."""
MOST_MISSES: Final = 3
"""So often in a row nobody has to know of it: a broker that has just started may not know of any."""
MOST_RECORDS: Final = 65_536
MOST_BYTES: Final = 16 * 1024 * 1024
"""Of a record batch, but for a single row that is larger: Spark's JVM holds some of them at once."""

log = logging.getLogger(__name__)


def rows(offsets: OffsetRange, options: ReadOptions) -> Iterator[Any]:
    """The range's records as pyarrow.RecordBatches of the columns that the options want, in the order of offsets.

    It ends by position: records that compaction took, aborted ones and markers are no rows, and no reason to wait.
    Raises DataLossError, NoProgressError, KafkaError.
    """
    with POOL.borrowed(options.consumer_settings) as consumer:
        yield from _Range(consumer, offsets, options).batches()


class _Range:
    """What is left to read of a range. Threads: one."""

    def __init__(self, consumer: Consumer, offsets: OffsetRange, options: ReadOptions) -> None:
        self._consumer: Final = consumer
        self._range: Final = offsets
        self._partition: Final = offsets.topic_partition
        self._options: Final = options
        self._position = offsets.start
        self._progress_s = time.monotonic()
        self._looked_s = self._progress_s
        self._misses = 0

    def batches(self) -> Iterator[Any]:
        self._consumer.assign([self._partition])
        self._consumer.seek(self._partition, self._position)
        end, wanted = self._range.end, self._options.columns
        while self._position < end:
            for columns in self._polled():
                within = columns.part(0, int(np.searchsorted(columns.offsets, end)))
                for part in parts_by_bytes(within, MOST_BYTES):
                    yield record_batch(part, wanted)
            self._advance()

    def _polled(self) -> Sequence[RecordColumns]:
        try:
            return self._consumer.poll_columns(POLL_MS, MOST_RECORDS)
        except InvalidOffsetError:
            self._consumer.seek(self._partition, self._after_loss())
            return ()

    def _after_loss(self) -> int:
        """Where to go on when the log does not have the position. Raises DataLossError."""
        first = self._consumer.beginning_offsets([self._partition])[self._partition]
        fails = self._options.fails_on_data_loss
        if first > self._position:
            what = f"{self._partition} begins at {first} by now; {self._range} was to be read from {self._position} on"
            report_loss(what, fails=fails)
            return min(first, self._range.end)
        report_loss(f"{self._partition} has no offset {self._position} of {self._range}", fails=fails)
        return self._range.end

    def _advance(self) -> None:
        position = self._consumer.position(self._partition)
        now_s = time.monotonic()
        if position > self._position:
            self._position = position
            self._progress_s = self._looked_s = now_s
            self._misses = 0
        elif now_s - self._progress_s > self._options.poll_timeout_ms / 1000:
            raise NoProgressError(
                f"{self._range}: nothing came from offset {position} on for {self._options.poll_timeout_ms} ms "
                "(kafkaConsumer.pollTimeoutMs)"
            )
        elif now_s - self._looked_s > LOOK_AROUND_MS / 1000:
            self._look_around()
            self._looked_s = time.monotonic()

    def _look_around(self) -> None:
        try:
            topics = self._consumer.list_topics(self._options.poll_timeout_ms)
        except KafkaTimeoutError as error:
            # No broker answers: the time for progress goes on.
            log.warning("no answer while reading range=%s error=%s", self._range, error)
            return
        self._misses = 0 if self._range.topic in topics else self._misses + 1
        if self._misses == MOST_MISSES:
            report_loss(f"{self._range}: the topic is gone", fails=self._options.fails_on_data_loss)
            self._position = self._range.end


def parts_by_bytes(columns: RecordColumns, most_bytes: int) -> Iterator[RecordColumns]:
    """The records in parts whose keys and values have up to `most_bytes`, or that are one record."""
    count = len(columns)
    if len(columns.body) <= most_bytes:
        if count:
            yield columns
        return
    ends = np.cumsum(np.maximum(columns.key_sizes, 0) + np.maximum(columns.value_sizes, 0))
    first = before = 0
    while first < count:
        end = max(int(np.searchsorted(ends, before + most_bytes, "right")), first + 1)
        yield columns.part(first, end)
        first, before = end, int(ends[end - 1])
