"""What is known of one transactional id, and how it changes: `prepare_x()` says what will be, then it is appended to
the log, then `complete()` makes it so.

Epochs go from 0 to 32,766; 32,767 is never given to a client, so that whoever holds the last epoch can still be fenced.
Since transactions of version 2 (KIP-890) each end of a transaction bumps the epoch; where there is none left, the
producer goes on with epoch 0 of another producer id, whoever ended the transaction (KAFKA-20090). Logs of brokers that
gave 32,767 out are recovered by the same way: an end leaves that epoch as it is, and goes on with another id.
"""

from collections.abc import Iterable
from itertools import groupby
from typing import Final, NamedTuple, TypeAlias

from kavka.coordinator.runtime.result import CoordinatorRecord
from kavka.coordinator.transaction.states import AT_REST, ENDED, PREPARED, VALID_PREVIOUS, TransactionState
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.internal.transaction_records import PartitionsSchema, TransactionLogKey, TransactionLogValue

TopicPartition: TypeAlias = tuple[str, int]

NO_PRODUCER_ID: Final = -1
NO_EPOCH: Final = -1
NO_TIMESTAMP: Final = -1
MAX_EPOCH: Final = (1 << 15) - 1
LAST_CLIENT_EPOCH: Final = MAX_EPOCH - 1
FLEXIBLE_SINCE: Final = 1
"""From this level of `transaction.version` on all brokers read records of version 1, which have the tagged fields."""
VERSION_2: Final = 2
"""From this transaction version on each end bumps the epoch. It is also what this broker itself speaks."""


class Transition(NamedTuple):
    """All of a transactional id's state, as it will be."""

    producer_id: int
    previous_producer_id: int
    next_producer_id: int
    producer_epoch: int
    last_producer_epoch: int
    timeout_ms: int
    state: TransactionState
    partitions: frozenset[TopicPartition]
    start_ms: int
    last_update_ms: int
    client_transaction_version: int


class Dispatch:
    """Markers of a decision that the broker was given to write, and has yet to tell of.

    `is_over`: nobody waits for them any more, and none of them may be written. Set by any thread, never taken back, and
    looked at where a marker is appended, under a lock that those sent next need too: so none comes behind them.
    """

    __slots__ = ("is_over", "since_ms")

    def __init__(self, since_ms: int) -> None:
        self.is_over = False
        self.since_ms = since_ms
        """By the monotonic clock."""

    def is_withdrawn(self) -> bool:
        """`is_over`, for those who are to ask again and again. Any thread."""
        return self.is_over


