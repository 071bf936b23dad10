"""DeleteRecords v0-2.

Behaviour
- Moves the log start offset of a partition that this broker leads; -1 means the high watermark. What lies below is no
  longer read at once; segments wholly below go with the next retention pass.
- OFFSET_OUT_OF_RANGE beyond the high watermark, POLICY_VIOLATION for a topic that is compacted only,
  INVALID_TOPIC_EXCEPTION for internal topics.
- The low watermark answered is the log start offset of this replica, the only one there is.
- Not done: waiting for followers to have moved theirs.

Versions
- v2 is the first flexible one; otherwise all are alike.
"""

from typing import TYPE_CHECKING, Final

from kavka.broker.partitions.hosted import hosted_partition
from kavka.broker.requests.handling import Context, handles
from kavka.broker.security.acl import Operation, topic
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


@handles(DeleteRecordsRequest, versions="0-2")
def delete_records(request: DeleteRecordsRequest, context: Context, services: "Services") -> DeleteRecordsResponse:
    results = []
    for each in request.topics:
        allowed = context.allows(Operation.DELETE, topic(each.name))
        partitions = []
        for part in each.partitions:
            try:
                if not allowed:
                    raise BrokerError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                low_watermark, code = _delete(each.name, part, services), ErrorCode.NONE
            except BrokerError as error:
                low_watermark, code = NO_LOW_WATERMARK, error.code
            partitions.append(
                DeleteRecordsPartitionResult(
                    partition_index=part.partition_index, low_watermark=low_watermark, error_code=code
                )
            )
        results.append(DeleteRecordsTopicResult(name=each.name, partitions=partitions))
    return DeleteRecordsResponse(throttle_time_ms=0, topics=results)


def _delete(name: str, part: DeleteRecordsPartition, services: "Services") -> int:
    partition = hosted_partition(services, name, part.partition_index)
    if is_internal(name):
        raise BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION)
    return partition.leader_log().delete_records_before(part.offset)
