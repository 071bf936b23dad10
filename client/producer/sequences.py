"""Sequence numbers: what lets brokers take each batch once, and in order (KIP-98, KIP-360)."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from kavka.client.producer.batch import ProducerBatch
from kavka.client.producer.delivery import NO_OFFSET
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.records.header import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE

LAST_EPOCH: Final = 32_767
REMEMBERED_BATCHES: Final = 5
"""Of how many batches of a producer a partition's brokers know where they lie: an older one is out of order for them,
and not known to be there."""
_SEQUENCES: Final = 0x7FFF_FFFF


class Identity(NamedTuple):
    """A producer's id and epoch."""

    id: int = NO_PRODUCER_ID
    epoch: int = NO_PRODUCER_EPOCH

    @property
    def is_known(self) -> bool:
        return self.id != NO_PRODUCER_ID


NOBODY: Final = Identity()


class PartitionSequences:
    """One partition's: what comes next, what was acknowledged, what is on its way. The client's thread's."""

    __slots__ = ("identity", "in_flight", "last_acked_offset", "last_acked_sequence", "next_sequence", "numbered")

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        """Under which the next batches go out."""
        self.next_sequence = 0
        self.last_acked_sequence = NO_SEQUENCE
        self.last_acked_offset = NO_OFFSET
        self.in_flight: Final[list[ProducerBatch]] = []
        """Batches that have a sequence and no outcome, in its order: in a request, or waiting for another try."""
        self.numbered = 0
        """How many batches have got a sequence; each has its `ordinal` of them."""

    @property
    def is_remembered(self) -> bool:
        """Whether brokers still know of the first batch in flight when they have appended one more.

        It may have been appended by a leader that answers nobody; its successor, who has later batches already, is to
        find that out when it gets it again.
        """
        return not self.in_flight or self.numbered - self.in_flight[0].ordinal < REMEMBERED_BATCHES

    def number(self, batch: ProducerBatch) -> None:
        """Give a batch the next sequence."""
        batch.number(self.identity.id, self.identity.epoch, self.next_sequence)
        batch.ordinal = self.numbered
        self.numbered += 1
        self.next_sequence = batch.next_sequence

    def is_next(self, sequence: int) -> bool:
        """Whether it follows the last acknowledged one."""
        return (self.last_acked_sequence + 1) & _SEQUENCES == sequence

    def is_behind_deleted(self, sequence: int, log_start_offset: int) -> bool:
        """Whether something after it was acknowledged, and all that was is deleted.

        Then it is not in the log, appended or not. While anything after it is there, it may be, too: a broker that was
        restarted knows of each producer's last batch alone, and takes an earlier one for out of order.
        """
        if self.last_acked_sequence == NO_SEQUENCE or not _is_later(self.last_acked_sequence, sequence):
            return False
        return NO_OFFSET < self.last_acked_offset < log_start_offset

    def restart(self, identity: Identity) -> None:
        """Begin at 0 again, and give what is on its way sequences from there."""
        self.identity = identity
        self.next_sequence = self.numbered = 0
        self.last_acked_sequence = NO_SEQUENCE
        for batch in self.in_flight:
            batch.was_reset = True
            self.number(batch)


