"""One produce request to one partition: its bytes in front of the records, and the answer around the offsets."""

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kavka.broker.requests.topic_shape import (
    FLEXIBLE_SINCE,
    MARKS,
    NameLeaders,
    answer_with_marks,
    encoded_answer,
    uncommitted,
)
from kavka.protocol.api import ApiKey
from kavka.protocol.codec import encode
from kavka.protocol.headers import ResponseHead, decode_request_header
from kavka.protocol.records.header import is_transactional

if TYPE_CHECKING:
    from kavka.broker.partitions.partition import Partition
    from kavka.protocol.errors import ErrorCode
    from kavka.protocol.messages.produce import ProduceRequest

EMPTY_TAGS: Final = b"\0\0\0"
"""No tagged fields of the partition, the topic and the request."""

_SIZE = struct.Struct(">i").unpack_from


class ProduceShape:
    """Where a request's records go, whether it was asked of its transactional id, and the answer. Immutable."""

    __slots__ = (
        "acks",
        "answer_size_bytes",
        "head",
        "is_flexible",
        "is_transactional",
        "key_version",
        "name_leaders",
        "pack",
        "partition",
        "prefix",
        "suffix",
        "timeout_ms",
        "version",
    )

    def __init__(self, request: "ProduceRequest", version: int, partition: "Partition", name: NameLeaders) -> None:
        self.name_leaders = name
        self.key_version = version  # the key of Produce is 0, so both together are the version
        self.version = version
        self.acks = request.acks
        self.timeout_ms = request.timeout_ms
        self.is_transactional = is_transactional(request.topic_data[0].partition_data[0].records)
        self.partition = partition
        self.is_flexible = version >= FLEXIBLE_SINCE
        answer = encoded_answer(partition, [answer_with_marks(partition.index)], version)
        self.prefix, _, self.suffix = answer.partition(struct.pack(">qqq", *MARKS))
        self.head = head = ResponseHead(ApiKey.PRODUCE, version)
        self.pack = struct.Struct(f"{head.format}{len(self.prefix)}sqqq{len(self.suffix)}s").pack
        self.answer_size_bytes = head.counted_size_bytes + len(answer)

    def awaited_answer(
        self,
        correlation_id: int,
        first_offset: int,
        log_append_time_ms: int,
        log_start_offset: int,
        codes: "Sequence[ErrorCode]",
    ) -> bytes:
        """The whole answer to what was appended and has waited. `codes`: what has become of it, one."""
        if not codes[0]:
            return self.pack(
                self.answer_size_bytes,
                correlation_id,
                self.prefix,
                first_offset,
                log_append_time_ms,
                log_start_offset,
                self.suffix,
            )
        partition = self.partition
        refused = uncommitted(partition.index, first_offset, log_append_time_ms, log_start_offset, codes[0])
        return self.head.framed(correlation_id, encoded_answer(partition, [refused], self.version, self.name_leaders))


def shape_end(request: "ProduceRequest", frame: memoryview, version: int) -> int:
    """Where the shape ends and the size of the records begins; 0 if the request was not written the plain way.

    Found from the front, by writing what stands before the records anew: whatever a client wrote differently (longer
    numbers, tagged fields, bytes behind the end) would be read differently the short way.
    """
    data = request.topic_data[0].partition_data[0]
    records, data.records = data.records, b""
    try:
        emptied = encode(request, version)
    finally:
        data.records = records
    is_flexible = version >= FLEXIBLE_SINCE
    front = emptied[: -len(EMPTY_TAGS) - 1] if is_flexible else emptied[:-4]
    start = decode_request_header(frame).body_offset
    end = start + len(front)
    found = records_at(frame, end, is_flexible)
    if records is None or found is None or len(found) != len(records) or frame[start:end] != front:
        return 0
    return end


def records_at(frame: memoryview, position: int, is_flexible: bool) -> memoryview | None:
    """The records behind their size at `position`, if nothing but empty tagged fields comes after them."""
    length = frame.nbytes
    if not is_flexible:
        if length < position + 4:
            return None
        start = position + 4
        end = start + _SIZE(frame, position)[0]
        return frame[start:end] if end == length and end > start else None
    size = shift = 0
    while position < length and shift < 35:
        byte = frame[position]
        position += 1
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            end = position + size - 1
            fits = end == length - len(EMPTY_TAGS) and size > 1 and frame[end:].tobytes() == EMPTY_TAGS
            return frame[position:end] if fits else None
        shift += 7
    return None
