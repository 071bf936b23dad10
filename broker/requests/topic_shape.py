"""Produce requests to several partitions of one topic, prepared: Java's producer sends a batch for each that has one.

Which partitions come together, and in which order, changes from request to request. So the shape ends with the topic,
and what follows is read by hand: index, size and records of each partition.
"""

import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from kavka.protocol.api import VERSIONS, ApiKey
from kavka.protocol.codec import encode
from kavka.protocol.errors import DecodeError, ErrorCode
from kavka.protocol.headers import ResponseHead, decode_request_header
from kavka.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from kavka.protocol.records.header import HEADER_SIZE_BYTES, is_transactional
from kavka.protocol.varint import read_varint

if TYPE_CHECKING:
    from kavka.broker.partitions.partition import Partition
    from kavka.storage.append_result import AppendResult

FLEXIBLE_SINCE: Final = VERSIONS[ApiKey.PRODUCE].flexible_since
TOPIC_IDS_SINCE: Final = 13
MAX_PARTITIONS: Final = 16
"""Of one request; more are worth an I/O thread's time, and take the ordinary way."""
MARKS: Final = (0x4B61766B61204A61, 0x636B646177206F66, 0x2050726167756520)
"""Base offset, append time and log start offset in an answer that is encoded to be taken apart."""

_INT = struct.Struct(">i").unpack_from
_COUNT = struct.Struct(">i").pack

NameLeaders = Callable[[ProduceResponse, int], None]
"""`leader_hints.name_leaders` for the clients of one connection: (response, version)."""

Batches = list[tuple["Partition", memoryview]]
NO_RECORDS: Final = memoryview(b"")
"""Of a batch that has been appended: what waits keeps none."""


class TopicShape:
    """One request's shape up to its partitions, and the answer around the offsets. Immutable."""

    __slots__ = (
        "_entry_suffix",
        "_head",
        "_is_flexible",
        "_pack_entry",
        "_prefix",
        "_suffix",
        "_topic_id",
        "acks",
        "name_leaders",
        "timeout_ms",
        "topic",
        "version",
    )

    def __init__(
        self, request: ProduceRequest, version: int, partition: "Partition", name_leaders: NameLeaders
    ) -> None:
        self.version = version
        self.name_leaders = name_leaders
        self.acks = request.acks
        self.timeout_ms = request.timeout_ms
        self.topic = partition.topic
        self._topic_id = partition.topic_id
        self._is_flexible = version >= FLEXIBLE_SINCE
        one, two = (encoded_answer(partition, [answer_with_marks(0)] * count, version) for count in (1, 2))
        marks = struct.pack(">qqq", *MARKS)
        begin = one.index(marks) - 6
        end = begin + len(two) - len(one)
        count_size = 1 if self._is_flexible else 4
        self._head = ResponseHead(ApiKey.PRODUCE, version)
        self._prefix = one[: begin - count_size]
        self._entry_suffix = one[begin + 6 + len(marks) : end]
        self._pack_entry = struct.Struct(f">ihqqq{len(self._entry_suffix)}s").pack
        self._suffix = one[end:]

    def batches(
        self,
        frame: memoryview,
        position: int,
        hosted: "dict[tuple[str, int], Partition]",
        may_wait: bool,
        is_long: bool,
    ) -> Batches | None:
        """The partitions and their records, if all of it is written the plain way and nothing is to be asked first.

        `position`: where the number of partitions stands.
        """
        try:
            found = self._read(frame, position)
        except (DecodeError, IndexError, struct.error):
            return None
        if found is None:
            return None
        batches: Batches = []
        for index, records in found.items():
            partition = hosted.get((self.topic, index))
            if partition is None:
                return None
            log = partition.log
            if log is None or (self.version >= TOPIC_IDS_SINCE and partition.topic_id != self._topic_id):
                return None
            if not may_wait and (
                log.flushes_by_count
                or log.is_moving
                or (log.rules.looks_closer and (is_long or log.rules.unpacks(records)))
            ):
                return None
            batches += [(partition, records)]
        return batches

    def answer(
        self, correlation_id: int, batches: Batches, results: "list[AppendResult]", codes: Sequence[ErrorCode] = ()
    ) -> bytes:
        """The whole answer: all batches were appended. `codes`: what has become of each since, if they waited."""
        head, pack, suffix = self._head, self._pack_entry, self._entry_suffix
        if codes and any(codes):
            answers = [
                uncommitted(partition.index, first_offset, at_ms, start_offset, code)
                for (partition, _), (first_offset, _, at_ms, start_offset, _), code in zip(
                    batches, results, codes, strict=True
                )
            ]
            return head.framed(correlation_id, encoded_answer(batches[0][0], answers, self.version, self.name_leaders))
        count = len(batches)
        parts = [self._prefix, bytes((count + 1,)) if self._is_flexible else _COUNT(count)]
        for (partition, _), (first_offset, _, log_append_time_ms, log_start_offset, _) in zip(
            batches, results, strict=True
        ):
            parts += [pack(partition.index, 0, first_offset, log_append_time_ms, log_start_offset, suffix)]
        body = b"".join([*parts, self._suffix])
        return head.pack(head.counted_size_bytes + len(body), correlation_id) + body

    def _read(self, frame: memoryview, position: int) -> dict[int, memoryview] | None:
        """Records by partition, in the request's order; None if something is unusual. Raises where the frame ends."""
        length, is_flexible = frame.nbytes, self._is_flexible
        if is_flexible:
            count = frame[position] - 1
            position += 1
        else:
            count = _INT(frame, position)[0]
            position += 4
        if not 0 < count <= MAX_PARTITIONS:
            return None
        found: dict[int, memoryview] = {}
        for _ in range(count):
            index = _INT(frame, position)[0]
            if is_flexible:
                size, start = read_varint(frame, position + 4)
                size -= 1
            else:
                size, start = _INT(frame, position + 4)[0], position + 8
            position = start + size
            if size < HEADER_SIZE_BYTES or position > length or index in found:
                return None
            found[index] = records = frame[start:position]
            if is_transactional(records):
                return None
            if is_flexible:
                if frame[position]:
                    return None
                position += 1
        if is_flexible:
            return found if position + 2 == length and frame[position] == frame[position + 1] == 0 else None
        return found if position == length else None


