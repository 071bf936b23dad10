"""Before a transaction's first batch on a partition: ask its coordinator whether the partition takes part (KIP-890).

Produce v12 and later has the partition added by that; older producers have said so in AddPartitionsToTxn, and it is
only verified. Once a partition has an open transaction of the producer, nothing is asked any more.
"""

from collections.abc import Callable
from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, Final, NamedTuple

from kavka.broker.coordination.transactions import told_to_producer
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.records.header import (
    PRODUCER_POSITION,
    is_transactional,
    unpack_producer,
    unpack_producer_and_sequence,
)
from kavka.storage.verification_guards import NEEDS_NO_VERIFICATION, NOT_VERIFIED

if TYPE_CHECKING:
    from kavka.broker.coordination.other_brokers import Codes
    from kavka.broker.partitions.partition import Partition
    from kavka.broker.services import Services
    from kavka.protocol.messages.produce import PartitionProduceData, PartitionProduceResponse, ProduceRequest

ADDS_SINCE: Final = 12
ABORTABLE_SINCE: Final = 11
CONCURRENT_SINCE: Final = 12
"""Who begins a transaction right behind the last one's end is told so often, and knows what to do (KAFKA-18662)."""
RETRIED_AS_NOT_ENOUGH_REPLICAS: Final = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""What producers may not know how to retry; NOT_ENOUGH_REPLICAS they do, without asking for metadata."""
WORDS: Final = {
    ErrorCode.INVALID_TXN_STATE: "the partition was not added to the transaction",
    ErrorCode.NOT_ENOUGH_REPLICAS: "the transaction's coordinator cannot say now whether the partition takes part",
}
"""Where the code alone would mislead."""


class UnverifiedBatch(NamedTuple):
    """A batch that waits for its coordinator."""

    partition: "Partition"
    data: "PartitionProduceData"
    answers: "list[PartitionProduceResponse]"
    place: int
    """In `answers`, where its own belongs."""
    guard: int


class ProduceVerification:
    """The transactional batches of one produce request.

    Threads: the I/O thread that runs the request, until `ask` returns; then one that may append.
    """

    __slots__ = ("_producer", "_services", "_version", "unverified")

    def __init__(self, services: "Services", request: "ProduceRequest", version: int) -> None:
        """Raises BrokerError INVALID_PRODUCER_ID_MAPPING for batches of several producers."""
        self._services = services
        self._version = version
        producers = {
            unpack_producer(data.records, PRODUCER_POSITION)
            for asked in request.topic_data
            for data in asked.partition_data
            if is_transactional(data.records)
        }
        if len(producers) > 1:
            raise BrokerError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        self._producer: tuple[int, int] = next(iter(producers), (-1, -1))
        self.unverified: list[UnverifiedBatch] = []

    def guard_of(self, partition: "Partition", records: memoryview) -> int:
        """The guard to append with. Above 0: once the coordinator has said yes, see `ask`.

        Raises BrokerError NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR.
        """
        adds = self._version >= ADDS_SINCE
        if not adds and not self._services.config.current.transaction_partition_verification_enable:
            return NEEDS_NO_VERIFICATION
        log = partition.leader_log()
        producer_id, epoch, sequence = unpack_producer_and_sequence(records, PRODUCER_POSITION)
        if log.producers.has_open_transaction(producer_id, epoch):
            return NOT_VERIFIED
        return log.verify(producer_id, epoch, sequence, self._services.now_ms(), has_own_epoch=adds)

    def withdraw(self, batch: UnverifiedBatch) -> None:
        """The batch will not be appended."""
        log = batch.partition.log
        if log is not None:
            log.withdraw(self._producer[0], batch.guard)

    def ask(
        self, transactional_id: str, done: Callable[[UnverifiedBatch, ErrorCode], None], end: Callable[[], object]
    ) -> None:
        """Ask about all of `unverified`. `done` for each, with NONE or the client's error; then `end`. Maybe at once.

        They are called with no lock held, by this thread before `ask` returns or by one that may append. `end` comes
        whatever else fails: the client waits for it.
        """
        from kavka.coordinator.runtime.result import Producer

        transactions = self._services.transactions
        asking: int | None = get_ident()

        def answered(codes: "Codes") -> None:
            if get_ident() == asking:
                take(codes)
            else:
                # Whoever brings the answer is not to be kept: a follower's fetch may have committed what the
                # coordinator wrote, on a network thread, and the batch may unpack to much or wait for an fsync.
                transactions.workers.appends(partial(take, codes))

        def take(codes: "Codes") -> None:
            try:
                for batch in self.unverified:
                    partition = batch.partition
                    code = codes[partition.topic, partition.index]
                    if code is not ErrorCode.NONE:
                        self.withdraw(batch)
                        code = _told(code, self._version)
                    done(batch, code)
            finally:
                end()

        ask = transactions.add_partitions if self._version >= ADDS_SINCE else transactions.verify_partitions
        partitions = [(batch.partition.topic, batch.partition.index) for batch in self.unverified]
        ask(transactional_id, Producer(*self._producer), partitions, answered)
        asking = None


def _told(code: ErrorCode, version: int) -> ErrorCode:
    if code in RETRIED_AS_NOT_ENOUGH_REPLICAS:
        return ErrorCode.NOT_ENOUGH_REPLICAS
    if code is ErrorCode.CONCURRENT_TRANSACTIONS and version < CONCURRENT_SINCE:
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return told_to_producer(code, version >= ABORTABLE_SINCE)
