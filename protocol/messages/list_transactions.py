"""ListTransactions (key 66): the transactions that a broker coordinates (KIP-664).

v0 is flexible already · v1 filter by duration (KIP-994) · v2 filter by a regular expression (KIP-1152)
"""

from kavka.protocol.schema import Int16, Int32, Int64, NullableString, Request, Response, String, Struct, since


class ListTransactionsRequest(Request, key=66, versions="0-2", flexible="0+"):
    state_filters: list[String]
    producer_id_filters: list[Int64]
    duration_filter: Int64 = since(1, default=-1)
    transactional_id_pattern: NullableString = since(2, default=None)


class TransactionState(Struct):
    transactional_id: String
    producer_id: Int64
    transaction_state: String


class ListTransactionsResponse(Response, key=66, versions="0-2", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    unknown_state_filters: list[String]
    transaction_states: list[TransactionState]
