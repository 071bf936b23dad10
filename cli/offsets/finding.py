"""What `kavka offsets get` finds out."""

import argparse
from typing import TYPE_CHECKING, Any, NamedTuple

from kavka.cli.argument_types import wrong
from kavka.cli.failing import Failure, tried
from kavka.cli.offsets.partition_choice import chosen
from kavka.client.admin.types.topics import IsolationLevel, OffsetSpec
from kavka.client.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kavka.client.admin.admin import Admin
    from kavka.client.admin.item_errors import ItemErrors


class OffsetRow(NamedTuple):
    """A partition's offset; time and epoch are None where brokers tell none."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int | None
    leader_epoch: int | None

    def as_object(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "topic": self.topic,
            "partition": self.partition,
            "offset": self.offset,
            "timestamp": self.timestamp_ms,
            "leader_epoch": self.leader_epoch,
        }


def offset_rows(admin: "Admin", args: argparse.Namespace) -> "tuple[list[OffsetRow], ItemErrors | None]":
    """By topic and partition; those without such an offset are left out. What failed comes with what did not.

    Raises Failure where nothing is meant, KafkaError.
    """
    try:
        choice = chosen(args.topic_partitions, args.topic, args.partitions)
    except ValueError as error:
        raise wrong(str(error)) from None
    listed = admin.list_topics(include_internal=not args.exclude_internal_topics)
    names = sorted(filter(choice.has_topic, listed))
    described, _gone = tried(lambda: admin.describe_topics(names)) if names else ({}, None)
    partitions = [
        TopicPartition(topic.name, each.partition)
        for topic in described.values()
        for each in topic.partitions
        if choice.has(topic.name, each.partition)
    ]
    if not partitions:
        raise Failure("no partition is meant by that", "kavka topics list shows the topics")
    spec = args.time if args.time >= 0 else OffsetSpec(args.time)
    found, failure = tried(
        lambda: admin.list_offsets(dict.fromkeys(partitions, spec), isolation_level=IsolationLevel.READ_UNCOMMITTED)
    )
    rows = [
        OffsetRow(
            each.topic,
            each.partition,
            place.offset,
            None if place.timestamp_ms < 0 else place.timestamp_ms,
            None if place.leader_epoch < 0 else place.leader_epoch,
        )
        for each, place in sorted(found.items())
        if place.offset >= 0
    ]
    return rows, failure
