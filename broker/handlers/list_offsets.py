"""ListOffsets v0-11.

Behaviour
- The offset of a partition's start, its end as the client may see it (the high watermark, or the last stable offset for
  read_committed; the log's end for a replica), the first record at or after a timestamp, or the record with the largest
  timestamp.
- Answered by the leader, after comparing leader epochs (KIP-320); a debugging replica (-2) is answered by any replica.
- A partition named twice is answered INVALID_REQUEST.
- Not done: there is no tiered storage: the local log's start is the log's start, and the tiered offsets are -1.

Versions
- v0: several offsets, newest first: where segments begin that were written by that time, and the end. A partition may
  be named twice, for its start and its end; more often, and a small request would have a large answer.
- v2: isolation level. v4: leader epochs. v5: OFFSET_NOT_AVAILABLE (KIP-207). v7: max timestamp, -3 (KIP-734).
- v8: local log start, -4 (KIP-405).
- v9: last tiered offset, -5. v10: a timeout for remote look-ups, which is not needed. v11: earliest pending upload, -6.
"""

from collections import Counter
from typing import TYPE_CHECKING, Final

from kavka.broker.partitions.hosted import hosted_partition
from kavka.broker.requests.handling import Context, handles
from kavka.broker.security.acl import Operation, topic
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

if TYPE_CHECKING:
    from kavka.broker.partitions.partition import Partition
    from kavka.broker.partitions.role import PartitionRole
    from kavka.broker.services import Services
    from kavka.storage.partition_log import PartitionLog

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6
FIRST_VERSION_OF: Final = {
    LATEST: 0,
    EARLIEST: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}

CONSUMER: Final = -1
DEBUGGING_REPLICA: Final = -2
READ_COMMITTED: Final = 1
SEVERAL_OFFSETS: Final = 0
"""The version that has them."""
MOST_NAMED: Final = {SEVERAL_OFFSETS: 2}
"""How often a partition may be named; else once."""
OFFSET_NOT_AVAILABLE_SINCE: Final = 5

Found = tuple[int, int, int]
"""Timestamp, offset, leader epoch; -1 for each that there is not."""
NOTHING: Final[Found] = (-1, -1, -1)


def _refused(request: ListOffsetsRequest, code: ErrorCode, _message: str | None) -> ListOffsetsResponse:
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(name=each.name, partitions=[_failed(part, code) for part in each.partitions])
            for each in request.topics
        ]
    )


@handles(ListOffsetsRequest, versions="0-11", error_answer=_refused)
def list_offsets(request: ListOffsetsRequest, context: Context, services: "Services") -> ListOffsetsResponse:
    version = context.api_version
    named = Counter((each.name, part.partition_index) for each in request.topics for part in each.partitions)
    topics = []
    for each in request.topics:
        allowed = context.allows(Operation.DESCRIBE, topic(each.name))
        answers = []
        for part in each.partitions:
            try:
                if not allowed:
                    raise BrokerError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                if named[each.name, part.partition_index] > MOST_NAMED.get(version, 1):
                    raise BrokerError(ErrorCode.INVALID_REQUEST)
                if part.timestamp < 0 and version < FIRST_VERSION_OF.get(part.timestamp, 1 << 15):
                    raise BrokerError(ErrorCode.UNSUPPORTED_VERSION)
                if version == SEVERAL_OFFSETS:
                    answers.append(_look_up_several(each.name, part, request, services))
                else:
                    answers.append(_found(part, _look_up(each.name, part, request, version, services), version))
            except BrokerError as error:
                answers.append(_failed(part, error.code))
        topics.append(ListOffsetsTopicResponse(name=each.name, partitions=answers))
    return ListOffsetsResponse(topics=topics)


def _look_up(
    name: str, part: ListOffsetsPartition, request: ListOffsetsRequest, version: int, services: "Services"
) -> Found:
    partition = hosted_partition(services, name, part.partition_index)
    role = partition.role
    partition.check_leader_epoch(part.current_leader_epoch)
    log = _readable_log(partition, request.replica_id)
    found = _find(log, role, part.timestamp, request, version)
    _check_led_since(role, partition, request.replica_id)
    return found


