"""OffsetDelete v0.

Behaviour
- Deletes a group's offsets of topics that none of its members is subscribed to (KIP-496); of others
  GROUP_SUBSCRIBED_TO_TOPIC. Partitions without an offset are answered without an error.
- The group itself stays, until its last offset has expired.
- Not done: nothing.

Versions
- There is only v0, and it is never flexible.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kavka.broker.metadata.requested_topics import merge_answers, readable_topics
from kavka.broker.requests.handling import Context, handles
from kavka.broker.security.acl import Operation, group
from kavka.cluster.promise import Promise
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

if TYPE_CHECKING:
    from kavka.broker.services import Services


@handles(OffsetDeleteRequest, versions="0")
def offset_delete(
    request: OffsetDeleteRequest, context: Context, services: "Services"
) -> OffsetDeleteResponse | Promise[OffsetDeleteResponse]:
    context.require(Operation.DELETE, group(request.group_id))
    refused: list[OffsetDeleteResponseTopic] = []

    def refuse(asked: OffsetDeleteRequestTopic, indexes: Sequence[int], code: ErrorCode) -> None:
        partitions = [OffsetDeleteResponsePartition(partition_index=index, error_code=code) for index in indexes]
        refused.append(OffsetDeleteResponseTopic(name=asked.name, partitions=partitions))

    request.topics = readable_topics(request.topics, context, services.metadata.current, refuse)
    if not request.topics:
        return OffsetDeleteResponse(error_code=ErrorCode.NONE, topics=refused)
    if not request.group_id:
        raise BrokerError(ErrorCode.INVALID_GROUP_ID)
    promise: Promise[OffsetDeleteResponse] = Promise(effects_complete=True)

    def answer(response: OffsetDeleteResponse) -> None:
        response.topics = merge_answers(refused, response.topics)
        promise.complete(response)

    def fail(error: BrokerError) -> None:
        # The group's error stands for everything in the request.
        promise.complete(OffsetDeleteResponse(error_code=error.code, topics=[]))

    services.groups.run(request.group_id, lambda shard: shard.delete_offsets(request, answer), fail)
    return promise
