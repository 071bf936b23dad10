"""What a partition knows of the idempotent and transactional producers that write to it (KIP-98).

A producer's batches carry its id, epoch and sequence numbers. The last five of each are remembered, so that a batch
sent again is answered with the offset that it got the first time, and a gap is refused. Sequences wrap to 0 after
2^31 - 1. An id that isn't known (expired, or its records deleted) may begin with any sequence (KIP-360).

A transaction is begun by a batch that was verified (`verification`, KIP-890), and goes on with batches of its epoch.

Threads: everything is changed under the log's lock. `first_unstable_offset` is a plain number that any thread reads.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from kavka.protocol.errors import ErrorCode
from kavka.protocol.records.batch import BatchHeader
from kavka.storage.append_result import AppendError
from kavka.storage.log_answers import ProducerStatus
from kavka.storage.refused_batches import RefusedBatches
from kavka.storage.verification_guards import NEEDS_NO_VERIFICATION, VerificationGuards

REMEMBERED_BATCHES: Final = 5
MAX_SEQUENCE: Final = (1 << 31) - 1
MAX_EPOCH: Final = (1 << 15) - 1
NO_TRANSACTION: Final = -1
STRICT_SINCE: Final = 2
"""From this transaction version on each transaction has an epoch of its own."""


class BatchPlaced(NamedTuple):
    """A producer's batch and where it went."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp_ms: int


class CompletedTransaction(NamedTuple):
    """A transaction whose end marker was appended."""

    producer_id: int
    first_offset: int
    last_offset: int
    """Of the marker."""
    aborted: bool


class ProducerEntry:
    """One producer on one partition. Owned by the log's lock."""

    __slots__ = ("batches", "coordinator_epoch", "epoch", "last_timestamp_ms", "producer_id", "txn_first_offset")

    def __init__(self, producer_id: int, epoch: int) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.batches: list[BatchPlaced] = []
        self.coordinator_epoch = -1
        self.last_timestamp_ms = -1
        self.txn_first_offset = NO_TRANSACTION

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else -1

    @property
    def last_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else -1


