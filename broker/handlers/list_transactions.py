"""ListTransactions v0-2.

Behaviour
- The transactional ids that this broker coordinates and the client may describe, filtered (KIP-664). As long as one of
  its shards is being loaded: COORDINATOR_LOAD_IN_PROGRESS.
- Not done: nothing.

Versions
- v1: transactions that have lasted longer than a time (KIP-994). v2: ids that match a pattern as a whole (KIP-1152), in
  a linear-time engine, of RE2's syntax as in Kafka; within the bounds of `kavka.coordinator.regular_expressions`.
"""

from functools import partial
from typing import TYPE_CHECKING

from kavka.broker.requests.handling import Context, handles
from kavka.broker.security.acl import Operation, transactional_id
from kavka.cluster.promise import Promise, gather
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)

if TYPE_CHECKING:
    from kavka.broker.services import Services
    from kavka.coordinator.runtime.result import Reply, Result
    from kavka.coordinator.transaction.shard import TransactionShard


def _refused(_request: ListTransactionsRequest, code: ErrorCode, _message: str | None) -> ListTransactionsResponse:
    return ListTransactionsResponse(error_code=code, unknown_state_filters=[], transaction_states=[])


@handles(ListTransactionsRequest, versions="0-2", error_answer=_refused)
def list_transactions(
    request: ListTransactionsRequest, context: Context, services: "Services"
) -> ListTransactionsResponse | Promise[ListTransactionsResponse]:
    from kavka.coordinator.transaction.listing import id_filter, unknown_states

    matching = id_filter(request.transactional_id_pattern)
    unknown = unknown_states(request)

    def respond(of_shards: list[list[TransactionState] | ErrorCode]) -> ListTransactionsResponse:
        found: list[TransactionState] = []
        for of_shard in of_shards:
            if not isinstance(of_shard, ErrorCode):
                found.extend(of_shard)
            elif of_shard is not ErrorCode.NOT_COORDINATOR:
                return _refused(request, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, None)
        allowed = [
            state for state in found if context.allows(Operation.DESCRIBE, transactional_id(state.transactional_id))
        ]
        return ListTransactionsResponse(
            error_code=ErrorCode.NONE, unknown_state_filters=unknown, transaction_states=matching(allowed)
        )

    runtime = services.transactions.existing_runtime
    answers: list[Promise[list[TransactionState] | ErrorCode]] = []
    if runtime is not None:
        for partition in list(runtime.states()):
            answer: Promise[list[TransactionState] | ErrorCode] = Promise()
            answers.append(answer)
            runtime.run(partition, partial(_list, request, answer.complete), partial(_not_listed, answer.complete))
    return gather(answers, respond)


def _list(request: ListTransactionsRequest, reply: "Reply", shard: "TransactionShard") -> "Result":
    return shard.list(request, reply)


def _not_listed(reply: "Reply", error: BrokerError) -> None:
    reply(error.code)
