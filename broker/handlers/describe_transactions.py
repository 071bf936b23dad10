"""DescribeTransactions v0.

Behaviour
- State, producer, times and partitions of transactional ids that this broker coordinates (KIP-664). Each id fails by
  itself. Partitions of topics that the client may not describe are left out.
- Not done: nothing.
"""

from functools import partial
from typing import TYPE_CHECKING

from kavka.broker.requests.handling import Context, handles
from kavka.broker.security.acl import Operation, topic, transactional_id
from kavka.broker.waiting.gathering import Gathering
from kavka.broker.waiting.promise import Promise
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from kavka.broker.services import Services
    from kavka.coordinator.runtime.result import Result
    from kavka.coordinator.transaction.shard import TransactionShard


def _refused(
    request: DescribeTransactionsRequest, code: ErrorCode, _message: str | None
) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(transaction_states=[_unknown(name, code) for name in request.transactional_ids])


@handles(DescribeTransactionsRequest, versions="0", error_answer=_refused)
def describe_transactions(
    request: DescribeTransactionsRequest, context: Context, services: "Services"
) -> Promise[DescribeTransactionsResponse]:
    promise: Promise[DescribeTransactionsResponse] = Promise()

    def gathered(states: list[TransactionState]) -> None:
        for state in states:
            state.topics = [each for each in state.topics if context.allows(Operation.DESCRIBE, topic(each.topic))]
        promise.complete(DescribeTransactionsResponse(transaction_states=states))

    gathering: Gathering[TransactionState] = Gathering(len(request.transactional_ids), gathered)
    for place, name in enumerate(request.transactional_ids):
        _describe(name, context, services, partial(gathering.put, place))
    return promise


def _describe(name: str, context: Context, services: "Services", reply: "Callable[[TransactionState], None]") -> None:
    def operation(shard: "TransactionShard") -> "Result":
        return shard.describe(name, reply)

    try:
        context.require(Operation.DESCRIBE, transactional_id(name))
        if not name:
            raise BrokerError(ErrorCode.INVALID_REQUEST)
        services.transactions.run(name, operation, lambda error: reply(_unknown(name, error.code)))
    except BrokerError as refusal:
        reply(_unknown(name, refusal.code))


def _unknown(name: str, code: ErrorCode) -> TransactionState:
    return TransactionState(
        error_code=code,
        transactional_id=name,
        transaction_state="",
        transaction_timeout_ms=0,
        transaction_start_time_ms=0,
        producer_id=0,
        producer_epoch=0,
        topics=[],
    )
