"""The transactional ids of one partition of `__transaction_state` (KIP-98, KIP-360, KIP-890).

    init_producer_id    a producer comes: it gets an epoch of its own, and older ones are fenced
    add, verify         partitions take part
    end                 commit or abort: the decision is logged, then markers are written, then that is logged
    describe, list      what there is
    timers              transactions that last too long, ids that are not used any more, markers to be sent again

One transition at a time: while an id waits for a producer id, or for its markers, everything else that concerns it is
told CONCURRENT_TRANSACTIONS. Every answer waits until what it tells of is committed.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from kavka.coordinator.ports import ShardContext
from kavka.coordinator.runtime.result import NOTHING, CoordinatorRecord, Producer, Reply, Result
from kavka.coordinator.transaction.completion import Completion, MarkerAnswer
from kavka.coordinator.transaction.ending import Ending
from kavka.coordinator.transaction.joining import Joining
from kavka.coordinator.transaction.listing import describe_transaction, list_transactions
from kavka.coordinator.transaction.metadata import (
    TopicPartition,
    TransactionMetadata,
    transition_of,
)
from kavka.coordinator.transaction.ports import MarkersWanted, ProducerIdWanted, TransactionPorts
from kavka.coordinator.transaction.producers import Producers
from kavka.coordinator.transaction.table import TransactionTable
from kavka.coordinator.transaction.timeouts import Timeouts
from kavka.protocol.errors import BrokerError
from kavka.protocol.internal.transaction_records import TransactionLogKey, TransactionLogValue

if TYPE_CHECKING:
    from kavka.protocol.messages.end_txn import EndTxnRequest
    from kavka.protocol.messages.init_producer_id import InitProducerIdRequest
    from kavka.protocol.messages.list_transactions import ListTransactionsRequest

UNREADABLE_RECORDS: Final = "kavka_transaction_coordinator_unreadable_records"


class TransactionShard:
    """Implements `Shard`. Every call is made under the shard's lock, which owns all attributes.

    Requests raise BrokerError for what they refuse outright; replies take what each method says.
    """

    def __init__(self, context: ShardContext, ports: TransactionPorts) -> None:
        self.context: Final = context
        self.table: Final = TransactionTable(context, ports)
        self._producers: Final = Producers(self.table)
        self._joining: Final = Joining(self.table)
        self._ending: Final = Ending(self.table)
        self._completion: Final = Completion(self.table)
        self._timeouts: Final = Timeouts(self.table)

    @property
    def transactions(self) -> Mapping[str, TransactionMetadata]:
        """By transactional id."""
        return self.table.transactions

    def init_producer_id(self, request: "InitProducerIdRequest", reply: Reply) -> Result:
        """A producer comes. Replies with an InitProducerIdResponse, or with an ErrorCode.

        INVALID_TRANSACTION_TIMEOUT, CONCURRENT_TRANSACTIONS (also while the transaction that it found is aborted),
        PRODUCER_FENCED, COORDINATOR_LOAD_IN_PROGRESS (no producer id).
        """
        return self._producers.init(request, reply)

    def add(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: Iterable[TopicPartition],
        client_version: int,
        reply: Reply,
    ) -> Result:
        """Have partitions take part in the producer's transaction. Replies with an ErrorCode for all of them.

        NONE, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS.
        """
        return self._joining.add(transactional_id, producer, frozenset(partitions), client_version, reply)

    def verify(
        self, transactional_id: str, producer: Producer, partitions: Iterable[TopicPartition], reply: Reply
    ) -> Result:
        """Whether partitions take part in the producer's transaction. Replies with {partition: ErrorCode}.

        NONE, TRANSACTION_ABORTABLE (it does not), INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED,
        CONCURRENT_TRANSACTIONS.
        """
        return self._joining.verify(transactional_id, producer, frozenset(partitions), reply)

    def end(self, request: "EndTxnRequest", client_version: int, reply: Reply) -> Result:
        """Commit or abort. Replies with an EndTxnResponse, or with an ErrorCode.

        INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS, INVALID_TXN_STATE.
        """
        return self._ending.end(request, client_version, reply)

    def describe(self, transactional_id: str, reply: Reply) -> Result:
        """Replies with a TransactionState of DescribeTransactions."""
        return self.table.answer(reply, describe_transaction(transactional_id, self.transactions.get(transactional_id)))

    def list(self, request: "ListTransactionsRequest", reply: Reply) -> Result:
        """Replies with a list of ListTransactions' TransactionState, whatever their ids: see `listing.id_filter`."""
        found = list_transactions(request, self.transactions.values(), self.context.now_ms())
        return self.table.answer(reply, found)

    def producer_id_given(self, wanted: ProducerIdWanted, producer_id: int) -> Result:
        """Decide what waited for a producer id."""
        self._stop_waiting(wanted)
        return wanted.decide(self.table, producer_id)

    def producer_id_refused(self, wanted: ProducerIdWanted, error: BrokerError) -> Result:
        """There is none: who waits is told, and may come again."""
        self._stop_waiting(wanted)
        return Result(replies=[(wanted.refuse, error)])

    def markers_answered(self, wanted: MarkersWanted, answers: Iterable[MarkerAnswer]) -> Result:
        """What became of markers: complete the transaction, or send again what doesn't stand."""
        return self._completion.answered(wanted, answers)

    def replay(self, record: CoordinatorRecord, offset: int, producer: Producer | None) -> None:
        """See Shard."""
        key, value = record.key, record.value
        assert isinstance(key, TransactionLogKey)
        if value is None:
            self.table.forget(key.transactional_id)
            return
        assert isinstance(value, TransactionLogValue)
        try:
            now = transition_of(value)
        except ValueError:
            # A status that only a later version knows: what is known of the id stays as it was.
            self.context.count(UNREADABLE_RECORDS)
            return
        self.table.make(key.transactional_id, now)

    def replay_end_marker(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        """See Shard. Nobody writes to this topic in transactions."""

    def loaded(self) -> Result:
        """See Shard: what had been decided is carried out, and the clocks run on."""
        self._timeouts.start()
        return self._completion.resumed()

    def unloaded(self) -> Result:
        """See Shard. Whoever waits, waits for a port, and hears of it from there.

        Markers that are on their way must not come behind those of whoever loads the decision next: that may be this
        broker, under the same epoch.
        """
        for transaction in self.transactions.values():
            transaction.withdraw_dispatch()
        return NOTHING

    def topics_changed(self) -> Result:
        """See Shard. Markers for topics that are gone are dropped when they are sent again."""
        return NOTHING

    def _stop_waiting(self, wanted: ProducerIdWanted) -> None:
        waiting = self.table.waiting
        if waiting.get(wanted.transactional_id) is wanted:
            del waiting[wanted.transactional_id]
