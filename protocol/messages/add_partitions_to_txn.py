"""AddPartitionsToTxn (key 24): partitions take part in a transaction.

v3 flexible · v4 brokers verify several transactions at once (KIP-890) · v5 TRANSACTION_ABORTABLE
"""

from kavka.protocol.schema import Bool, Int16, Int32, Int64, Request, Response, String, Struct, since


class AddPartitionsToTxnTopic(Struct):
    name: String
    partitions: list[Int32]


class AddPartitionsToTxnTransaction(Struct):
    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    verify_only: Bool
    topics: list[AddPartitionsToTxnTopic]


class AddPartitionsToTxnRequest(Request, key=24, versions="0-5", flexible="3+"):
    transactions: list[AddPartitionsToTxnTransaction] = since(4)
    v3_and_below_transactional_id: String = since(0, until=3)
    v3_and_below_producer_id: Int64 = since(0, until=3)
    v3_and_below_producer_epoch: Int16 = since(0, until=3)
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = since(0, until=3)


class AddPartitionsToTxnPartitionResult(Struct):
    partition_index: Int32
    partition_error_code: Int16


class AddPartitionsToTxnTopicResult(Struct):
    name: String
    results_by_partition: list[AddPartitionsToTxnPartitionResult]


class AddPartitionsToTxnResult(Struct):
    transactional_id: String
    topic_results: list[AddPartitionsToTxnTopicResult]


class AddPartitionsToTxnResponse(Response, key=24, versions="0-5", flexible="3+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = since(4, ignorable=True)
    results_by_transaction: list[AddPartitionsToTxnResult] = since(4)
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = since(0, until=3)
