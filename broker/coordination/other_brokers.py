"""What transactions need of other brokers of a cluster; a broker that stands alone has none."""

from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

from kavka.cluster.promise import Promise
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnTransaction
from kavka.protocol.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse

TopicPartition: TypeAlias = tuple[str, int]
Codes: TypeAlias = Mapping[TopicPartition, ErrorCode]
Withdrawn: TypeAlias = Callable[[], bool]


class OtherBrokers(Protocol):
    """Threads: any, with no lock held. Promises are settled on a thread that may append and wait for locks."""

    def write_markers(
        self, broker_id: int, request: WriteTxnMarkersRequest, is_withdrawn: Withdrawn
    ) -> Promise[WriteTxnMarkersResponse]:
        """See `markers.MarkerChannel`. Fails with BrokerError: no way to it, no answer, withdrawn before."""

    def add_partitions(self, broker_id: int, transaction: AddPartitionsToTxnTransaction) -> Promise[Codes]:
        """Ask a transaction coordinator; see AddPartitionsToTxn v4 (KIP-890). Has a code for each partition.

        NETWORK_EXCEPTION or COORDINATOR_NOT_AVAILABLE where there is no answer: it may have been done. Never fails.
        """