class Sequences:
    """A producer's sequence numbers on all partitions, and its identity.

    Threads: the client's alone. What it decides of failures is Kafka's: see `can_retry`.
    """

    def __init__(self, *, transactional: bool) -> None:
        self._is_transactional: Final = transactional
        self.identity = NOBODY
        self._partitions: dict[TopicPartition, PartitionSequences] = {}
        self._unresolved: dict[TopicPartition, int] = {}
        """Partitions with a batch that was given up though it may have arrived; the sequence after it."""
        self._known_on: set[TopicPartition] = set()
        """Partitions whose leaders know the producer's id, as they have appended something of it."""
        self._to_restart: set[TopicPartition] = set()
        """Partitions whose sequences begin anew with the next epoch, which is wanted while there are any."""
        self.is_bump_required = False

    @property
    def is_in_doubt(self) -> bool:
        """Whether something was given up that may have arrived."""
        return bool(self._unresolved)

    def of(self, partition: TopicPartition) -> PartitionSequences:
        """The partition's; new ones begin at 0."""
        found = self._partitions.get(partition)
        if found is None:
            found = self._partitions[partition] = PartitionSequences(self.identity)
        return found

    def may_send(self, partition: TopicPartition, batch: ProducerBatch) -> bool:
        """Whether the first batch of a queue may go out now.

        One that is tried again goes when all before it have an outcome; a new one not before what was given up is
        resolved, nor beside batches of an earlier epoch, nor so far ahead of one without an answer that brokers forget
        that one. The first one ever goes alone: a broker that knows nothing of a producer takes any sequence, and would
        take the second where it had refused the first.
        """
        if not self.identity.is_known:
            return False
        sequences = self.of(partition)
        if batch.has_sequence:
            return not sequences.in_flight or sequences.in_flight[0] is batch
        if partition in self._unresolved or partition in self._to_restart:
            return False
        if not sequences.in_flight:
            return True
        is_same = sequences.identity == self.identity
        return is_same and sequences.is_remembered and partition in self._known_on

    def number(self, batch: ProducerBatch) -> None:
        """A batch goes out: give it its sequence, unless it has one."""
        if batch.has_sequence:
            return
        sequences = self.of(batch.topic_partition)
        if sequences.identity != self.identity and not sequences.in_flight:
            sequences.restart(self.identity)
        sequences.number(batch)
        sequences.in_flight.append(batch)

    def acked(self, batch: ProducerBatch, base_offset: int) -> None:
        """A batch was appended; or an earlier try of it was, and `base_offset` is -1."""
        sequences = self.of(batch.topic_partition)
        self._forget(sequences, batch)
        if batch.producer_id == self.identity.id:
            self._known_on.add(batch.topic_partition)
        if (batch.producer_id, batch.producer_epoch) != sequences.identity:
            return
        last = (batch.next_sequence - 1) & _SEQUENCES
        if sequences.last_acked_sequence == NO_SEQUENCE or _is_later(last, sequences.last_acked_sequence):
            sequences.last_acked_sequence = last
        if _is_later(batch.next_sequence, sequences.next_sequence):
            # One before it was refused as of an unknown producer, and this one has made it known.
            sequences.next_sequence = batch.next_sequence
        if base_offset != NO_OFFSET:
            sequences.last_acked_offset = max(sequences.last_acked_offset, base_offset + batch.count - 1)

    def split(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """A batch was refused as too large, and goes on in parts."""
        sequences = self.of(batch.topic_partition)
        in_flight = sequences.in_flight
        if batch in in_flight:
            place = in_flight.index(batch)
            in_flight[place : place + 1] = parts
            more = len(parts) - 1
            for later in in_flight[place + len(parts) :]:
                later.ordinal += more
            for number, part in enumerate(parts):
                part.ordinal = batch.ordinal + number
            sequences.numbered += more

    def given_up(self, batch: ProducerBatch) -> None:
        """A batch's time is over. If brokers may have seen it, nobody knows whether its sequence is used."""
        sequences = self.of(batch.topic_partition)
        self._forget(sequences, batch)
        known = self._unresolved.get(batch.topic_partition)
        if batch.has_sequence and (known is None or _is_later(batch.next_sequence, known)):
            self._unresolved[batch.topic_partition] = batch.next_sequence

    def failed(self, batch: ProducerBatch, *, is_producer_unknown: bool) -> None:
        """A batch was refused for good.

        In a transaction, which is aborted then, what is behind it moves up. Without one it is as if it was given up:
        if what is behind it cannot be appended brokers say so, and only then may it go out under another epoch.
        """
        sequences = self.of(batch.topic_partition)
        if not self._is_transactional:
            self.given_up(batch)
            return
        self._forget(sequences, batch)
        if not batch.has_sequence:
            return
        if is_producer_unknown:
            sequences.next_sequence = 0
            sequences.last_acked_sequence = NO_SEQUENCE
        else:
            self._move_up(sequences, batch)

    def can_retry(self, batch: ProducerBatch, *, is_out_of_order: bool, log_start_offset: int) -> bool:
        """Whether a batch that was refused for its sequence, or as of an unknown producer, is to be tried again.

        Out of order, and not the next one: what is before it comes first. Out of order though it is the next, or though
        what was acknowledged after it is deleted, or unknown: records of this producer were lost or deleted. Without a
        transaction the epoch goes up and the sequence begins anew; in one only deleted records are no reason to abort.
        """
        partition = batch.topic_partition
        sequences = self.of(partition)
        is_first = bool(sequences.in_flight) and sequences.in_flight[0] is batch
        if is_out_of_order:
            expected = self._unresolved.get(partition)
            # In a transaction the answer may be of before it was reset; without one another epoch does no harm then.
            is_excused = batch.was_reset and (self._is_transactional or not is_first)
            is_gone = is_first and sequences.is_behind_deleted(batch.base_sequence, log_start_offset)
            begins_anew = is_gone and not self._is_transactional
            is_early = not begins_anew and not sequences.is_next(batch.base_sequence)
            if expected is None and (is_excused or is_early):
                return True
            if self._is_transactional:
                return False
            if expected is None or expected == batch.base_sequence:
                self.require_bump(partition)
            return True
        if log_start_offset < 0:
            return True
        if not self._is_transactional:
            # Whether it was reset before, or not: what it was known by then may be gone, too.
            if is_first:
                self.require_bump(partition)
            # Else what is before it comes first: that may only be late, and would be there twice under another epoch.
            return True
        if batch.was_reset:
            return True
        if sequences.last_acked_offset < log_start_offset:
            sequences.restart(self.identity)
            return True
        return False

    def require_bump(self, partition: TopicPartition) -> None:
        """The next epoch is needed, with which this partition's sequences begin anew."""
        self.is_bump_required = True
        self._to_restart.add(partition)

    def bump(self) -> bool:
        """Take the next epoch, if it is wanted; False when there is none left, and another id has to be asked for."""
        if not self.is_bump_required:
            return True
        if not self.identity.is_known or self.identity.epoch >= LAST_EPOCH:
            self.identity = NOBODY
            return False
        self.identified(Identity(self.identity.id, self.identity.epoch + 1))
        return True

    def identified(self, identity: Identity) -> None:
        """The producer's identity from now on; partitions for which another was wanted begin anew."""
        if identity.id != self.identity.id:
            self._known_on.clear()
        self.identity = identity
        self.is_bump_required = False
        for partition in self._to_restart:
            self.of(partition).restart(identity)
            self._unresolved.pop(partition, None)
        self._to_restart.clear()

    def reset(self) -> None:
        """All sequences begin anew: the identity is another, and nothing is on its way."""
        self._partitions.clear()
        self._unresolved.clear()
        self._to_restart.clear()
        self.is_bump_required = False

    def resolve(self) -> Iterator[TopicPartition]:
        """Partitions where what was given up is known to be lost: they are resolved, and have to begin anew.

        Those where it arrived after all, as what came later was taken, are resolved too, and not given.
        """
        for partition in list(self._unresolved):
            sequences = self.of(partition)
            if not sequences.in_flight:
                del self._unresolved[partition]
                if not sequences.is_next(sequences.next_sequence):
                    yield partition

    def _forget(self, sequences: PartitionSequences, batch: ProducerBatch) -> None:
        if batch in sequences.in_flight:
            sequences.in_flight.remove(batch)

    def _move_up(self, sequences: PartitionSequences, failed: ProducerBatch) -> None:
        """Take a failed batch's sequences out of the row: those behind it get them, and are out of order until then."""
        if (failed.producer_id, failed.producer_epoch) != sequences.identity:
            return
        if not _is_later(sequences.next_sequence, failed.base_sequence):
            # One before it was refused as of an unknown producer: they begin at 0.
            return
        sequences.next_sequence = (sequences.next_sequence - failed.count) & _SEQUENCES
        for batch in sequences.in_flight:
            if _is_later(batch.base_sequence, failed.base_sequence):
                sequence = (batch.base_sequence - failed.count) & _SEQUENCES
                batch.was_reset = True
                batch.number(batch.producer_id, batch.producer_epoch, sequence)


def _is_later(sequence: int, other: int) -> bool:
    return 0 < (sequence - other) & _SEQUENCES < 2**30
