"""The topics and partitions that a request for a group's offsets names: which exist and may be read by the client.

The others are refused here, and the coordinator never hears of them.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from kavka.broker.security.acl import Operation, topic
from kavka.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from kavka.broker.metadata.metadata_cache import MetadataSnapshot
    from kavka.broker.requests.handling import Context


class NamedPartition(Protocol):
    """A partition of OffsetCommit, TxnOffsetCommit, OffsetDelete."""

    partition_index: int


P = TypeVar("P", bound=NamedPartition)


class NamedTopic(Protocol[P]):
    """A topic of those."""

    name: str
    partitions: list[P]


T = TypeVar("T", bound=NamedTopic)  # type: ignore[type-arg]  # a bound cannot be generic in turn


def readable_topics(
    topics: Iterable[T],
    context: "Context",
    snapshot: "MetadataSnapshot",
    refuse: Callable[[T, Sequence[int], ErrorCode], None],
) -> list[T]:
    """The topics that exist and that the client may read, left with the partitions that exist.

    `refuse(topic, partition indexes, code)` is told of the others. A topic without a name is one whose id is unknown.
    """
    accepted = []
    for each in topics:
        code = _refusal(each.name, context)
        known = snapshot.topic(each.name)
        if code is ErrorCode.NONE and known is not None:
            missing = [
                part.partition_index for part in each.partitions if known.partition(part.partition_index) is None
            ]
            if missing:
                refuse(each, missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                gone = set(missing)
                each.partitions = [part for part in each.partitions if part.partition_index not in gone]
            if each.partitions:
                accepted.append(each)
        else:
            indexes = [part.partition_index for part in each.partitions]
            refuse(each, indexes, code or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return accepted


def merge_answers(refused: list[T], answered: list[T]) -> list[T]:
    """The answers for what didn't get to the coordinator, and behind them, as in Kafka, those for what did."""
    if not refused:
        return answered
    by_name = {each.name: each for each in refused}
    for each in answered:
        known = by_name.get(each.name)
        if known is None:
            refused.append(each)
        else:
            known.partitions += each.partitions
    return refused


def _refusal(name: str, context: "Context") -> ErrorCode:
    """What is said before a topic is looked up; NONE: nothing."""
    if not name:
        return ErrorCode.UNKNOWN_TOPIC_ID
    return ErrorCode.NONE if context.allows(Operation.READ, topic(name)) else ErrorCode.TOPIC_AUTHORIZATION_FAILED
