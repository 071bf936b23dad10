"""The bytes of a partition's log as Arrow record batches: one call of each kernel for 64 Ki records.

Batches outside the range of offsets are passed by their headers alone; of all others the checksum is compared, and then
those of aborted transactions and control batches are left out. Packed ones are unpacked one behind the other, so that
the kernel sees one stretch of records again. Messages of the old formats are read one by one.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kavka.pipeline.arrow import walking
from kavka.pipeline.arrow.batch_kernels import find_batches
from kavka.pipeline.arrow.found import RECORDS_AT_ONCE, FoundRecords
from kavka.pipeline.arrow.messages import BATCH_LIMIT_BYTES, Message, of_messages, walk_messages
from kavka.pipeline.arrow.rows import schema
from kavka.pipeline.arrow.views import bytes_of
from kavka.protocol.records.compression import Codec, decompress
from kavka.protocol.records.crc import crc32c
from kavka.protocol.records.errors import CorruptRecordsError
from kavka.protocol.records.header import ATTRIBUTES_POSITION
from kavka.protocol.records.record_lengths import Integers

_BATCHES_AT_ONCE: Final = 1 << 14
_UNPACKED_AT_ONCE_BYTES: Final = 8 << 20
_NOTHING: Final = np.empty((0, 3), np.int64)

Data = bytes | bytearray | memoryview


class CorruptInputError(CorruptRecordsError):
    """What a file holds is no log; the text names the file and the position in it."""


class RangeDecoder:
    """Decodes a partition's log piece by piece, in order, from an offset on and before another. One thread."""

    def __init__(
        self,
        topic: str,
        partition: int,
        offsets: range,
        wanted: Sequence[str],
        outcomes: Callable[[], Integers] | None,
    ) -> None:
        """`outcomes`, for committed records alone, is asked once, when a transactional batch comes, for the stretches
        that were aborted: rows of producer id, first and last offset, ascending.

        Raises ValueError for a name that is no column.
        """
        self.next_offset = offsets.start
        """Behind what was decoded."""
        self.is_done = offsets.start >= offsets.stop
        """Whether nothing of the range can come any more."""
        self.used_bytes = 0
        """How much of the last piece was decoded: the rest begins with a batch that goes on behind it."""
        self._topic, self._partition, self._offsets = topic, partition, offsets
        self._outcomes = outcomes
        self._aborted: Integers | None = None
        self._schema = schema(wanted)
        self._table = np.empty((_BATCHES_AT_ONCE, walking.BATCH_COLUMNS), np.int64)
        self._found = FoundRecords(topic, partition)

    def go_on(self) -> None:
        """What comes next is another file, which may begin with what was decoded already: that is passed."""
        self._offsets = range(max(self.next_offset, self._offsets.start), self._offsets.stop)

    def decode(self, data: Data, name: str, file_position: int) -> Iterator[Any]:
        """The record batches (pyarrow.RecordBatch, RECORDS_AT_ONCE rows at most) of the next piece of the log.

        It begins with a batch, at that position of the file. They are copies: `data` may be used again once they are
        taken. Raises CorruptInputError when it comes to what is no batch, and what `outcomes` raises.
        """
        view = bytes_of(data)
        self.used_bytes = 0
        while not self.is_done:
            count, end, why, following = find_batches(
                view,
                self.used_bytes,
                len(view),
                self._offsets.start,
                self._offsets.stop,
                RECORDS_AT_ONCE,
                self._outcomes is not None,
                self._aborted is not None,
                _NOTHING if self._aborted is None else self._aborted,
                self._table,
            )
            if count:
                yield from self._batches(memoryview(data), self._table[:count], name, file_position)
            self.used_bytes = end
            self.next_offset = max(self.next_offset, following)
            if why < 0:
                raise _corrupt(name, file_position + end, walking.REASONS[-why])
            self.is_done = why == walking.DONE or self.next_offset >= self._offsets.stop
            if why == walking.LEGACY:
                yield from self._messages(data, name, file_position)
            elif why == walking.UNDECIDED:
                assert self._outcomes is not None
                self._aborted = self._outcomes()
            if why == walking.CUT_OFF or (why == walking.LEGACY and self.used_bytes == end):
                return

    def _batches(self, data: memoryview, table: Integers, name: str, file_position: int) -> Iterator[Any]:
        positions = table[:, walking.POSITION]
        starts, ends = (positions + ATTRIBUTES_POSITION).tolist(), table[:, walking.END].tolist()
        for number, (start, end, crc) in enumerate(zip(starts, ends, table[:, walking.CRC].tolist(), strict=True)):
            if crc32c(data[start:end]) != crc:
                # What comes before it is good.
                yield from self._good(data, table[:number], name, file_position)
                raise _corrupt(name, file_position + int(positions[number]), "the batch has a wrong CRC")
        yield from self._good(data, table, name, file_position)

    def _good(self, data: memoryview, table: Integers, name: str, file_position: int) -> Iterator[Any]:
        """The records of batches whose checksums are right."""
        kept = table[:, walking.IS_KEPT] != 0
        if not kept.all():
            table = table[kept]
        if not table[:, walking.CODEC].any():
            yield from self._records(data, table, name, file_position)
            return
        while len(table):
            body, count = _unpacked(data, table, name, file_position)
            yield from self._records(body, table[:count], name, file_position)
            table = table[count:]

    def _records(self, body: Data, table: Integers, name: str, file_position: int) -> Iterator[Any]:
        view = bytes_of(body)
        left = int(table[:, walking.COUNT].sum())
        state = np.zeros(3, np.int64)
        while int(state[0]) < len(table):
            found = self._found.find(view, table, state, self._offsets, left)
            if found < 0:
                where = file_position + int(table[int(state[0]), walking.POSITION])
                raise _corrupt(name, where, walking.REASONS[-found])
            left -= found
            if not found:
                continue
            try:
                arrays = [self._found.column(column, view, found) for column in self._schema.names]
            except CorruptRecordsError as failure:
                where = file_position + int(table[0, walking.POSITION])
                raise _corrupt(name, where, f"{failure}, there or in a batch soon after") from failure
            yield pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _messages(self, data: Data, name: str, file_position: int) -> Iterator[Any]:
        """Messages of the old formats, up to the first batch."""
        messages: list[Message] = []
        try:
            for more, position, following in walk_messages(data, self.used_bytes, self._offsets):
                messages += more
                self.used_bytes = position
                self.next_offset = max(self.next_offset, following)
                if len(messages) >= RECORDS_AT_ONCE:
                    yield of_messages(messages, self._topic, self._partition, self._schema)
                    messages = []
        except CorruptRecordsError as failure:
            if messages:
                yield of_messages(messages, self._topic, self._partition, self._schema)
            raise _corrupt(name, file_position + self.used_bytes, str(failure)) from failure
        if messages:
            yield of_messages(messages, self._topic, self._partition, self._schema)
        self.is_done = self.next_offset >= self._offsets.stop


def _unpacked(data: memoryview, table: Integers, name: str, file_position: int) -> tuple[bytes, int]:
    """(the records of the first batches, unpacked, one behind the other; how many batches), told to the table."""
    rows = zip(*(table[:, column].tolist() for column in _TO_UNPACK), strict=True)
    parts: list[bytes | memoryview] = []
    size = 0
    for number, (start, end, codec, position) in enumerate(rows):
        part: bytes | memoryview = data[start:end]
        if codec != Codec.NONE:
            try:
                part = decompress(codec, part, limit_bytes=BATCH_LIMIT_BYTES)
            except CorruptRecordsError as failure:
                raise _corrupt(name, file_position + position, str(failure)) from failure
        parts.append(part)
        table[number, walking.BODY_START] = size
        size += len(part)
        table[number, walking.BODY_END] = size
        if size >= _UNPACKED_AT_ONCE_BYTES:
            break
    return b"".join(parts), len(parts)


def _corrupt(name: str, position: int, reason: str) -> CorruptInputError:
    return CorruptInputError(f"{name} is corrupt at position {position}: {reason}")


_TO_UNPACK: Final = (walking.BODY_START, walking.BODY_END, walking.CODEC, walking.POSITION)
