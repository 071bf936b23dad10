"""Creating topics, giving them more partitions, deleting them."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kavka.cli.failing import Failure, excused, tried
from kavka.cli.parsing import WRONG_USAGE
from kavka.cli.settings_text import replica_assignment
from kavka.client.admin.types.topics import NewPartitions, NewTopic
from kavka.protocol.schema import uuid_to_text

if TYPE_CHECKING:
    from kavka.cli.showing import Value
    from kavka.client import Admin
    from kavka.client.admin import ItemErrors

EXISTS = "TopicExistsError"
UNKNOWN = "UnknownTopicOrPartitionError"


def new_topics(args: argparse.Namespace) -> list[NewTopic]:
    """The topics that a command line asks for. Raises Failure."""
    names = list(dict.fromkeys([*args.topics, *args.topic]))
    if not names:
        raise Failure("no topic is named", "name it: kavka topics create TOPIC", WRONG_USAGE)
    configs = dict(args.config) or None
    if args.replica_assignment is None:
        partitions, factor = args.partitions or -1, args.replication_factor or -1
        return [NewTopic(name, partitions, factor, configs) for name in names]
    if args.partitions is not None or args.replication_factor is not None:
        message = "--replica-assignment says how many partitions and replicas there are"
        raise Failure(message, "leave --partitions and --replication-factor out", WRONG_USAGE)
    assignment = dict(enumerate(replica_assignment(args.replica_assignment)))
    return [NewTopic(name, configs=configs, assignment=assignment) for name in names]


def created_rows(
    admin: "Admin", topics: Sequence[NewTopic], *, dry_run: bool, if_not_exists: bool
) -> "tuple[list[Sequence[Value]], ItemErrors | None]":
    """A row for each topic that is there now, and what failed."""
    made, failure = tried(lambda: admin.create_topics(topics, validate_only=dry_run))
    there, failure = excused(failure, EXISTS) if if_not_exists else ([], failure)
    rows: list[Sequence[Value]] = []
    for topic in topics:
        if (found := made.get(topic.name)) is not None:
            rows.append((topic.name, *_id_and_size(found), True))
        elif topic.name in there:
            rows.append((topic.name, None, None, None, False))
    return rows, failure


def _id_and_size(found: Any) -> "tuple[Value, Value, Value]":
    is_told = any(found.topic_id)
    size = found.num_partitions if found.num_partitions >= 0 else None
    factor = found.replication_factor if found.replication_factor >= 0 else None
    return uuid_to_text(found.topic_id) if is_told else None, size, factor


def grown(
    admin: "Admin", names: Sequence[str], partitions: int, assignment: str | None, *, dry_run: bool, if_exists: bool
) -> "tuple[list[Sequence[Value]], ItemErrors | None]":
    """Give topics more partitions. A row for each that has them now, and what failed. Raises Failure."""
    topics, unknown = tried(lambda: dict(admin.describe_topics(names)))
    if if_exists:
        _, unknown = excused(unknown, UNKNOWN)
    if unknown is not None:
        raise unknown
    asked = {}
    for name, topic in topics.items():
        count = len(topic.partitions)
        if partitions < count:
            raise Failure(f"{name} has {count} partitions", "partitions can be added, but never taken away")
        asked[name] = NewPartitions(partitions, _added(assignment, count, partitions))
    done, failure = tried(lambda: admin.create_partitions(asked, validate_only=dry_run))
    return [(name, len(topics[name].partitions), partitions) for name in done], failure


def _added(assignment: str | None, count: int, partitions: int) -> list[list[int]] | None:
    """The brokers of the partitions that are new: the list, as in Kafka's tool, has those of the old ones too."""
    if assignment is None:
        return None
    parsed = replica_assignment(assignment)
    if len(parsed) != partitions:
        message = f"--replica-assignment has {len(parsed)} partitions, and --partitions says {partitions}"
        raise Failure(message, "it lists the partitions that are there too", WRONG_USAGE)
    return parsed[count:]


def deleted(
    admin: "Admin", names: Sequence[str], *, if_exists: bool
) -> "tuple[list[Sequence[Value]], ItemErrors | None]":
    """A row for each topic that was deleted, and what failed."""
    done, failure = tried(lambda: dict(admin.delete_topics(names)))
    if if_exists:
        _, failure = excused(failure, UNKNOWN)
    return [(name,) for name in done], failure
