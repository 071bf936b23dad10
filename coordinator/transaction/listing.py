"""DescribeTransactions and ListTransactions (KIP-664, KIP-994, KIP-1152)."""

from collections.abc import Callable, Iterable
from itertools import groupby
from operator import itemgetter

from kavka.coordinator.regular_expressions import InvalidExpressionError, compile_expression
from kavka.coordinator.transaction.metadata import TransactionMetadata
from kavka.coordinator.transaction.states import BY_TEXT
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.describe_transactions import TopicData
from kavka.protocol.messages.describe_transactions import TransactionState as Described
from kavka.protocol.messages.list_transactions import ListTransactionsRequest
from kavka.protocol.messages.list_transactions import TransactionState as Listed


def describe_transaction(transactional_id: str, transaction: TransactionMetadata | None) -> Described:
    """One id's entry; TRANSACTIONAL_ID_NOT_FOUND in it if nothing is known."""
    if transaction is None:
        return not_described(transactional_id, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    return Described(
        error_code=ErrorCode.NONE,
        transactional_id=transactional_id,
        transaction_state=transaction.state.text,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.start_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        topics=[
            TopicData(topic=topic, partitions=[index for _, index in group])
            for topic, group in groupby(sorted(transaction.partitions), key=itemgetter(0))
        ],
    )


def not_described(transactional_id: str, code: ErrorCode) -> Described:
    """The entry of an id that can't be described."""
    return Described(
        error_code=code,
        transactional_id=transactional_id,
        transaction_state="",
        transaction_timeout_ms=0,
        transaction_start_time_ms=0,
        producer_id=0,
        producer_epoch=0,
        topics=[],
    )


def list_transactions(
    request: ListTransactionsRequest,
    matches: Callable[[str], bool],
    transactions: Iterable[TransactionMetadata],
    now_ms: int,
) -> list[Listed]:
    """Those that pass all filters. `matches`: the request's pattern, as an `id_filter`."""
    states = {BY_TEXT[text] for text in request.state_filters if text in BY_TEXT}
    producer_ids = set(request.producer_id_filters)
    longer_than_ms = request.duration_filter
    return [
        Listed(
            transactional_id=transaction.transactional_id,
            producer_id=transaction.producer_id,
            transaction_state=transaction.state.text,
        )
        for transaction in transactions
        if (not request.state_filters or transaction.state in states)
        and (not producer_ids or transaction.producer_id in producer_ids)
        and (longer_than_ms < 0 or now_ms - transaction.start_ms > longer_than_ms)
        and matches(transaction.transactional_id)
    ]


def unknown_states(request: ListTransactionsRequest) -> list[str]:
    """The names in the state filter that are no state's."""
    return [text for text in request.state_filters if text not in BY_TEXT]


def id_filter(pattern: str | None) -> Callable[[str], bool]:
    """Whether an id matches the client's pattern as a whole; any does where there is none.

    Made once a request: to compile takes far longer than to match. Raises BrokerError INVALID_REGULAR_EXPRESSION.
    """
    if not pattern:
        return lambda _: True
    try:
        compiled = compile_expression(pattern)
    except InvalidExpressionError as error:
        raise BrokerError(ErrorCode.INVALID_REGULAR_EXPRESSION, f"the pattern is refused: {error}") from None
    return lambda transactional_id: compiled.fullmatch(transactional_id.encode()) is not None
