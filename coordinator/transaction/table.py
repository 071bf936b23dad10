"""The transactional ids of one shard, and what all that is done to them has in common."""

from typing import Final

from kavka.coordinator.ports import ShardContext
from kavka.coordinator.runtime.result import CoordinatorRecord, Reply, Result
from kavka.coordinator.transaction.metadata import TransactionMetadata, Transition, record_of
from kavka.coordinator.transaction.ports import ProducerIdWanted, TransactionPorts
from kavka.coordinator.transaction.states import TransactionState


class TransactionTable:
    """Owned by its shard's lock, under which every call is made.

    `ongoing`, `decided`: those whose transaction runs, or is ending, by id, so that looking for late ones costs
    nothing for ids at rest; with the latter, since when by the monotonic clock, which nobody sets.
    """

    def __init__(self, context: ShardContext, ports: TransactionPorts) -> None:
        self.context: Final = context
        self.ports: Final = ports
        self.transactions: Final[dict[str, TransactionMetadata]] = {}
        self.waiting: Final[dict[str, ProducerIdWanted]] = {}
        """Ids whose transition waits for a producer id."""
        self.ongoing: Final[dict[str, TransactionMetadata]] = {}
        self.decided: Final[dict[str, tuple[TransactionMetadata, int]]] = {}

    def answer(self, reply: Reply, response: object) -> Result:
        """An answer that changes nothing; it may tell of what is not yet committed, and waits for that."""
        return Result(replies=[(reply, response)], reads_committed=True)

    def is_busy(self, transaction: TransactionMetadata) -> bool:
        """Whether a transition is under way: CONCURRENT_TRANSACTIONS for everybody else."""
        return transaction.is_decided or transaction.transactional_id in self.waiting

    def wait_for_producer_id(self, wanted: ProducerIdWanted) -> Result:
        """Leave the id as it is until a producer id has come."""
        self.waiting[wanted.transactional_id] = wanted
        return Result(replies=[(self.ports.give_producer_id, wanted)])

    def write(self, transactional_id: str, now: Transition, reply: Reply, response: object) -> Result:
        """Log a transition, and answer."""
        return Result(
            [self.record(transactional_id, now)],
            [(reply, response)],
            replays=False,
            appended=lambda: self.make(transactional_id, now),
        )

    def record(self, transactional_id: str, now: Transition) -> CoordinatorRecord:
        """What the log is to say of a transition."""
        return record_of(transactional_id, now, self.ports.transaction_version)

    def make(self, transactional_id: str, now: Transition) -> None:
        """It stands in the log: make it so."""
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            self.transactions[transactional_id] = transaction = TransactionMetadata(transactional_id, now)
        transaction.complete(now)
        self.ongoing.pop(transactional_id, None)
        self.decided.pop(transactional_id, None)
        if transaction.state is TransactionState.ONGOING:
            self.ongoing[transactional_id] = transaction
        elif transaction.is_decided:
            self.decided[transactional_id] = (transaction, self.context.monotonic_ms())

    def forget(self, transactional_id: str) -> None:
        """There is no such id any more."""
        for each in (self.transactions, self.ongoing, self.decided):
            each.pop(transactional_id, None)