class TransactionMetadata:
    """One transactional id. Guarded by the shard's lock.

    `unmarked`: the partitions whose marker doesn't stand yet, while the state is PREPARE_COMMIT or PREPARE_ABORT.
    `last_producer_epoch`: the epoch before the last bump, which its producer may still name (KIP-360); it is not in the
    log, which tells it of ends of version 2 only. `attempts`: how often markers were sent in vain. `dispatch`: the
    markers that were sent last, until they are answered.
    """

    __slots__ = (*Transition._fields, "attempts", "dispatch", "transactional_id", "unmarked")

    producer_id: int
    previous_producer_id: int
    next_producer_id: int
    producer_epoch: int
    last_producer_epoch: int
    timeout_ms: int
    state: TransactionState
    partitions: frozenset[TopicPartition]
    start_ms: int
    last_update_ms: int
    client_transaction_version: int

    def __init__(self, transactional_id: str, now: Transition) -> None:
        self.transactional_id = transactional_id
        self.unmarked: set[TopicPartition] = set()
        self.attempts = 0
        self.dispatch: Dispatch | None = None
        self._set(now)

    @property
    def is_decided(self) -> bool:
        """Whether a transaction is ending: markers are being written."""
        return self.state in PREPARED

    @property
    def is_dispatched(self) -> bool:
        """Whether markers are on their way: others would overtake them, and they the transaction's end."""
        return self.dispatch is not None and not self.dispatch.is_over

    def withdraw_dispatch(self) -> None:
        """Markers that are on their way still are not to be written any more, and their answers count for nothing."""
        dispatch, self.dispatch = self.dispatch, None
        if dispatch is not None:
            dispatch.is_over = True

    @property
    def is_exhausted(self) -> bool:
        """Whether no epoch is left to give to a client."""
        return self.producer_epoch >= LAST_CLIENT_EPOCH

    def prepare_producer(self, timeout_ms: int, expected_epoch: int | None, now_ms: int) -> Transition:
        """InitProducerId with an epoch that is left. `expected_epoch`: the one that the client says it has (KIP-360).

        Raises BrokerError PRODUCER_FENCED if that is neither the current one nor the one before.
        """
        epoch, last_epoch = self.producer_epoch + 1, NO_EPOCH
        if expected_epoch is not None:
            if self.producer_epoch in (NO_EPOCH, expected_epoch):
                last_epoch = self.producer_epoch
            elif expected_epoch == self.last_producer_epoch:
                # Sent again: the first answer was lost.
                epoch, last_epoch = self.producer_epoch, self.last_producer_epoch
            else:
                raise BrokerError(ErrorCode.PRODUCER_FENCED)
        return self._prepare(
            TransactionState.EMPTY,
            now_ms,
            producer_epoch=epoch,
            last_producer_epoch=last_epoch,
            timeout_ms=timeout_ms,
            partitions=frozenset(),
            start_ms=NO_TIMESTAMP,
        )

    def may_rotate(self, expected_epoch: int | None) -> bool:
        """Whether InitProducerId goes on with another producer id: no epoch is left, and nobody else's is claimed.

        32,767 is nobody's: where a fence has left it, its producer is the one with the epoch before.
        """
        return self.is_exhausted and (
            expected_epoch in (None, self.producer_epoch)
            or (self.producer_epoch == MAX_EPOCH and expected_epoch == self.last_producer_epoch)
        )

    def prepare_rotation(
        self, producer_id: int, timeout_ms: int, expected_epoch: int | None, now_ms: int
    ) -> Transition:
        """InitProducerId when no epoch is left: another producer id, with epoch 0."""
        return self._prepare(
            TransactionState.EMPTY,
            now_ms,
            producer_id=producer_id,
            producer_epoch=0,
            last_producer_epoch=NO_EPOCH if expected_epoch is None else expected_epoch,
            timeout_ms=timeout_ms,
            partitions=frozenset(),
            start_ms=NO_TIMESTAMP,
        )

    def prepare_add(self, partitions: Iterable[TopicPartition], client_version: int, now_ms: int) -> Transition:
        """Partitions take part in the transaction, which begins if none runs."""
        return self._prepare(
            TransactionState.ONGOING,
            now_ms,
            partitions=self.partitions.union(partitions),
            start_ms=now_ms if self.state in AT_REST else self.start_ms,
            client_transaction_version=client_version,
        )

    def prepare_end(
        self, committed: bool, client_version: int, now_ms: int, next_producer_id: int = NO_PRODUCER_ID
    ) -> Transition:
        """The transaction is decided. From version 2 on the epoch is bumped; the markers carry the new one.

        `next_producer_id`: with which the producer goes on, where no epoch is left.
        """
        bumps = client_version >= VERSION_2
        return self._prepare(
            TransactionState.PREPARE_COMMIT if committed else TransactionState.PREPARE_ABORT,
            now_ms,
            producer_epoch=min(self.producer_epoch + bumps, MAX_EPOCH),
            last_producer_epoch=self.producer_epoch if bumps else self.last_producer_epoch,
            next_producer_id=next_producer_id,
            # An abort of nothing has no beginning.
            start_ms=now_ms if self.state in AT_REST else self.start_ms,
            client_transaction_version=client_version,
        )

    def prepare_complete(self, now_ms: int) -> Transition:
        """All markers stand. With no epoch left the producer goes on with its next id."""
        transition = self._prepare(
            TransactionState.COMPLETE_COMMIT
            if self.state is TransactionState.PREPARE_COMMIT
            else TransactionState.COMPLETE_ABORT,
            now_ms,
            partitions=frozenset(),
        )
        if self.next_producer_id == NO_PRODUCER_ID:
            return transition
        return transition._replace(producer_id=self.next_producer_id, producer_epoch=0, next_producer_id=NO_PRODUCER_ID)

    def complete(self, transition: Transition) -> None:
        """The transition stands in the log: make it so."""
        self._set(transition)
        self.attempts = 0
        self.withdraw_dispatch()
        self.unmarked = set(transition.partitions) if transition.state in PREPARED else set()

    def _prepare(self, state: TransactionState, now_ms: int, **changes: object) -> Transition:
        if self.state not in VALID_PREVIOUS[state]:
            raise RuntimeError(f"{self.transactional_id!r} cannot go from {self.state.text} to {state.text}")
        before = Transition(*[getattr(self, name) for name in Transition._fields])
        return before._replace(
            state=state,
            last_update_ms=now_ms,
            previous_producer_id=self.producer_id,
            **changes,  # type: ignore[arg-type]  # mypy cannot tell which field has which type
        )

    def _set(self, now: Transition) -> None:
        (
            self.producer_id,
            self.previous_producer_id,
            self.next_producer_id,
            self.producer_epoch,
            self.last_producer_epoch,
            self.timeout_ms,
            self.state,
            self.partitions,
            self.start_ms,
            self.last_update_ms,
            self.client_transaction_version,
        ) = now


