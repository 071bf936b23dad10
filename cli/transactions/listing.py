"""Transactional ids, transactions and producers as tables, in the columns of Kafka's TransactionsCommand."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from kavka.cli.failing import tried
from kavka.cli.showing import Table
from kavka.client.admin.types.transactions import ProducerState, TransactionDescription, TransactionListing
from kavka.client.api_errors import TransactionalIdNotFoundError
from kavka.client.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kavka.client.admin.admin import Admin

PRODUCER_COLUMNS: Final = (
    "topic",
    "partition",
    "producer_id",
    "producer_epoch",
    "latest_coordinator_epoch",
    "last_sequence",
    "last_timestamp",
    "current_transaction_start_offset",
)


def listing_table(listed: Iterable[TransactionListing], coordinators: Mapping[str, int]) -> Table:
    """`kavka transactions list`. Whose coordinator is not known has none."""
    columns = ("transactional_id", "coordinator", "producer_id", "transaction_state")
    rows = [
        (each.transactional_id, coordinators.get(each.transactional_id), each.producer_id, each.state.value)
        for each in sorted(listed)
    ]
    return Table("transactions-list", columns, rows)


def coordinators_of(admin: "Admin", listed: Iterable[TransactionListing]) -> dict[str, int]:
    """The coordinators of those that are still there."""
    ids = sorted({each.transactional_id for each in listed})
    if not ids:
        return {}
    try:
        described, _gone = tried(lambda: admin.describe_transactions(ids))
    except TransactionalIdNotFoundError:
        return {}
    return {name: each.coordinator_id for name, each in described.items()}


def description_table(described: Iterable[TransactionDescription], now_ms: int) -> Table:
    """`kavka transactions describe`."""
    columns = (
        "coordinator_id",
        "transactional_id",
        "producer_id",
        "producer_epoch",
        "transaction_state",
        "transaction_timeout_ms",
        "current_transaction_start_time_ms",
        "transaction_duration_ms",
        "topic_partitions",
    )
    return Table("transactions-describe", columns, [_described(each, now_ms) for each in described])


def _described(each: TransactionDescription, now_ms: int) -> tuple[int | str | list[str] | None, ...]:
    has_begun = each.start_time_ms >= 0
    return (
        each.coordinator_id,
        each.transactional_id,
        each.producer_id,
        each.producer_epoch,
        each.state.value,
        each.timeout_ms,
        each.start_time_ms if has_begun else None,
        now_ms - each.start_time_ms if has_begun else None,
        [str(partition) for partition in sorted(each.partitions)],
    )


def producers_table(name: str, found: Mapping[TopicPartition, Sequence[ProducerState]]) -> Table:
    """`kavka producers describe`, `kavka transactions describe-producers`."""
    rows = [
        (
            partition.topic,
            partition.partition,
            each.producer_id,
            each.producer_epoch,
            each.coordinator_epoch,
            each.last_sequence,
            each.last_timestamp_ms,
            each.current_transaction_start_offset if each.current_transaction_start_offset >= 0 else None,
        )
        for partition, states in sorted(found.items())
        for each in states
    ]
    return Table(name, PRODUCER_COLUMNS, rows)
