"""EndTxn v0-5.

Behaviour
- Commits or aborts the producer's transaction. The answer comes when the decision stands in the log; markers follow,
  and until they stand the id's next requests are told CONCURRENT_TRANSACTIONS.
- Sent again, it is answered as the first time: by its epoch from v5 on, before that by the state alone.
- Not done: nothing.

Versions
- v2: PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH. v4: TRANSACTION_ABORTABLE.
- v5: transactions of version 2 (KIP-890). Each end bumps the epoch, and the answer says with which producer id and
  epoch the producer goes on; a transaction without partitions may be aborted.
"""

from typing import TYPE_CHECKING, Final

from kavka.broker.requests.handling import Context, handles
from kavka.broker.security.acl import Operation, transactional_id
from kavka.cluster.promise import Promise
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse

if TYPE_CHECKING:
    from kavka.broker.services import Services

FENCED_SINCE: Final = 2
VERSION_2_SINCE: Final = 5


def _refused(_request: EndTxnRequest, code: ErrorCode, _message: str | None) -> EndTxnResponse:
    return EndTxnResponse(error_code=code)


@handles(EndTxnRequest, versions="0-5", error_answer=_refused)
def end_txn(request: EndTxnRequest, context: Context, services: "Services") -> Promise[EndTxnResponse]:
    context.require(Operation.WRITE, transactional_id(request.transactional_id))
    if not request.transactional_id:
        raise BrokerError(ErrorCode.INVALID_REQUEST)
    promise: Promise[EndTxnResponse] = Promise()
    api_version = context.api_version

    def reply(answer: EndTxnResponse | ErrorCode) -> None:
        if not isinstance(answer, ErrorCode):
            promise.complete(answer)
        elif answer is ErrorCode.PRODUCER_FENCED and api_version < FENCED_SINCE:
            promise.complete(EndTxnResponse(error_code=ErrorCode.INVALID_PRODUCER_EPOCH))
        else:
            promise.complete(EndTxnResponse(error_code=answer))

    client_version = 2 if api_version >= VERSION_2_SINCE else 0
    services.transactions.run(
        request.transactional_id,
        lambda shard: shard.end(request, client_version, reply),
        lambda error: reply(error.code),
    )
    return promise
