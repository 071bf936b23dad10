"""Which producers may begin a transaction on a partition: those whose coordinator said that it takes part (KIP-890).

A producer's first transactional batch must not come into the log when the transaction has ended meanwhile: no marker
would ever end what it begins. So the batch's sender takes a guard before it asks the coordinator, and the append
checks that the guard still holds. An end marker takes its producer's guards away, but for those of the next
transaction. It is the same for the offsets of a TxnOffsetCommit, which a group coordinator appends.
"""

from typing import Final, NamedTuple

from kavka.protocol.errors import ErrorCode
from kavka.storage.append_result import AppendError

NOT_VERIFIED: Final = 0
"""No guard: only a transaction that is open already may go on."""
NEEDS_NO_VERIFICATION: Final = -1
"""Nobody asks: `transaction.partition.verification.enable` is off, or the batch is a marker."""
MAX_VERIFICATIONS: Final = 10_000


class UnverifiedError(AppendError):
    """A batch that would begin a transaction, without a guard that holds: INVALID_TXN_STATE.

    NOT_ENOUGH_REPLICAS where the guard may have been good, but was forgotten: whoever tries again has it verified anew.
    """


class VerificationStateEntry(NamedTuple):
    """A producer whose coordinator is being asked, or has said yes."""

    guard: int
    epoch: int
    lowest_sequence: int
    """Of all batches that wait: they must not come in before it."""
    has_own_epoch: bool
    """Each of its transactions has an epoch of its own (transactions of version 2), and so begins with sequence 0."""
    since_ms: int
    holders: int = 1
    """Batches that took the guard and have not given it back."""


class VerificationGuards:
    """The verifications of one log. Owned by the log's lock.

    `_by_producer` is in the order of the guards, so that what is pushed out is the oldest. `_last_forgotten`: no guard
    above it was lost without an end of its transaction.
    """

    __slots__ = ("_by_producer", "_last_forgotten", "_last_guard")

    def __init__(self) -> None:
        self._by_producer: dict[int, VerificationStateEntry] = {}
        self._last_forgotten = 0
        self._last_guard = 0

    def __len__(self) -> int:
        return len(self._by_producer)

    def begin(self, producer_id: int, epoch: int, sequence: int, has_own_epoch: bool, now_ms: int) -> int:
        """A guard, above 0. Batches that wait side by side share one; an older epoch gets one that never holds."""
        known = self._by_producer.get(producer_id)
        if known is not None and epoch == known.epoch:
            lowest = min(sequence, known.lowest_sequence)
            self._by_producer[producer_id] = known._replace(lowest_sequence=lowest, holders=known.holders + 1)
            return known.guard
        self._last_guard += 1
        if known is not None and epoch < known.epoch:
            return self._last_guard
        self._by_producer.pop(producer_id, None)
        if len(self._by_producer) >= MAX_VERIFICATIONS:
            self._forget(next(iter(self._by_producer)))
        self._by_producer[producer_id] = VerificationStateEntry(
            self._last_guard, epoch, sequence, has_own_epoch, now_ms
        )
        return self._last_guard

    def find(self, producer_id: int, guard: int) -> VerificationStateEntry | None:
        """The verification that this guard is of, if it still holds."""
        known = self._by_producer.get(producer_id)
        return known if known is not None and known.guard == guard else None

    def require(self, producer_id: int, epoch: int, guard: int) -> VerificationStateEntry:
        """The verification that lets a batch begin a transaction. Raises UnverifiedError."""
        known = self.find(producer_id, guard) if guard != NOT_VERIFIED else None
        if known is not None and known.epoch == epoch:
            return known
        if self.may_be_forgotten(guard):
            raise UnverifiedError(
                ErrorCode.NOT_ENOUGH_REPLICAS, f"the transaction of producer {producer_id} is to be verified anew"
            )
        raise UnverifiedError(
            ErrorCode.INVALID_TXN_STATE, f"producer {producer_id} has no transaction here, or it has ended"
        )

    def may_be_forgotten(self, guard: int) -> bool:
        """Whether a guard that is not found may have been lost here: to be verified anew, for it was good perhaps."""
        return NOT_VERIFIED < guard <= self._last_forgotten

    def end(self, producer_id: int) -> None:
        """The transaction has begun, and needs no guard any more."""
        self._by_producer.pop(producer_id, None)

    def revoke(self, producer_id: int, epoch: int, *, is_bumped: bool) -> None:
        """A marker has come: the guards of what it ended are void.

        `is_bumped`: its epoch is later than that of what it ended. The client was given it with the answer, which may
        leave before the markers do: what waits with it is the next transaction (KAFKA-18654).
        """
        known = self._by_producer.get(producer_id)
        if known is not None and not (is_bumped and known.has_own_epoch and known.epoch == epoch):
            del self._by_producer[producer_id]

    def withdraw(self, producer_id: int, guard: int) -> None:
        """The coordinator said no to one of those who hold it; others it may tell otherwise."""
        known = self.find(producer_id, guard)
        if known is not None and known.holders > 1:
            self._by_producer[producer_id] = known._replace(holders=known.holders - 1)
        elif known is not None:
            del self._by_producer[producer_id]

    def remove_expired(self, now_ms: int, expiration_ms: int) -> None:
        """Forget what nobody came back for."""
        for producer_id, known in list(self._by_producer.items()):
            if now_ms - known.since_ms >= expiration_ms:
                self._forget(producer_id)

    def clear(self) -> None:
        self._last_forgotten = self._last_guard
        self._by_producer.clear()

    def _forget(self, producer_id: int) -> None:
        self._last_forgotten = max(self._last_forgotten, self._by_producer.pop(producer_id).guard)
