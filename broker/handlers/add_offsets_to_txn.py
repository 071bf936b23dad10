"""AddOffsetsToTxn v0-4.

Behaviour
- Has the partition of `__consumer_offsets` that a group belongs to take part in the producer's transaction, as
  AddPartitionsToTxn would. Producers of transaction version 2 don't send it: TxnOffsetCommit v5 does this by itself.
- Not done: nothing.

Versions
- v2: PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH. v4: TRANSACTION_ABORTABLE.
"""

from typing import TYPE_CHECKING, Final

from kavka.broker.requests.handling import Context, handles
from kavka.broker.security.acl import Operation, group, transactional_id
from kavka.cluster.promise import Promise
from kavka.cluster.topic_names import GROUP_METADATA_TOPIC
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

if TYPE_CHECKING:
    from kavka.broker.services import Services

FENCED_SINCE: Final = 2


def _refused(_request: AddOffsetsToTxnRequest, code: ErrorCode, _message: str | None) -> AddOffsetsToTxnResponse:
    return AddOffsetsToTxnResponse(error_code=code)


@handles(AddOffsetsToTxnRequest, versions="0-4", error_answer=_refused)
def add_offsets_to_txn(
    request: AddOffsetsToTxnRequest, context: Context, services: "Services"
) -> Promise[AddOffsetsToTxnResponse]:
    from kavka.coordinator.runtime.result import Producer

    context.require(Operation.WRITE, transactional_id(request.transactional_id))
    context.require(Operation.READ, group(request.group_id))
    if not request.transactional_id:
        raise BrokerError(ErrorCode.INVALID_REQUEST)
    promise: Promise[AddOffsetsToTxnResponse] = Promise()
    api_version = context.api_version

    def reply(code: ErrorCode) -> None:
        if code is ErrorCode.PRODUCER_FENCED and api_version < FENCED_SINCE:
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        promise.complete(AddOffsetsToTxnResponse(error_code=code))

    producer = Producer(request.producer_id, request.producer_epoch)
    partition = (GROUP_METADATA_TOPIC, services.groups.partition_of(request.group_id))
    services.transactions.run(
        request.transactional_id,
        lambda shard: shard.add(request.transactional_id, producer, [partition], 0, reply),
        lambda error: reply(error.code),
    )
    return promise