def _check_led_since(role: "PartitionRole", partition: "Partition", replica_id: int) -> None:
    now = partition.role
    if replica_id != DEBUGGING_REPLICA and not (now.is_leader and now.leader_epoch == role.leader_epoch):
        # Another leader's high watermark, maybe: it may be behind what clients have seen.
        raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER)


def _look_up_several(
    name: str, part: ListOffsetsPartition, request: ListOffsetsRequest, services: "Services"
) -> ListOffsetsPartitionResponse:
    partition = hosted_partition(services, name, part.partition_index)
    role = partition.role
    log = _readable_log(partition, request.replica_id)
    if part.timestamp == EARLIEST:
        offsets = [log.log_start_offset]
    else:
        offsets = log.offsets_before(None if part.timestamp == LATEST else part.timestamp)
    offsets = offsets[: max(part.max_num_offsets, 0)]
    if request.replica_id == CONSUMER:
        end = log.high_watermark
        readable = [offset for offset in offsets if offset <= end]
        offsets = [end, *readable] if len(readable) < len(offsets) else readable
    _check_led_since(role, partition, request.replica_id)
    return ListOffsetsPartitionResponse(
        partition_index=part.partition_index, error_code=ErrorCode.NONE, old_style_offsets=offsets
    )


def _find(
    log: "PartitionLog", role: "PartitionRole", timestamp: int, request: ListOffsetsRequest, version: int
) -> Found:
    if timestamp == LATEST:
        _check_not_behind(role, log, request, version)
        return (-1, _last_fetchable(log, request), role.leader_epoch)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        start_offset = log.log_start_offset
        return (-1, start_offset, log.epoch_for_offset(start_offset))
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return NOTHING
    found = log.max_timestamp_offset() if timestamp == MAX_TIMESTAMP else log.offset_for_time(timestamp)
    if found is None or found.offset >= _last_fetchable(log, request):
        _check_not_behind(role, log, request, version)
        return NOTHING
    return (found.timestamp_ms, found.offset, found.leader_epoch)


def _readable_log(partition: "Partition", replica_id: int) -> "PartitionLog":
    if replica_id == DEBUGGING_REPLICA and partition.log is not None:
        return partition.log
    return partition.leader_log()


def _last_fetchable(log: "PartitionLog", request: ListOffsetsRequest) -> int:
    """The end of what this client may read."""
    if request.replica_id != CONSUMER:
        return log.log_end_offset
    return log.last_stable_offset if request.isolation_level == READ_COMMITTED else log.high_watermark


def _check_not_behind(role: "PartitionRole", log: "PartitionLog", request: ListOffsetsRequest, version: int) -> None:
    """A new leader does not know what is committed before its high watermark reaches its epoch's start (KIP-207).

    Until then its end would seem to go back. Raises BrokerError OFFSET_NOT_AVAILABLE (v5), LEADER_NOT_AVAILABLE.
    """
    if request.replica_id == CONSUMER and role.epoch_start_offset > log.high_watermark:
        known = version >= OFFSET_NOT_AVAILABLE_SINCE
        raise BrokerError(ErrorCode.OFFSET_NOT_AVAILABLE if known else ErrorCode.LEADER_NOT_AVAILABLE)


def _found(part: ListOffsetsPartition, found: Found, version: int) -> ListOffsetsPartitionResponse:
    timestamp, offset, leader_epoch = found
    return ListOffsetsPartitionResponse(
        partition_index=part.partition_index,
        error_code=ErrorCode.NONE,
        timestamp=timestamp,
        offset=offset,
        leader_epoch=leader_epoch if version >= 4 else -1,
    )


def _failed(part: ListOffsetsPartition, code: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=part.partition_index, error_code=code)