def topic_shape_of(
    request: ProduceRequest, frame: memoryview, version: int, partition: "Partition", name_leaders: NameLeaders
) -> tuple[int, TopicShape] | None:
    """(where the number of partitions stands, the shape) of a request for one topic; None if it was not plain.

    Found by writing what stands before the partitions anew: what a client wrote differently would be read differently.
    """
    topic = request.topic_data[0]
    if len(topic.partition_data) > MAX_PARTITIONS or request.transactional_id is not None:
        return None
    data, topic.partition_data = topic.partition_data, []
    try:
        emptied = encode(request, version)
    finally:
        topic.partition_data = data
    front = emptied[:-3] if version >= FLEXIBLE_SINCE else emptied[:-4]
    start = decode_request_header(frame).body_offset
    end = start + len(front)
    return (end, TopicShape(request, version, partition, name_leaders)) if frame[start:end] == front else None


def answer_with_marks(index: int) -> PartitionProduceResponse:
    """The answer for a partition, to be taken apart when it is encoded."""
    return PartitionProduceResponse(
        index=index,
        error_code=0,
        base_offset=MARKS[0],
        log_append_time_ms=MARKS[1],
        log_start_offset=MARKS[2],
    )


def uncommitted(
    index: int, first_offset: int, log_append_time_ms: int, log_start_offset: int, code: ErrorCode
) -> PartitionProduceResponse:
    """The answer for a partition whose batch was appended, with what has become of it since."""
    return PartitionProduceResponse(
        index=index,
        error_code=code,
        base_offset=-1 if code is ErrorCode.NOT_LEADER_OR_FOLLOWER else first_offset,
        log_append_time_ms=log_append_time_ms,
        log_start_offset=log_start_offset,
    )


def encoded_answer(
    partition: "Partition",
    answers: list[PartitionProduceResponse],
    version: int,
    complete: NameLeaders | None = None,
) -> bytes:
    """The response to a request for one topic, without the header. `complete` adds to it who leads."""
    topic = TopicProduceResponse(name=partition.topic, topic_id=partition.topic_id, partition_responses=answers)
    response = ProduceResponse(responses=[topic])
    if complete is not None:
        complete(response, version)
    return encode(response, version)
