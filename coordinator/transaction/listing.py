"""DescribeTransactions and ListTransactions (KIP-664, KIP-994, KIP-1152)."""

import time
from collections.abc import Callable, Iterable
from itertools import groupby
from operator import itemgetter
from typing import Final

from kavka.coordinator.regular_expressions import InvalidExpressionError, compile_expression
from kavka.coordinator.transaction.metadata import TransactionMetadata
from kavka.coordinator.transaction.states import BY_TEXT
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.describe_transactions import TopicData
from kavka.protocol.messages.describe_transactions import TransactionState as Described
from kavka.protocol.messages.list_transactions import ListTransactionsRequest
from kavka.protocol.messages.list_transactions import TransactionState as Listed

MATCHING_S: Final = 2.0
MATCHING_PER_ID_S: Final = 10e-6
"""A pattern takes two microseconds for most ids, but up to a quarter of a second where an id has 32 KiB."""


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
    request: ListTransactionsRequest, transactions: Iterable[TransactionMetadata], now_ms: int
) -> list[Listed]:
    """Those that pass all filters but the pattern, which is left to an `id_filter`: it may take its time."""
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
    ]


def unknown_states(request: ListTransactionsRequest) -> list[str]:
    """The names in the state filter that are no state's."""
    return [text for text in request.state_filters if text not in BY_TEXT]


def id_filter(
    pattern: str | None, thread_time_s: Callable[[], float] = time.thread_time
) -> Callable[[list[Listed]], list[Listed]]:
    """What keeps those of a list whose ids match the client's pattern as a whole; all, where there is none.

    Made once a request: to compile takes far longer than to match. Raises BrokerError INVALID_REGULAR_EXPRESSION.
    So does the filter that is given back, where it takes too long. It is to be called with no lock held.
    """
    if not pattern:
        return lambda found: found
    try:
        compiled = compile_expression(pattern)
    except InvalidExpressionError as error:
        raise BrokerError(ErrorCode.INVALID_REGULAR_EXPRESSION, f"the pattern is refused: {error}") from None

    def matching(found: list[Listed]) -> list[Listed]:
        ends_s = thread_time_s() + MATCHING_S + MATCHING_PER_ID_S * len(found)
        matched: list[Listed] = []
        for listed in found:
            if compiled.fullmatch(listed.transactional_id.encode()) is not None:
                matched.append(listed)
            if thread_time_s() > ends_s:
                raise BrokerError(ErrorCode.INVALID_REGULAR_EXPRESSION, "the pattern takes too long to match")
        return matched

    return matching
