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
    return DescribeTransactionsResponse(transaction_states=[_unknown(name, code) for name in request.transactional_ids])


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
    described: Promise[TransactionState] = Promise()
    reply = described.complete
    try:
        context.require(Operation.DESCRIBE, transactional_id(name))
        if not name:
            raise BrokerError(ErrorCode.INVALID_REQUEST)
        services.transactions.run(
            name, lambda shard: shard.describe(name, reply), lambda error: reply(_unknown(name, error.code))
        )
    except BrokerError as refusal:
        reply(_unknown(name, refusal.code))
    return described


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
