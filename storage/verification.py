"""Which producers may begin a transaction on a partition: those whose coordinator said that it takes part (KIP-890).

A producer's first transactional batch must not come into the log when the transaction has ended meanwhile: no marker
would ever end what it begins. So the batch's sender takes a guard before it asks the coordinator, and the append
checks that the guard still holds. An end marker takes all guards of its producer away.
"""

from typing import Final, NamedTuple

NOT_VERIFIED: Final = 0
"""No guard: only a transaction that is open already may go on."""
NEEDS_NO_VERIFICATION: Final = -1
"""Nobody asks: `transaction.partition.verification.enable` is off, or a coordinator of this broker writes."""
REVOKED: Final = -2
"""What a guard becomes when a marker has come."""
MAX_VERIFICATIONS: Final = 10_000


class Verification(NamedTuple):
    """A producer whose coordinator is being asked, or has said yes."""

    guard: int
    epoch: int
    lowest_sequence: int
    """Of all batches that wait: they must not come in before it."""
    starts_at_zero: bool
    """Each of its transactions has an epoch of its own (transactions of version 2), and so begins with sequence 0."""
    since_ms: int
    holders: int = 1
    """Batches that took the guard and have not given it back."""


class Verifications:
    """The verifications of one log. Owned by the log's lock."""

    __slots__ = ("_by_producer", "_last_guard")

    def __init__(self) -> None:
        self._by_producer: dict[int, Verification] = {}
        self._last_guard = 0

    def __len__(self) -> int:
        return len(self._by_producer)

    def begin(self, producer_id: int, epoch: int, sequence: int, starts_at_zero: bool, now_ms: int) -> int:
        """A guard, above 0. Batches that wait side by side share one; an older epoch gets one that never holds."""
        known = self._by_producer.get(producer_id)
        if known is not None and epoch == known.epoch and known.guard != REVOKED:
            lowest = min(sequence, known.lowest_sequence)
            self._by_producer[producer_id] = known._replace(lowest_sequence=lowest, holders=known.holders + 1)
            return known.guard
        if known is not None and epoch < known.epoch and known.guard != REVOKED:
            self._last_guard += 1
            return self._last_guard
        if len(self._by_producer) >= MAX_VERIFICATIONS:
            # Whoever is pushed out is refused and tries again.
            del self._by_producer[next(iter(self._by_producer))]
        self._last_guard += 1
        self._by_producer[producer_id] = Verification(self._last_guard, epoch, sequence, starts_at_zero, now_ms)
        return self._last_guard

    def find(self, producer_id: int, guard: int) -> Verification | None:
        """The verification that this guard is of, if it still holds."""
        known = self._by_producer.get(producer_id)
        return known if known is not None and known.guard == guard else None

    def end(self, producer_id: int) -> None:
        """The transaction has begun: nothing is to be verified any more."""
        self._by_producer.pop(producer_id, None)

    def revoke(self, producer_id: int) -> None:
        """A marker has come: the guards of this producer hold no more."""
        known = self._by_producer.get(producer_id)
        if known is not None:
            self._by_producer[producer_id] = known._replace(guard=REVOKED)

    def is_revoked(self, producer_id: int) -> bool:
        """Whether a marker came after this producer's last verification: what was verified before is late."""
        known = self._by_producer.get(producer_id)
        return known is not None and known.guard == REVOKED

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
                del self._by_producer[producer_id]

    def clear(self) -> None:
        self._by_producer.clear()
