"""What a task of Spark does with the rows of its target partitions: one transaction for each, or several in turn."""

import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack
from itertools import pairwise
from typing import Final, NamedTuple

import numpy
import pyarrow

from kavka.client.api_errors import KafkaError
from kavka.pipeline.sending.marked_producer import FencedWriterError, MarkedProducer, Transactions
from kavka.pipeline.sending.marker_reading import MarkersRead, read_markers
from kavka.pipeline.sending.markers import Marker, MarkerName, MarkerPlace
from kavka.pipeline.sending.rows import Content, rows_of
from kavka.pipeline.sending.steps import OnStep, unwatched

TOPIC: Final = "_kavka_topic"
PARTITION: Final = "_kavka_partition"
REPORT: Final = pyarrow.schema(
    [("topic", pyarrow.string()), ("partition", pyarrow.int32()), ("rows", pyarrow.int64()), ("sent", pyarrow.int64())]
)
"""Of each target partition: the batch's rows, and those of them that this attempt has sent."""
CONTENT: Final = "content"
"""A marker's detail: `Content.sum` of the batch's rows that it stands for."""
_LOOK_AGAIN_S: Final = 0.1


class StaleBatchError(KafkaError):
    """A batch that lies behind what its query has written: its checkpoint is older than the topic."""


def stale(name: MarkerName, marker: Marker, batch_id: int) -> StaleBatchError:
    """Says what was found, and what to do."""
    return StaleBatchError(
        f"query {name.query!r} has written batch {marker.batch_id} to {name.topic!r} and is asked for batch "
        f"{batch_id}: another driver is ahead, or the checkpoint is an older one (a new query id writes all again)"
    )


class ChangedBatchError(KafkaError):
    """A batch that was written came again with other rows: what it has now is not in the topic."""


def changed(name: MarkerName, marker: Marker, what: str) -> ChangedBatchError:
    """Says what was found, and what to do."""
    return ChangedBatchError(
        f"batch {marker.batch_id} of query {name.query!r} came again with {what} for {name.topic}-{name.partition}, "
        f"where {marker.position} are written: a batch must have the same rows each time (an older or a new checkpoint "
        "needs a new query id)"
    )


def check_whole(
    known: MarkersRead, query: str, batch_id: int, counts: Mapping[str, int], there: Collection[tuple[str, int]]
) -> None:
    """Raises ChangedBatchError where the batch has no rows for a target partition that it had some for before.

    `counts` are the partitions of its topics, `there` those that it has rows for now.
    """
    for topic, count in counts.items():
        for name in (MarkerName(query, topic, number) for number in range(count) if (topic, number) not in there):
            marker = known.furthest(name)
            if marker is not None and marker.batch_id == batch_id:
                raise changed(name, marker, "0 rows")