class ProducerStates:
    """The producers of one log.

    `map_end_offset`: everything below is accounted for. `first_unstable_offset`: where the earliest transaction began
    that is open, or ended at or above the high watermark; -1 when there is none. It may lie beyond the high watermark:
    what readers are told, `ManagedLog.last_stable_offset`, is bounded by that.
    """

    __slots__ = (
        "_ongoing",
        "_producers",
        "first_unstable_offset",
        "map_end_offset",
        "refused",
        "unreplicated",
        "verifications",
    )

    def __init__(self) -> None:
        self.verifications: Final = VerificationGuards()
        self.refused: Final = RefusedBatches()
        self.map_end_offset = 0
        self.first_unstable_offset = -1
        self._producers: dict[int, ProducerEntry] = {}
        # Both sorted: a snapshot names its producers in any order, and so may Kafka's.
        self._ongoing: list[int] = []
        """First offsets of the open transactions."""
        self.unreplicated: list[tuple[int, int]] = []
        """(first offset, marker's offset) of those whose end may not be replicated yet; see `replicated_to`."""

    def __len__(self) -> int:
        return len(self._producers)

    def get(self, producer_id: int) -> ProducerEntry | None:
        return self._producers.get(producer_id)

    def has_open_transaction(self, producer_id: int, epoch: int) -> bool:
        """Whether that producer has one with that epoch: its batches need no verification. Any thread."""
        entry = self._producers.get(producer_id)
        return entry is not None and entry.txn_first_offset >= 0 and entry.epoch == epoch

    def check(
        self,
        producer_id: int,
        epoch: int,
        first_sequence: int,
        record_count: int,
        transactional: bool,
        guard: int = NEEDS_NO_VERIFICATION,
    ) -> BatchPlaced | None:
        """Check a client's data batch; the place of the batch that it repeats, or None if it is the next one.

        Raises AppendError: INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_TXN_STATE;
        KAFKA_STORAGE_ERROR behind a batch that the disk refused.
        """
        entry = self._producers.get(producer_id)
        if entry is None:
            if self.refused.by_producer:
                self.refused.check(producer_id, epoch, first_sequence, None)
            if transactional and guard != NEEDS_NO_VERIFICATION:
                self._check_verified(producer_id, epoch, first_sequence, guard)
            return None
        batches = entry.batches
        if epoch == entry.epoch:
            if batches:
                expected = batches[-1][_LAST_SEQUENCE] + 1
                if first_sequence != expected and not (first_sequence == 0 and expected > MAX_SEQUENCE):
                    last_sequence = (first_sequence + record_count - 1) & MAX_SEQUENCE
                    for batch in reversed(batches):
                        if batch[0] == first_sequence and batch[1] == last_sequence:
                            return batch
                    raise self._gap(entry, epoch, first_sequence, expected & MAX_SEQUENCE)
            elif first_sequence != 0:
                raise self._gap(entry, epoch, first_sequence, 0)
        elif epoch < entry.epoch:
            raise _stale_epoch(entry, epoch)
        elif first_sequence != 0:
            raise self._gap(entry, epoch, first_sequence, 0)
        if transactional:
            if (entry.txn_first_offset < 0 or epoch != entry.epoch) and guard != NEEDS_NO_VERIFICATION:
                self._check_verified(producer_id, epoch, first_sequence, guard)
        elif entry.txn_first_offset >= 0:
            raise AppendError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {producer_id} has an open transaction; the batch isn't part of it",
            )
        return None

    def check_unsequenced(
        self, producer_id: int, epoch: int, transactional: bool, guard: int = NEEDS_NO_VERIFICATION
    ) -> None:
        """Check a coordinator's data batch, which has no sequence.

        Raises AppendError INVALID_PRODUCER_EPOCH, UnverifiedError.
        """
        entry = self._producers.get(producer_id)
        if entry is not None and epoch < entry.epoch:
            raise _stale_epoch(entry, epoch)
        if transactional and guard != NEEDS_NO_VERIFICATION and not self.has_open_transaction(producer_id, epoch):
            self.verifications.require(producer_id, epoch, guard)

    def check_marker(self, producer_id: int, epoch: int, coordinator_epoch: int, transaction_version: int = 0) -> None:
        """Check the coordinator's end marker. AppendError: INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED.

        From transactions of version 2 on a marker has a later epoch than what it ends: one with the epoch of the open
        transaction is late, and meant for the transaction before (KIP-890, KIP-1228). The last epoch of all has none
        that is later; only brokers that gave it out wrongly left transactions with it (KAFKA-20090).
        """
        entry = self._producers.get(producer_id)
        if entry is None:
            return
        if epoch < entry.epoch or (
            epoch == entry.epoch < MAX_EPOCH and transaction_version >= STRICT_SINCE and entry.txn_first_offset >= 0
        ):
            raise _stale_epoch(entry, epoch)
        if coordinator_epoch < entry.coordinator_epoch:
            raise AppendError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"coordinator epoch {coordinator_epoch} of producer {producer_id}, {entry.coordinator_epoch} is known",
            )

    def record(
        self,
        producer_id: int,
        epoch: int,
        first_sequence: int,
        first_offset: int,
        last_offset: int,
        timestamp_ms: int,
        transactional: bool,
    ) -> None:
        """A data batch was written."""
        entry = self._producers.get(producer_id)
        if entry is None:
            entry = self._producers[producer_id] = ProducerEntry(producer_id, epoch)
        batches = entry.batches
        if entry.epoch != epoch:
            entry.epoch = epoch
            batches.clear()
        # A coordinator's offset commits in a transaction have no sequence: -1 stays -1.
        last_sequence = (first_sequence + last_offset - first_offset) & MAX_SEQUENCE if first_sequence >= 0 else -1
        batches.append(
            _new_tuple(BatchPlaced, (first_sequence, last_sequence, first_offset, last_offset, timestamp_ms))
        )
        if len(batches) > REMEMBERED_BATCHES:
            del batches[0]
        entry.last_timestamp_ms = timestamp_ms
        if transactional and entry.txn_first_offset < 0:
            entry.txn_first_offset = first_offset
            insort(self._ongoing, first_offset)
            self._find_first_unstable()
            self.verifications.end(producer_id)

    def complete(
        self,
        producer_id: int,
        epoch: int,
        coordinator_epoch: int,
        offset: int,
        timestamp_ms: int,
        aborted: bool,
        transaction_version: int = 0,
    ) -> CompletedTransaction | None:
        """An end marker was written at `offset`; the transaction that it ended, None if it ended nothing here.

        The transaction stays unstable until `replicated_to` passes its marker.
        """
        entry = self._producers.get(producer_id)
        if entry is None:
            entry = self._producers[producer_id] = ProducerEntry(producer_id, epoch)
        if entry.epoch != epoch:
            entry.epoch = epoch
            entry.batches.clear()
        first_offset, entry.txn_first_offset = entry.txn_first_offset, NO_TRANSACTION
        entry.coordinator_epoch = coordinator_epoch
        entry.last_timestamp_ms = timestamp_ms
        self.verifications.revoke(producer_id, epoch, is_bumped=transaction_version >= STRICT_SINCE)
        if first_offset < 0:
            return None
        del self._ongoing[bisect_left(self._ongoing, first_offset)]
        insort(self.unreplicated, (first_offset, offset))
        self._find_first_unstable()
        return CompletedTransaction(producer_id, first_offset, offset, aborted)

    def last_stable_offset_after(self, completed: CompletedTransaction) -> int:
        """The first offset of an open transaction, else the one behind the marker: what `.txnindex` keeps."""
        return self._ongoing[0] if self._ongoing else completed.last_offset + 1

    def replicated_to(self, high_watermark: int) -> None:
        """Completed transactions whose marker lies below the high watermark are stable."""
        if self.unreplicated:
            self.unreplicated = [each for each in self.unreplicated if each[1] >= high_watermark]
            self._find_first_unstable()

    def replay(self, header: BatchHeader, marker: tuple[bool, int] | None) -> CompletedTransaction | None:
        """Account for a batch that is in the log already, or was copied from the leader: nothing is refused.

        `marker`: (aborted, coordinator epoch) of an end marker's batch, None for data.
        """
        if header.producer_id < 0:
            return None
        entry = self._producers.get(header.producer_id)
        epoch = header.producer_epoch if entry is None else max(header.producer_epoch, entry.epoch)
        if header.is_control:
            if marker is None:
                return None
            aborted, coordinator_epoch = marker
            return self.complete(
                header.producer_id, epoch, coordinator_epoch, header.base_offset, header.max_timestamp_ms, aborted
            )
        self.record(
            header.producer_id,
            epoch,
            header.base_sequence,
            header.base_offset,
            header.last_offset,
            header.max_timestamp_ms,
            header.is_transactional,
        )
        return None

    def load(self, entries: Iterable[ProducerEntry], offset: int) -> None:
        """Start from a snapshot that is valid for `offset`."""
        self.clear(offset)
        for entry in entries:
            self._producers[entry.producer_id] = entry
        self._ongoing = sorted(
            entry.txn_first_offset for entry in self._producers.values() if entry.txn_first_offset >= 0
        )
        self._find_first_unstable()

    def clear(self, offset: int) -> None:
        """Know nothing, at `offset`."""
        self._producers.clear()
        self._ongoing.clear()
        self.unreplicated.clear()
        self.verifications.clear()
        self.refused.clear()
        self.map_end_offset = offset
        self.first_unstable_offset = -1

    def remove_expired(self, now_ms: int, expiration_ms: int) -> int:
        """Forget producers that wrote nothing for `expiration_ms` and have no open transaction; how many."""
        expired = [
            entry.producer_id
            for entry in self._producers.values()
            if entry.txn_first_offset < 0 and now_ms - entry.last_timestamp_ms >= expiration_ms
        ]
        for producer_id in expired:
            del self._producers[producer_id]
            self.refused.by_producer.pop(producer_id, None)
        self.refused.remove_expired(now_ms, expiration_ms)
        self.verifications.remove_expired(now_ms, expiration_ms)
        return len(expired)

    def entries(self) -> Iterator[ProducerEntry]:
        return iter(self._producers.values())

    def statuses(self) -> list[ProducerStatus]:
        """For DescribeProducers."""
        return [
            ProducerStatus(
                entry.producer_id,
                entry.epoch,
                entry.last_sequence,
                entry.last_timestamp_ms,
                entry.coordinator_epoch,
                entry.txn_first_offset,
            )
            for entry in self._producers.values()
        ]

    def _gap(self, entry: ProducerEntry, epoch: int, first_sequence: int, expected: int) -> AppendError:
        """The error of a batch that is not the next one, which has the sequence `expected`. Or raises another."""
        self.refused.check(entry.producer_id, epoch, first_sequence, expected)
        return _out_of_order(entry, first_sequence)

    def _check_verified(self, producer_id: int, epoch: int, first_sequence: int, guard: int) -> None:
        """Check the batch that begins a transaction here."""
        known = self.verifications.require(producer_id, epoch, guard)
        is_new = producer_id not in self._producers
        if first_sequence > known.lowest_sequence or (is_new and known.has_own_epoch and first_sequence != 0):
            raise AppendError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {producer_id} begins with sequence {first_sequence}, {known.lowest_sequence} comes first",
            )

    def _find_first_unstable(self) -> None:
        ongoing, unreplicated = self._ongoing, self.unreplicated
        first = ongoing[0] if ongoing else -1
        if unreplicated and (first < 0 or unreplicated[0][0] < first):
            first = unreplicated[0][0]
        self.first_unstable_offset = first


_LAST_SEQUENCE: Final = 1
_new_tuple: Final = tuple.__new__


def _out_of_order(entry: ProducerEntry, first_sequence: int) -> AppendError:
    return AppendError(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"producer {entry.producer_id} sends sequence {first_sequence}, the last one is {entry.last_sequence}",
    )


def _stale_epoch(entry: ProducerEntry, epoch: int) -> AppendError:
    return AppendError(
        ErrorCode.INVALID_PRODUCER_EPOCH,
        f"producer {entry.producer_id} sends epoch {epoch}, {entry.epoch} is known",
    )
