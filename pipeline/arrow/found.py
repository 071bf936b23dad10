"""What was found of up to 64 Ki records, column by column."""

from typing import Any, Final

import numpy as np
import pyarrow as pa

from kavka.pipeline.arrow.headers import headers
from kavka.pipeline.arrow.record_kernels import find_records
from kavka.pipeline.arrow.rows import repeated, timestamps
from kavka.pipeline.arrow.views import fields_of, new_bits, new_views
from kavka.protocol.records.record_lengths import Bytes, Integers

RECORDS_AT_ONCE: Final = 1 << 16


class FoundRecords:
    """Room for what the kernel finds, used again and again, but for what Arrow keeps. One thread."""

    def __init__(self, topic: str, partition: int) -> None:
        self._topic = repeated(topic, pa.string(), RECORDS_AT_ONCE)
        self._partition = repeated(partition, pa.int32(), RECORDS_AT_ONCE)
        self._keys, self._values = new_views(RECORDS_AT_ONCE), new_views(RECORDS_AT_ONCE)
        self._header_starts = np.empty(RECORDS_AT_ONCE, np.int64)
        self._ends = np.empty(RECORDS_AT_ONCE, np.int64)
        self._make_room(0)

    def _make_room(self, room: int) -> None:
        self._offsets, self._times = np.empty(room, np.int64), np.empty(room, np.int64)
        self._kinds = np.empty(room, np.int32)
        self._key_bits, self._value_bits = new_bits(room), new_bits(room)

    def find(self, body: Bytes, table: Integers, state: Integers, offsets: range, most: int) -> int:
        """As `find_records`, up to `most`."""
        self._make_room(min(most, RECORDS_AT_ONCE))
        fields = self._keys, self._key_bits, self._values, self._value_bits
        room = self._offsets, self._times, self._kinds, *fields, self._header_starts, self._ends
        return find_records(body, table, state, offsets.start, offsets.stop, room)

    def column(self, name: str, body: Bytes, count: int) -> Any:
        """The first `count` of a column of `rows.FIELDS`. Raises CorruptRecordsError for headers that can't be."""
        match name:
            case "key":
                return fields_of(body, self._keys, self._key_bits, count)
            case "value":
                return fields_of(body, self._values, self._value_bits, count)
            case "topic":
                return self._topic.slice(0, count)
            case "partition":
                return self._partition.slice(0, count)
            case "offset":
                return pa.array(self._offsets[:count])
            case "timestamp":
                return timestamps(self._times[:count])
            case "timestampType":
                return pa.array(self._kinds[:count])
        return headers(body, self._header_starts[:count], self._ends[:count])
