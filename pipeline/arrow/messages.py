"""Messages of magic 0 and 1, read one by one: hardly any log has them still, and nobody has written them since 2017."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kavka.pipeline.arrow.headers import HEADERS
from kavka.pipeline.arrow.record_kernels import LARGEST_MS
from kavka.pipeline.arrow.rows import repeated, timestamps
from kavka.protocol.records.errors import TruncatedBatchError
from kavka.protocol.records.header import read_header, verify_crc
from kavka.protocol.records.legacy import iter_records_of
from kavka.protocol.records.record import Record

BATCH_LIMIT_BYTES: Final = 256 << 20
"""What a batch may unpack to; beyond that it is corrupt."""

_AT_ONCE: Final = 1 << 16
_NO_TIMESTAMP_TYPE: Final = -1
"""Of messages of magic 0, which have no timestamp; Kafka's number for it."""


class Message(NamedTuple):
    """A record of an old format, which has no headers."""

    record: Record
    timestamp_type: int


def of_messages(messages: Sequence[Message], topic: str, partition: int, schema: Any) -> Any:
    """A pyarrow.RecordBatch of records that were read one by one."""
    count = len(messages)
    times = [min(max(message.record.timestamp_ms, -LARGEST_MS), LARGEST_MS) * 1000 for message in messages]
    columns = {
        "key": pa.array([message.record.key for message in messages], pa.binary()),
        "value": pa.array([message.record.value for message in messages], pa.binary()),
        "topic": repeated(topic, pa.string(), count),
        "partition": repeated(partition, pa.int32(), count),
        "offset": pa.array([message.record.offset for message in messages], pa.int64()),
        "timestamp": timestamps(np.array(times, np.int64)),
        "timestampType": pa.array([message.timestamp_type for message in messages], pa.int32()),
        "headers": pa.nulls(count, HEADERS),
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)


def walk_messages(
    data: bytes | bytearray | memoryview, position: int, offsets: range
) -> Iterator[tuple[list[Message], int, int]]:
    """The messages from `position` on whose offsets are in the range, as (some, where the walk is, offset behind them).

    It ends before a batch of magic 2, before a message that goes on behind the data, and behind the range. Raises
    CorruptRecordsError: the message is at the position that was told last.
    """
    while position < len(data):
        try:
            header = read_header(data, position)
        except TruncatedBatchError:
            return
        if header.magic >= 2:
            return
        following = position + header.size_bytes
        if header.next_offset > offsets.start:
            verify_crc(data, position, header)
            kind = int(header.timestamp_type) if header.magic else _NO_TIMESTAMP_TYPE
            records = iter_records_of(data, position, header, BATCH_LIMIT_BYTES)
            while some := list(islice(records, _AT_ONCE)):
                found = [Message(record, kind) for record in some if record.offset in offsets]
                yield found, position, found[-1].record.offset + 1 if found else offsets.start
        yield [], following, header.next_offset
        if header.next_offset >= offsets.stop:
            return
        position = following
