"""OffsetCommit v1-10.

Behaviour
- Topics and partitions that don't exist or may not be read are refused one by one; the rest goes to the group's
  coordinator, which answers when the offsets stand in `__consumer_offsets`.
- What concerns the whole group (a stale generation, an unknown member, loading) is answered for every partition.
- Not done: v0, which stored offsets in ZooKeeper.

Versions
- v1: a commit timestamp for each partition. v2-4: a retention time instead, which gives the offset its own expiry.
- v7: a static member is fenced by its instance id (KIP-345). v9: member epochs (KIP-848), GROUP_ID_NOT_FOUND and
  STALE_MEMBER_EPOCH. v10: topics by id, UNKNOWN_TOPIC_ID.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kavka.broker.coordination.clients import client_of
from kavka.broker.metadata.requested_topics import merge_answers, readable_topics
from kavka.broker.requests.handling import Context, handles
from kavka.broker.requests.prepared_commit import is_faultless, prepare_commit, refusal_of, topic_answer
from kavka.broker.security.acl import Operation, group
from kavka.cluster.promise import Promise
from kavka.coordinator.runtime.append_errors import is_too_large
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from kavka.broker.services import Services

FIRST_VERSION_WITH_TOPIC_IDS: Final = 10


def _refused(request: OffsetCommitRequest, code: ErrorCode, _message: str | None) -> OffsetCommitResponse:
    return refusal_of(request, code)


@handles(OffsetCommitRequest, versions="1-10", error_answer=_refused, is_small=True)
def offset_commit(
    request: OffsetCommitRequest, context: Context, services: "Services"
) -> OffsetCommitResponse | Promise[OffsetCommitResponse]:
    context.require(Operation.READ, group(request.group_id))
    snapshot = services.metadata.current
    if context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS:
        for each in request.topics:
            each.name = snapshot.names_by_id.get(each.topic_id, "")
    refused_topics: list[OffsetCommitResponseTopic] = []

    def refuse(asked: OffsetCommitRequestTopic, indexes: Sequence[int], code: ErrorCode) -> None:
        refused_topics.append(topic_answer(asked, indexes, code))

    request.topics = readable_topics(request.topics, context, snapshot, refuse)
    if not request.topics:
        return OffsetCommitResponse(topics=refused_topics)
    promise: Promise[OffsetCommitResponse] = Promise(effects_complete=True)
    client = client_of(context)

    def answer(response: OffsetCommitResponse) -> None:
        response.topics = merge_answers(refused_topics, response.topics)
        promise.complete(response)

    def refused(error: BrokerError) -> None:
        code = ErrorCode.INVALID_COMMIT_OFFSET_SIZE if is_too_large(error) else error.code
        answer(refusal_of(request, code))

    services.groups.run(request.group_id, lambda shard: shard.commit(request, client, answer), refused)
    answered = promise.or_response()
    if not isinstance(answered, Promise):
        if is_faultless(answered):
            prepare_commit(request, answered, context, services, snapshot)
    elif not refused_topics:
        # It stands, and waits for other replicas.
        prepare_commit(request, refusal_of(request, ErrorCode.NONE), context, services, snapshot)
    return answered
