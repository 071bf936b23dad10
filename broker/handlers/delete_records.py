"""DeleteRecords v0-2.

Behaviour
- Moves the log start offset of a partition that this broker leads; -1 means the high watermark. What lies below is no
  longer read at once; segments wholly below go with the next retention pass.
- OFFSET_OUT_OF_RANGE beyond the high watermark, POLICY_VIOLATION for a topic that is compacted only,
  INVALID_TOPIC_EXCEPTION for internal topics.
- The low watermark answered is the lowest log start offset of the live replicas. Where there are several, the answer
  waits until it has come to where was asked for: REQUEST_TIMED_OUT after `timeout_ms`.
- Not done: nothing.

Versions
- v2 is the first flexible one; otherwise all are alike.
"""

from typing import TYPE_CHECKING, Final

from kavka.broker.partitions.hosted import hosted_partition
from kavka.broker.partitions.partition import Partition
from kavka.broker.requests.handling import Context, handles
from kavka.broker.security.acl import Operation, topic
from kavka.cluster.promise import Promise
from kavka.cluster.topic_names import is_internal
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

if TYPE_CHECKING:
    from kavka.broker.services import Services

NO_LOW_WATERMARK: Final = -1


def _refused(request: DeleteRecordsRequest, code: ErrorCode, _message: str | None) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        throttle_time_ms=0,
        topics=[
            DeleteRecordsTopicResult(
                name=each.name, partitions=[_not_deleted(part.partition_index, code) for part in each.partitions]
            )
            for each in request.topics
        ],
    )


@handles(DeleteRecordsRequest, versions="0-2", error_answer=_refused)
def delete_records(
    request: DeleteRecordsRequest, context: Context, services: "Services"
) -> DeleteRecordsResponse | Promise[DeleteRecordsResponse]:
    results = []
    moved: list[tuple[Partition, int, DeleteRecordsPartitionResult]] = []
    for each in request.topics:
        allowed = context.allows(Operation.DELETE, topic(each.name))
        partitions = []
        for part in each.partitions:
            result = _not_deleted(part.partition_index, ErrorCode.NONE)
            try:
                if not allowed:
                    raise BrokerError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                partition, result.low_watermark = _delete(each.name, part, services)
                # The log may begin later by now, which is not what was asked of the followers.
                asked_for = part.offset if part.offset >= 0 else result.low_watermark
                moved.append((partition, asked_for, result))
            except BrokerError as error:
                result.error_code = error.code
            partitions.append(result)
        results.append(DeleteRecordsTopicResult(name=each.name, partitions=partitions))
    response = DeleteRecordsResponse(throttle_time_ms=0, topics=results)
    replicated = [each for each in moved if not each[0].role.is_sole]
    return _await_followers(replicated, response, request.timeout_ms, context, services) if replicated else response


def _not_deleted(index: int, code: ErrorCode) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=NO_LOW_WATERMARK, error_code=code)


def _delete(name: str, part: DeleteRecordsPartition, services: "Services") -> tuple[Partition, int]:
    partition = hosted_partition(services, name, part.partition_index)
    if is_internal(name):
        raise BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION)
    return partition, partition.leader_log().delete_records_before(part.offset)


def _await_followers(
    replicated: list[tuple[Partition, int, DeleteRecordsPartitionResult]],
    response: DeleteRecordsResponse,
    timeout_ms: int,
    context: Context,
    services: "Services",
) -> Promise[DeleteRecordsResponse]:
    from kavka.broker.waiting.delayed_delete_records import AwaitedStart, DelayedDeleteRecords

    awaited = [AwaitedStart(*each) for each in replicated]
    connection = context.connection
    operation = DelayedDeleteRecords(awaited, response, services.metadata, connection)
    connection.parked[operation] = None
    # Their next fetches tell the followers of the new start, though nothing was appended.
    partitions = [partition for partition, _, _ in replicated]
    for partition in partitions:
        partition.wake_all()
    services.purgatory.park(operation, [partition.high_watermark_moved for partition in partitions], timeout_ms)
    if connection.closed:
        operation.cancel()
    return operation.promise
