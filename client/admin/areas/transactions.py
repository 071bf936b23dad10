"""Producers and transactions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kavka.client.admin.areas.area import Area, each_of, merged
from kavka.client.admin.areas.later import Later
from kavka.client.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kavka.client.admin.operations import transactions as operations
    from kavka.client.admin.types.transactions import (
        AbortTransactionSpec,
        FencedProducer,
        ProducerState,
        TransactionDescription,
        TransactionListing,
        TransactionState,
    )
else:
    operations = Later("kavka.client.admin.operations.transactions")


class TransactionsArea(Area):
    """Threads: any."""

    def describe_producers(
        self, partitions: Iterable[TopicPartition], *, broker_id: int | None = None, timeout_ms: float | None = None
    ) -> dict[TopicPartition, tuple[ProducerState, ...]]:
        """The producers that partitions' leaders remember (KIP-664), or their replicas on one broker."""
        operation = operations.describe_producers(each_of(partitions), broker_id)
        return self._run(operation, self._deadline(timeout_ms))

    def describe_transactions(
        self, transactional_ids: Iterable[str], *, timeout_ms: float | None = None
    ) -> dict[str, TransactionDescription]:
        """What coordinators know of transactional ids. Raises TransactionalIdNotFoundError, ..."""
        operation = operations.describe_transactions(each_of(transactional_ids))
        return self._run(operation, self._deadline(timeout_ms))

    def list_transactions(
        self,
        *,
        states: Iterable[TransactionState] = (),
        producer_ids: Iterable[int] = (),
        longer_than_ms: int = -1,
        transactional_id_pattern: str | None = None,
        timeout_ms: float | None = None,
    ) -> list[TransactionListing]:
        """The transactional ids of all coordinators, or those that match all that is given.

        `longer_than_ms`: those whose transaction has gone on for longer (KIP-994); the pattern is RE2 (KIP-1152).
        All brokers are asked. Raises ItemErrors by broker, with what the others said, if some did not answer.
        """
        deadline_ms = self._deadline(timeout_ms)
        operation = operations.list_transactions(
            self._broker_ids(deadline_ms),
            each_of(states),
            each_of(producer_ids),
            longer_than_ms,
            transactional_id_pattern,
        )
        return merged(operation.name, self._outcomes(operation, deadline_ms))

    def abort_transaction(self, hanging: AbortTransactionSpec, *, timeout_ms: float | None = None) -> None:
        """Abort on one partition a transaction that its coordinator has forgotten (KIP-664).

        One that its coordinator knows is ended by `fence_producers`. Raises InvalidProducerEpochError, ...;
        DisconnectedError when it is not known whether it was done: a second marker might end the producer's next one.
        """
        self._one(operations.abort_transaction(hanging), self._deadline(timeout_ms))

    def fence_producers(
        self, transactional_ids: Iterable[str], *, timeout_ms: float | None = None
    ) -> dict[str, FencedProducer]:
        """Shut out the producers that use these transactional ids now, and abort their transactions (KIP-691)."""
        return self._run(operations.fence_producers(each_of(transactional_ids)), self._deadline(timeout_ms))

    def force_terminate_transaction(self, transactional_id: str, *, timeout_ms: float | None = None) -> FencedProducer:
        """Abort the transaction that an id has now, one that is prepared too (KIP-939)."""
        return self.fence_producers([transactional_id], timeout_ms=timeout_ms)[transactional_id]
