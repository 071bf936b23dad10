"""TxnOffsetCommit v0-5.

Behaviour
- Offsets that stand once the producer's transaction is committed. Topics and partitions are refused as in OffsetCommit;
  what concerns the whole group or transaction is answered for every partition.
- Before they are written, the transaction's coordinator is asked whether the group's partition of `__consumer_offsets`
  belongs to a transaction of this producer that is going on (KIP-890).
- Not done: nothing.

Versions
- v0-1: COORDINATOR_LOAD_IN_PROGRESS is said as COORDINATOR_NOT_AVAILABLE, which old producers survive (KAFKA-7296).
- v3: member, generation and instance, which fence a consumer that lost its partitions (KIP-447).
- v4: TRANSACTION_ABORTABLE. v5: the partition joins the transaction by itself (transaction protocol v2).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kavka.broker.coordination.clients import client_of
from kavka.broker.metadata.requested_topics import merge_answers, readable_topics
from kavka.broker.requests.handling import Context, handles
from kavka.broker.security.acl import Operation, group, topic, transactional_id
from kavka.cluster.promise import Promise
from kavka.coordinator.runtime.append_errors import is_too_large
from kavka.coordinator.runtime.result import Producer
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from kavka.broker.services import Services

FIRST_VERSION_THAT_KNOWS_LOADING: Final = 2


def _refused(request: TxnOffsetCommitRequest, code: ErrorCode, _message: str | None) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[_refusal(each, [part.partition_index for part in each.partitions], code) for each in request.topics]
    )


@handles(TxnOffsetCommitRequest, versions="0-5", error_answer=_refused)
def txn_offset_commit(
    request: TxnOffsetCommitRequest, context: Context, services: "Services"
) -> TxnOffsetCommitResponse | Promise[TxnOffsetCommitResponse]:
    _require_rights(request, context)
    refused_topics: list[TxnOffsetCommitResponseTopic] = []

    def refuse(asked: TxnOffsetCommitRequestTopic, indexes: Sequence[int], code: ErrorCode) -> None:
        refused_topics.append(_refusal(asked, indexes, code))

    request.topics = readable_topics(request.topics, context, services.metadata.current, refuse)
    if not request.topics:
        return TxnOffsetCommitResponse(topics=refused_topics)
    if not request.group_id:
        raise BrokerError(ErrorCode.INVALID_GROUP_ID)
    promise: Promise[TxnOffsetCommitResponse] = Promise()
    client = client_of(context)

    def answer(response: TxnOffsetCommitResponse) -> None:
        response.topics = merge_answers(refused_topics, response.topics)
        promise.complete(response)

    def refused(error: BrokerError) -> None:
        answer(_refused(request, _code_for(error, context.api_version), None))

    def admitted(code: ErrorCode, guard: int) -> None:
        if code is ErrorCode.NONE and context.generation is not services.generation:
            # What is revoked holds from the answer to who revoked it, and the coordinator may have taken seconds.
            code = _refusal_now(request, context)
        if code is not ErrorCode.NONE:
            refused(BrokerError(code))
            return
        try:
            services.groups.run(
                request.group_id, lambda shard: shard.txn_commit(request, client, answer, guard), refused
            )
        except Exception as failure:  # noqa: BLE001 - handed on to the client, who would wait for ever
            promise.fail(failure)

    def admitted_in_turn(code: ErrorCode, guard: int) -> None:
        with services.turns.new():
            admitted(code, guard)

    services.transactions.admit_offsets(
        request.transactional_id,
        Producer(request.producer_id, request.producer_epoch),
        services.groups.partition_of(request.group_id),
        context.api_version,
        admitted_in_turn,
    )
    return promise


def _require_rights(request: TxnOffsetCommitRequest, context: Context) -> None:
    """To the transaction and to the group. Raises BrokerError."""
    context.require(Operation.WRITE, transactional_id(request.transactional_id))
    context.require(Operation.READ, group(request.group_id))


def _refusal_now(request: TxnOffsetCommitRequest, context: Context) -> ErrorCode:
    """Why the client may not commit any more what it was let in with; NONE: it may."""
    try:
        _require_rights(request, context)
        for each in request.topics:
            context.require(Operation.READ, topic(each.name))
    except BrokerError as refusal:
        return refusal.code
    return ErrorCode.NONE


def _code_for(error: BrokerError, api_version: int) -> ErrorCode:
    if is_too_large(error):
        return ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    if error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and api_version < FIRST_VERSION_THAT_KNOWS_LOADING:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return error.code


def _refusal(
    asked: TxnOffsetCommitRequestTopic, indexes: Sequence[int], code: ErrorCode
) -> TxnOffsetCommitResponseTopic:
    partitions = [TxnOffsetCommitResponsePartition(partition_index=index, error_code=code) for index in indexes]
    return TxnOffsetCommitResponseTopic(name=asked.name, partitions=partitions)