class PartitionTask(NamedTuple):
    """Called with a Spark partition's rows, sorted by target and source position; gives REPORT's rows. Picklable."""

    place: MarkerPlace
    query: str
    batch_id: int
    known: MarkersRead
    """What the driver has read of markers."""
    transactions: Transactions
    on_step: OnStep = unwatched

    def __call__(self, batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        """Write them all; another attempt goes on after an error.

        Raises StaleBatchError, ChangedBatchError, TransactionTooLongError, KafkaError.
        """
        report: list[dict[str, object]] = []
        writer: _PartitionWriter | None = None
        with ExitStack() as stack:
            for topic, partition, rows in _by_target(batches):
                name = MarkerName(self.query, topic, partition)
                if writer is None or writer.name != name:
                    if writer is not None:
                        report.append(writer.finish())
                    stack.close()
                    writer = _PartitionWriter(self, name)
                    stack.callback(writer.close)
                    writer.open()
                writer.write(rows)
            if writer is not None:
                report.append(writer.finish())
        if report:
            yield pyarrow.RecordBatch.from_pylist(report, REPORT)


class _PartitionWriter:
    """The rows of one target partition. Threads: one."""

    def __init__(self, task: PartitionTask, name: MarkerName) -> None:
        self.name: Final = name
        self._task: Final = task
        self._producer: Final = MarkedProducer(task.place, name, task.transactions, task.on_step)
        self._marker = Marker(task.batch_id)
        """How much of the batch counts already."""
        self._content = Content()
        """Of the rows that have been seen, but for those beyond a batch that is whole."""
        self._seen = 0
        self._sent = 0
        self._is_open = False
        self._is_over = False
        """Whether all of the batch is there, or somebody else sees to it."""
        self._is_whole = False
        """Whether all of the batch was there before this attempt."""
        self._is_fenced = False

    def open(self) -> None:
        """Find out where to begin."""
        try:
            marker = self._producer.open(self._task.known)
        except FencedWriterError:
            self._is_over = self._is_fenced = True
            return
        if marker is not None and marker.batch_id > self._task.batch_id:
            raise stale(self.name, marker, self._task.batch_id)
        if marker is not None and marker.batch_id == self._task.batch_id:
            self._marker = marker
            self._is_over = self._is_whole = marker.is_whole

    def write(self, rows: pyarrow.RecordBatch) -> None:
        """Send these rows, without those that are there. Raises ChangedBatchError where these are others now."""
        known = min(max(self._marker.position - self._seen, 0), rows.num_rows)
        self._seen += rows.num_rows
        if known and not self._is_fenced:
            self._content.add(rows_of(rows.slice(0, known)))
            self._check_content(self._seen - rows.num_rows + known)
        rows = rows.slice(known)
        if self._is_over or not rows.num_rows:
            return
        try:
            while rows.num_rows:
                rows = self._write_some(rows)
        except FencedWriterError:
            self._is_over = self._is_fenced = True

    def _write_some(self, rows: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
        """As many as the transaction takes; what is left."""
        limit = self._task.transactions.rows
        if not self._is_open:
            self._producer.begin()
            self._is_open = True
        here = rows.slice(0, limit - self._sent % limit) if limit else rows
        self._producer.send(self.name.topic, self.name.partition, self._content.of(rows_of(here)))
        self._sent += here.num_rows
        if limit and self._sent % limit == 0:
            self._commit(self._marker.position + self._sent, is_whole=False)
            self._is_open = False
        return rows.slice(here.num_rows)

    def _commit(self, position: int, *, is_whole: bool) -> None:
        self._producer.commit(Marker(self._task.batch_id, position, is_whole, {CONTENT: self._content.sum}))

    def _check_content(self, seen: int) -> None:
        """When all that is written has come again. Raises ChangedBatchError."""
        marker = self._marker
        if seen == marker.position and marker.details.get(CONTENT, self._content.sum) != self._content.sum:
            raise changed(self.name, marker, "other rows")

    def finish(self) -> dict[str, object]:
        """The last transaction, and what is to be reported. Raises ChangedBatchError."""
        if self._seen < self._marker.position or (self._is_whole and self._seen != self._marker.position):
            raise changed(self.name, self._marker, f"{self._seen} rows")
        if not self._is_over:
            try:
                if not self._is_open:
                    self._producer.begin()
                self._commit(self._seen, is_whole=True)
            except FencedWriterError:
                self._is_fenced = True
        if self._is_fenced:
            self._wait_for_other()
        sent = 0 if self._is_fenced else self._sent
        return {"topic": self.name.topic, "partition": self.name.partition, "rows": self._seen, "sent": sent}

    def _wait_for_other(self) -> None:
        """Until the attempt that has taken over has written the batch: if this one failed, it would be tried anew, and
        shut out the one that is at work.

        Raises FencedWriterError when that takes longer than two transactions may.
        """
        task, pause = self._task, threading.Event()
        deadline = time.monotonic() + 2 * task.transactions.timeout_ms / 1000
        markers = task.known
        partition = task.place.partition_of(self.name)
        while time.monotonic() < deadline:
            markers = read_markers(task.place, markers, task.transactions.timeout_ms, self._is_own, [partition])
            marker = markers.furthest(self.name)
            if marker is not None and (marker.batch_id, marker.is_whole) >= (task.batch_id, True):
                return
            pause.wait(_LOOK_AGAIN_S)
        raise FencedWriterError(f"a later producer has {self.name.transactional_id!r} and has not written the batch")

    def _is_own(self, name: MarkerName) -> bool:
        return name == self.name

    def close(self) -> None:
        """What is open is aborted."""
        self._producer.close()


def _by_target(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[tuple[str, int, pyarrow.RecordBatch]]:
    """Stretches of rows that go to one partition."""
    for batch in batches:
        if not batch.num_rows:
            continue
        partitions = batch.column(PARTITION).to_numpy(zero_copy_only=False)
        topics = batch.column(TOPIC).dictionary_encode()
        codes = topics.indices.to_numpy(zero_copy_only=False)
        changes = numpy.flatnonzero((numpy.diff(partitions) != 0) | (numpy.diff(codes) != 0)) + 1
        edges = [0, *changes.tolist(), batch.num_rows]
        for begin, end in pairwise(edges):
            topic = topics.dictionary[int(codes[begin])].as_py()
            yield topic, int(partitions[begin]), batch.slice(begin, end - begin)
