"""Transactions that hang: open on a partition, and no coordinator will ever end them (KIP-664)."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from kavka.cli.failing import Failure, tried
from kavka.cli.showing import Table
from kavka.client.api_errors import TransactionalIdNotFoundError
from kavka.client.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kavka.client.admin.admin import Admin
    from kavka.client.admin.types.transactions import ProducerState

BATCH: Final = 500
"""Partitions asked about at once."""

T = TypeVar("T")


class OpenTransaction(NamedTuple):
    """A producer with a transaction open on a partition."""

    partition: TopicPartition
    producer: "ProducerState"


class Scope(NamedTuple):
    """Where is looked: a topic's partitions or one of them, those of a broker, both, or (neither) everywhere."""

    topic: str | None = None
    partition: int | None = None
    broker_id: int | None = None


def find_hanging(admin: "Admin", scope: Scope, older_than_ms: int, now_ms: int) -> list[OpenTransaction]:
    """Those that have been open for longer, and that their coordinators know nothing of. Raises KafkaError."""
    partitions = partitions_in(admin, scope)
    candidates: dict[int, list[OpenTransaction]] = defaultdict(list)
    for batch in _batches(partitions):
        for partition, producers in admin.describe_producers(batch, broker_id=scope.broker_id).items():
            for producer in producers:
                is_open = producer.current_transaction_start_offset >= 0
                if is_open and now_ms - producer.last_timestamp_ms > older_than_ms:
                    candidates[producer.producer_id].append(OpenTransaction(partition, producer))
    return sorted(_unknown(admin, candidates))


def _unknown(admin: "Admin", candidates: dict[int, list[OpenTransaction]]) -> Iterator[OpenTransaction]:
    """Those whose coordinator has no transaction with that partition."""
    if not candidates:
        return
    listed = admin.list_transactions(producer_ids=candidates)
    names = {each.producer_id: each.transactional_id for each in listed if each.producer_id in candidates}
    partitions_of: dict[str, Sequence[TopicPartition]] = {}
    if names:
        described, failed = tried(lambda: admin.describe_transactions(sorted(set(names.values()))))
        partitions_of.update({name: each.partitions for name, each in described.items()})
        for error in failed.errors.values() if failed is not None else ():
            if not isinstance(error, TransactionalIdNotFoundError):
                raise error
    for producer_id, opened in candidates.items():
        # What a coordinator still has partitions of, it will write markers to.
        known = partitions_of.get(names.get(producer_id, ""), ())
        yield from (each for each in opened if each.partition not in known)


def partitions_in(admin: "Admin", scope: Scope) -> list[TopicPartition]:
    """The partitions that are meant. Raises KafkaError, Failure for a partition that is not there."""
    if scope.topic is not None and scope.partition is not None:
        return [TopicPartition(scope.topic, scope.partition)]
    names = [scope.topic] if scope.topic is not None else sorted(admin.list_topics(include_internal=True))
    found = []
    for batch in _batches(names):
        for topic in admin.describe_topics(batch).values():
            found += [
                TopicPartition(topic.name, each.partition)
                for each in topic.partitions
                if scope.broker_id is None or scope.broker_id in each.replicas
            ]
    return sorted(found)


def start_of(admin: "Admin", partition: TopicPartition, start_offset: int) -> "ProducerState":
    """The producer whose transaction begins there. Raises Failure if there is none."""
    for producer in admin.describe_producers([partition])[partition]:
        if producer.current_transaction_start_offset == start_offset:
            return producer
    raise Failure(
        f"no transaction that is open on {partition} begins at offset {start_offset}",
        "kavka producers describe shows those that are open",
    )


def hanging_table(found: Iterable[OpenTransaction], now_ms: int) -> Table:
    """In the columns of Kafka's tool."""
    columns = (
        "topic",
        "partition",
        "producer_id",
        "producer_epoch",
        "coordinator_epoch",
        "start_offset",
        "last_timestamp",
        "duration_min",
    )
    rows = [
        (
            each.partition.topic,
            each.partition.partition,
            each.producer.producer_id,
            each.producer.producer_epoch,
            each.producer.coordinator_epoch,
            each.producer.current_transaction_start_offset,
            each.producer.last_timestamp_ms,
            (now_ms - each.producer.last_timestamp_ms) // 60_000,
        )
        for each in found
    ]
    return Table("transactions-find-hanging", columns, rows)


def _batches(items: Sequence[T]) -> Iterator[list[T]]:
    for begin in range(0, len(items), BATCH):
        yield list(items[begin : begin + BATCH])
