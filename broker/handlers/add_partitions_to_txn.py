"""AddPartitionsToTxn v0-5.

Behaviour
- Clients have partitions take part in a transaction, all or none: with one that is refused the others are told
  OPERATION_NOT_ATTEMPTED. Producers of transaction version 2 don't send it: Produce v12 does this by itself.
- From v4 on only brokers send it, for several transactions at once: to add partitions, or just to learn whether they
  take part (KIP-890).
- Not done: nothing.

Versions
- v2: PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH. v4: batches of transactions, verification. v5:
  TRANSACTION_ABORTABLE.
"""

from typing import TYPE_CHECKING, Final, TypeAlias

from kavka.broker.requests.handling import Context, handles
from kavka.broker.security.acl import CLUSTER, Operation, topic, transactional_id
from kavka.cluster.promise import Promise, gather
from kavka.cluster.topic_names import is_internal
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

if TYPE_CHECKING:
    from kavka.broker.services import Services

BROKERS_SINCE: Final = 4
FENCED_SINCE: Final = 2
VERSION_2: Final = 2

Codes: TypeAlias = dict[tuple[str, int], ErrorCode]


def _refused(request: AddPartitionsToTxnRequest, code: ErrorCode, _message: str | None) -> AddPartitionsToTxnResponse:
    # Before v4 there is no place for one error for all: each partition gets it. From v4 on nothing else is said.
    return AddPartitionsToTxnResponse(
        error_code=code,
        results_by_topic_v3_and_below=_results(
            request.v3_and_below_topics, dict.fromkeys(_partitions(request.v3_and_below_topics), code)
        ),
    )


@handles(AddPartitionsToTxnRequest, versions="0-5", error_answer=_refused)
def add_partitions_to_txn(
    request: AddPartitionsToTxnRequest, context: Context, services: "Services"
) -> Promise[AddPartitionsToTxnResponse]:
    if context.api_version >= BROKERS_SINCE:
        context.require(Operation.CLUSTER_ACTION, CLUSTER)
        transactions = request.transactions
    else:
        transactions = [
            AddPartitionsToTxnTransaction(
                transactional_id=request.v3_and_below_transactional_id,
                producer_id=request.v3_and_below_producer_id,
                producer_epoch=request.v3_and_below_producer_epoch,
                verify_only=False,
                topics=request.v3_and_below_topics,
            )
        ]

    def respond(of_transactions: list[Codes]) -> AddPartitionsToTxnResponse:
        results = [_results(each.topics, codes) for each, codes in zip(transactions, of_transactions, strict=True)]
        if context.api_version < BROKERS_SINCE:
            return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results[0])
        return AddPartitionsToTxnResponse(
            error_code=ErrorCode.NONE,
            results_by_transaction=[
                AddPartitionsToTxnResult(transactional_id=each.transactional_id, topic_results=topics)
                for each, topics in zip(transactions, results, strict=True)
            ],
        )

    # What it adds is in the coordinator's log by now, and counts for whatever comes next.
    asked = [_ask(transaction, context, services) for transaction in transactions]
    return gather(asked, respond, effects_complete=True)


def _ask(transaction: AddPartitionsToTxnTransaction, context: Context, services: "Services") -> Promise[Codes]:
    """One transaction: what is refused without the coordinator, then the coordinator."""
    from kavka.coordinator.runtime.result import Producer

    answer: Promise[Codes] = Promise()
    done = answer.complete
    partitions = _partitions(transaction.topics)
    name = transaction.transactional_id
    from_client = context.api_version < BROKERS_SINCE
    if from_client and not context.allows(Operation.WRITE, transactional_id(name)):
        done(dict.fromkeys(partitions, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
        return answer
    refused = _refusals(partitions, context, services, from_client=from_client)
    if refused:
        done({**dict.fromkeys(partitions, ErrorCode.OPERATION_NOT_ATTEMPTED), **refused})
        return answer
    if not name:
        done(dict.fromkeys(partitions, ErrorCode.INVALID_REQUEST))
        return answer

    def all_get(code: ErrorCode) -> None:
        if code is ErrorCode.PRODUCER_FENCED and context.api_version < FENCED_SINCE:
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        done(dict.fromkeys(partitions, code))

    producer = Producer(transaction.producer_id, transaction.producer_epoch)
    transactions = services.transactions
    try:
        if transaction.verify_only:
            transactions.run(
                name, lambda shard: shard.verify(name, producer, partitions, done), lambda error: all_get(error.code)
            )
        else:
            client_version = 0 if from_client else VERSION_2
            transactions.run(
                name,
                lambda shard: shard.add(name, producer, partitions, client_version, all_get),
                lambda error: all_get(error.code),
            )
    except BrokerError as refusal:
        all_get(refusal.code)
    return answer


def _refusals(partitions: list[tuple[str, int]], context: Context, services: "Services", *, from_client: bool) -> Codes:
    """The partitions that cannot take part in any transaction of this client's."""
    refused: Codes = {}
    snapshot = services.metadata.current
    denied: set[str] = set()
    if from_client:
        # Internal topics are the coordinators' own: AddOffsetsToTxn and TxnOffsetCommit add them.
        denied = {
            name
            for name in dict.fromkeys(name for name, _ in partitions)
            if is_internal(name) or not context.allows(Operation.WRITE, topic(name))
        }
    for name, index in partitions:
        if name in denied:
            refused[name, index] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif snapshot.partition(name, index) is None:
            refused[name, index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return refused


def _partitions(topics: list[AddPartitionsToTxnTopic]) -> list[tuple[str, int]]:
    return [(each.name, index) for each in topics for index in each.partitions]


def _results(topics: list[AddPartitionsToTxnTopic], codes: Codes) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=each.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=codes[each.name, index])
                for index in each.partitions
            ],
        )
        for each in topics
    ]
