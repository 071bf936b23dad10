"""What transactions make brokers ask each other: markers at partitions' leaders, partitions at the coordinator.

WriteTxnMarkers     a coordinator has the decision written where the transaction's partitions are led
AddPartitionsToTxn  a leader asks whether a partition takes part in a transaction, or has it take part (KIP-890)
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from kavka.broker.coordination.other_brokers import Codes, TopicPartition, Withdrawn
from kavka.broker.interbroker.batched_requests import Answer, BatchedRequests
from kavka.broker.interbroker.broker_requests import BrokerRequests
from kavka.broker.interbroker.telling import tell
from kavka.cluster.promise import Promise
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTransaction,
)
from kavka.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

if TYPE_CHECKING:
    from kavka.broker.interbroker.inter_broker import InterBroker
    from kavka.client import Node

OF_BROKERS: Final = (4, 5)
"""AddPartitionsToTxn: the versions in which brokers send it."""
MARKERS: Final = "markers"
TRANSACTIONS: Final = "transactions"
LANES: Final = frozenset({MARKERS, TRANSACTIONS})
"""Of connections to brokers, whoever controls them."""
UNANSWERED: Final = frozenset({ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NETWORK_EXCEPTION})

Execute = Callable[[Callable[[], None]], None]


class TransactionRequests:
    """Implements `OtherBrokers`.

    Threads: any. Answers are taken by `execute`: on the `inter-broker` thread they would hold up everybody's.
    """

    def __init__(
        self,
        inter_broker: "InterBroker",
        broker_node: "Callable[[int], Node | None]",
        execute: Execute,
        *,
        timeout_ms: float,
    ) -> None:
        """`broker_node(id)`: where a broker is reached. `execute` runs a piece of work that may append, soon."""
        self._broker_node: Final = broker_node
        self._execute: Final = execute
        self._marker_requests: Final = BrokerRequests(inter_broker, lane=MARKERS, timeout_ms=timeout_ms)
        self._added_requests: Final = BrokerRequests(inter_broker, lane=TRANSACTIONS, timeout_ms=timeout_ms)
        self._markers: Final = BatchedRequests[WritableTxnMarker](self._send_markers)
        self._added: Final = BatchedRequests[AddPartitionsToTxnTransaction](self._send_added)

    def write_markers(
        self, broker_id: int, request: WriteTxnMarkersRequest, is_withdrawn: Withdrawn
    ) -> Promise[WriteTxnMarkersResponse]:
        """See OtherBrokers; a request of one marker."""
        (marker,) = request.markers
        promise: Promise[WriteTxnMarkersResponse] = Promise()

        def answered(answer: WriteTxnMarkersResponse | BrokerError) -> None:
            if isinstance(answer, BrokerError):
                promise.fail(answer)
                return
            own = [each for each in answer.markers if each.producer_id == marker.producer_id]
            promise.complete(WriteTxnMarkersResponse(markers=own))

        self._markers.put(broker_id, marker.producer_id, marker, answered, is_withdrawn)
        return promise

    def add_partitions(self, broker_id: int, transaction: AddPartitionsToTxnTransaction) -> Promise[Codes]:
        """See OtherBrokers."""
        promise: Promise[Codes] = Promise()
        self._added.put(
            broker_id,
            transaction.transactional_id,
            transaction,
            lambda answer: promise.complete(_codes_of(transaction, answer)),
        )
        return promise

    def close(self) -> None:
        """Answer what waits to be sent; nothing is sent any more."""
        self._marker_requests.close()
        self._added_requests.close()

    def _send_markers(self, broker_id: int, markers: list[WritableTxnMarker], answer: Answer) -> None:
        self._send(self._marker_requests, broker_id, WriteTxnMarkersRequest(markers=markers), answer, None)

    def _send_added(self, broker_id: int, transactions: list[AddPartitionsToTxnTransaction], answer: Answer) -> None:
        request = AddPartitionsToTxnRequest(transactions=transactions)
        self._send(self._added_requests, broker_id, request, answer, OF_BROKERS)

    def _send(
        self,
        requests: BrokerRequests,
        broker_id: int,
        request: Any,
        answer: Answer,
        versions: tuple[int, int] | None,
    ) -> None:
        def answered(outcome: Any) -> None:
            self._execute(lambda: tell(answer, outcome))

        node = self._broker_node(broker_id)
        if node is None:
            answered(BrokerError(ErrorCode.BROKER_NOT_AVAILABLE, f"broker {broker_id} is not known to be alive"))
        else:
            requests.send(node, request, answered, versions=versions)


def _codes_of(transaction: AddPartitionsToTxnTransaction, answer: AddPartitionsToTxnResponse | BrokerError) -> Codes:
    """Each partition's code, whatever the answer lacks."""
    asked: list[TopicPartition] = [(topic.name, index) for topic in transaction.topics for index in topic.partitions]
    if isinstance(answer, BrokerError):
        return dict.fromkeys(asked, _of_failure(answer.code, is_verified=transaction.verify_only))
    if answer.error_code != ErrorCode.NONE:
        return dict.fromkeys(asked, _of_refusal(answer.error_code))
    answered = {
        (topic.name, partition.partition_index): _known(partition.partition_error_code)
        for result in answer.results_by_transaction
        if result.transactional_id == transaction.transactional_id
        for topic in result.topic_results
        for partition in topic.results_by_partition
    }
    return {each: answered.get(each, ErrorCode.UNKNOWN_SERVER_ERROR) for each in asked}


def _of_failure(code: ErrorCode, *, is_verified: bool) -> ErrorCode:
    if code is ErrorCode.UNSUPPORTED_VERSION and is_verified:
        # A coordinator from before KIP-890: its transactions have never been verified.
        return ErrorCode.NONE
    if code in UNANSWERED:
        return ErrorCode.NETWORK_EXCEPTION
    return ErrorCode.COORDINATOR_NOT_AVAILABLE if code is ErrorCode.BROKER_NOT_AVAILABLE else code


def _of_refusal(number: int) -> ErrorCode:
    code = _known(number)
    # It is this broker that lacks the right; a producer would take it for itself.
    return ErrorCode.INVALID_TXN_STATE if code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED else code


def _known(number: int) -> ErrorCode:
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