def new_metadata(transactional_id: str, producer_id: int, timeout_ms: int, now_ms: int) -> TransactionMetadata:
    """An id that is seen for the first time; its first InitProducerId bumps the epoch to 0."""
    return TransactionMetadata(
        transactional_id,
        Transition(
            producer_id=producer_id,
            previous_producer_id=NO_PRODUCER_ID,
            next_producer_id=NO_PRODUCER_ID,
            producer_epoch=NO_EPOCH,
            last_producer_epoch=NO_EPOCH,
            timeout_ms=timeout_ms,
            state=TransactionState.EMPTY,
            partitions=frozenset(),
            start_ms=NO_TIMESTAMP,
            last_update_ms=now_ms,
            client_transaction_version=0,
        ),
    )


def record_of(transactional_id: str, now: Transition, transaction_version: int) -> CoordinatorRecord:
    """The record that says so, as the cluster's `transaction.version` has it."""
    partitions = None
    if now.state is not TransactionState.EMPTY:
        partitions = [
            PartitionsSchema(topic=topic, partition_ids=[index for _, index in group])
            for topic, group in groupby(sorted(now.partitions), key=_topic_of)
        ]
    value = TransactionLogValue(
        producer_id=now.producer_id,
        previous_producer_id=now.previous_producer_id,
        next_producer_id=now.next_producer_id,
        producer_epoch=now.producer_epoch,
        transaction_timeout_ms=now.timeout_ms,
        transaction_status=now.state,
        transaction_partitions=partitions,
        transaction_last_update_timestamp_ms=now.last_update_ms,
        transaction_start_timestamp_ms=now.start_ms,
        client_transaction_version=now.client_transaction_version,
    )
    value_version = int(transaction_version >= FLEXIBLE_SINCE)
    return CoordinatorRecord(TransactionLogKey(transactional_id=transactional_id), value, value_version)


def transition_of(value: TransactionLogValue) -> Transition:
    """What a record says. Raises ValueError for a status that is none."""
    state = TransactionState(value.transaction_status)
    return Transition(
        producer_id=value.producer_id,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        producer_epoch=value.producer_epoch,
        last_producer_epoch=_last_epoch_of(value, state),
        timeout_ms=value.transaction_timeout_ms,
        state=state,
        partitions=frozenset(
            (entry.topic, index) for entry in value.transaction_partitions or () for index in entry.partition_ids
        ),
        start_ms=value.transaction_start_timestamp_ms,
        last_update_ms=value.transaction_last_update_timestamp_ms,
        client_transaction_version=value.client_transaction_version,
    )


def _last_epoch_of(value: TransactionLogValue, state: TransactionState) -> int:
    """The epoch before an end of version 2, so that its producer may come back after a restart too; else NO_EPOCH."""
    if value.client_transaction_version < VERSION_2 or state not in PREPARED | ENDED:
        return NO_EPOCH
    if value.producer_epoch > 0:
        return value.producer_epoch - 1
    return NO_EPOCH if value.previous_producer_id in (NO_PRODUCER_ID, value.producer_id) else LAST_CLIENT_EPOCH


def tombstone_of(transactional_id: str) -> CoordinatorRecord:
    """The record that forgets an id."""
    return CoordinatorRecord(TransactionLogKey(transactional_id=transactional_id), None)


def _topic_of(partition: TopicPartition) -> str:
    return partition[0]
