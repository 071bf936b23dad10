"""DescribeTransactions v0.

Behaviour
- State, producer, times and partitions of transactional ids that this broker coordinates (KIP-664). Each id fails by
  itself. Partitions of topics that the client may not describe are left out.
- Not done: nothing.
"""

from typing import TYPE_CHECKING

from kavka.broker.requests.handling import Context, handles
from kavka.broker.security.acl import Operation, topic, transactional_id
from kavka.cluster.promise import Promise, gather
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)

if TYPE_CHECKING:
    from kavka.broker.services import Services


def _refused(
    request: DescribeTransactionsRequest, code: ErrorCode, _message: str | None
) -> DescribeTransactionsResponse:
    from kavka.coordinator.transaction.listing import not_described

    return DescribeTransactionsResponse(
        transaction_states=[not_described(name, code) for name in request.transactional_ids]
    )


@handles(DescribeTransactionsRequest, versions="0", error_answer=_refused)
def describe_transactions(
    request: DescribeTransactionsRequest, context: Context, services: "Services"
) -> Promise[DescribeTransactionsResponse]:
    def respond(states: list[TransactionState]) -> DescribeTransactionsResponse:
        for state in states:
            state.topics = [each for each in state.topics if context.allows(Operation.DESCRIBE, topic(each.topic))]
        return DescribeTransactionsResponse(transaction_states=states)

    return gather([_describe(name, context, services) for name in request.transactional_ids], respond)


def _describe(name: str, context: Context, services: "Services") -> Promise[TransactionState]:
    from kavka.coordinator.transaction.listing import not_described

    described: Promise[TransactionState] = Promise()
    reply = described.complete
    try:
        context.require(Operation.DESCRIBE, transactional_id(name))
        if not name:
            raise BrokerError(ErrorCode.INVALID_REQUEST)
        services.transactions.run(
            name, lambda shard: shard.describe(name, reply), lambda error: reply(not_described(name, error.code))
        )
    except BrokerError as refusal:
        reply(not_described(name, refusal.code))
    return described
