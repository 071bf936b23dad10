"""Batches of idempotent producers that a full disk refused, and that will come again.

A producer has several batches under way. When the disk refused one and takes the next, that one must not come in before
it: of a producer that the log doesn't know it would be taken for the first, and of any other it would be refused for
the gap, which some clients answer with another epoch (librdkafka) and so may double what they send. Kafka's broker,
whose directory is offline by then, refuses all of them with KAFKA_STORAGE_ERROR, which may be tried again; so do we
until all that were refused so are in the log. The first alone is not enough: it may come from a connection that its
producer has given up, while the next one, sent again, is refused already, and a third still under way.
"""

from typing import Final, NamedTuple

from kavka.protocol.errors import ErrorCode
from kavka.storage.append_result import AppendError

MAX_REFUSED: Final = 10_000
"""Producers of one log; then the one refused first is forgotten."""
MAX_UNDER_WAY: Final = 5
"""Batches of a producer, as with Kafka; more that were refused are forgotten, the first refused first."""
SEQUENCES: Final = 1 << 31
MOST_AHEAD: Final = SEQUENCES // 2
"""Sequences wrap: what is further ahead lies behind."""


class RefusedBatch(NamedTuple):
    """The next batch of its producer, at the time."""

    epoch: int
    first_sequence: int
    all_sequences: tuple[int, ...]
    """Where it begins, and those before and behind it that were refused, the last of them at the end."""
    refused_ms: int

    def and_another(self, first_sequence: int) -> tuple[int, ...]:
        """`all_sequences` when one that begins there is refused, too."""
        others = [each for each in self.all_sequences if each != first_sequence]
        return (*others[1 - MAX_UNDER_WAY :], first_sequence)


class RefusedBatches:
    """What the disk refused of each producer, last. One that was taken later stays, and says nothing any more.

    Owned by the log's lock.
    """

    __slots__ = ("by_producer",)

    def __init__(self) -> None:
        self.by_producer: dict[int, RefusedBatch] = {}

    def note(self, producer_id: int, epoch: int, first_sequence: int, now_ms: int) -> None:
        """The disk refused the next batch of this producer."""
        refused = self.by_producer
        known = refused.get(producer_id)
        if known is None and len(refused) >= MAX_REFUSED:
            del refused[next(iter(refused))]
        if known is None or known.epoch != epoch:
            sequences: tuple[int, ...] = (first_sequence,)
        else:
            sequences = known.and_another(first_sequence)
        refused[producer_id] = RefusedBatch(epoch, first_sequence, sequences, now_ms)

    def check(self, producer_id: int, epoch: int, first_sequence: int, expected: int | None) -> None:
        """Raises AppendError (KAFKA_STORAGE_ERROR) for a batch behind one that was refused and is not in the log yet.

        `expected`: the sequence that comes next; None: nobody knows.
        """
        refused = self.by_producer.get(producer_id)
        if refused is None or refused.epoch != epoch:
            return
        awaited = refused.first_sequence if expected is None else expected
        was_refused = awaited == refused.first_sequence or awaited in refused.all_sequences
        if was_refused and 0 < (first_sequence - awaited) % SEQUENCES < MOST_AHEAD:
            self.by_producer[producer_id] = refused._replace(all_sequences=refused.and_another(first_sequence))
            raise AppendError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"producer {producer_id} sends sequence {first_sequence}, the disk refused {awaited}",
            )

    def remove_expired(self, now_ms: int, expiration_ms: int) -> None:
        """Forget what nobody sent again."""
        for producer_id, refused in list(self.by_producer.items()):
            if now_ms - refused.refused_ms >= expiration_ms:
                del self.by_producer[producer_id]

    def clear(self) -> None:
        self.by_producer.clear()
