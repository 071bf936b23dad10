"""Topics as they are: partitions, replicas, settings of their own; and which of them want attention."""

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kavka.cli.failing import excused, tried
from kavka.cli.showing import BAD, WARN, Report, Table, Value, escaped, table_lines
from kavka.cli.topics.naming import chosen
from kavka.client.admin.types.configs import ConfigEntry, ConfigResource, ConfigSource
from kavka.client.admin.types.topics import TopicDescription, TopicPartitionInfo
from kavka.protocol.schema import uuid_to_text

if TYPE_CHECKING:
    from kavka.client import Admin
    from kavka.client.admin import ItemErrors

COLUMNS: Final = (
    "partition",
    "leader",
    "leader_epoch",
    "replicas",
    "isr",
    "offline",
    "elr",
    "last_known_elr",
)
_AS_TOPIC_ONLY: Final = frozenset({ConfigSource.DYNAMIC_TOPIC_CONFIG})


class Partition(NamedTuple):
    """A partition with what is needed to judge it."""

    info: TopicPartitionInfo
    min_isr: int | None
    replica_count: int
    """As many as it is to have: not those that a reassignment adds."""
    is_available: bool

    def is_among(self, kind: str) -> bool:
        """Whether it is one of the partitions that Kafka's tool shows for `--KIND-partitions`."""
        in_sync = len(self.info.isr)
        if kind == "under-replicated":
            return in_sync < self.replica_count
        if kind == "unavailable":
            return not self.is_available
        if self.min_isr is None:
            return False
        return in_sync < self.min_isr if kind == "under-min-isr" else in_sync == self.min_isr


class Topic(NamedTuple):
    """A topic, and the settings that are its own."""

    description: TopicDescription
    partitions: Sequence[Partition]
    configs: Mapping[str, str | None]


def describe(admin: "Admin", args: argparse.Namespace) -> "tuple[Report, ItemErrors | None]":
    """What the command line asks for, and what could not be described. Raises Failure."""
    names: list[Any] = [*args.topic_id]
    if args.topics or args.topic is not None or not args.topic_id:
        names += chosen(admin, args, default_all=True, exclude_internal=args.exclude_internal)
    topics, failure = described(admin, names)
    if args.if_exists:
        _, failure = excused(failure, "UnknownTopicOrPartitionError")
    if args.topics_with_overrides:
        topics = [topic for topic in topics if topic.configs]
    if args.only is not None:
        topics = [only for topic in topics if (only := _only(topic, args.only)).partitions]
    return Report("topics-describe", map(_object, topics), lambda: _lines(topics, args)), failure


def described(admin: "Admin", names: Sequence[Any]) -> "tuple[list[Topic], ItemErrors | None]":
    """Topics by name or id, with all that is asked about them; and what could not be described."""
    found, failure = tried(lambda: admin.describe_topics(names))
    if not found:
        return [], failure
    by_name = {topic.name: topic for topic in found.values()}
    resources = [ConfigResource.topic(name) for name in by_name]
    configs = admin.describe_configs(resources)
    moving = admin.list_partition_reassignments()
    live = {node.id for node in admin.describe_cluster().nodes}
    adding = {(each.topic, each.partition): len(move.adding_replicas) for each, move in moving.items()}
    topics = []
    for name, topic in by_name.items():
        entries = configs.get(ConfigResource.topic(name), {})
        min_isr = _number(entries.get("min.insync.replicas"))
        partitions = [
            Partition(each, min_isr, len(each.replicas) - adding.get((name, each.partition), 0), each.leader_id in live)
            for each in topic.partitions
        ]
        topics.append(Topic(topic, partitions, own_configs(entries)))
    return topics, failure


def all_topics(admin: "Admin", *, exclude_internal: bool = False) -> list[Topic]:
    """Every topic, by name; those that are deleted meanwhile are left out. Raises KafkaError."""
    names = sorted(admin.list_topics(include_internal=not exclude_internal))
    topics, failure = described(admin, names)
    _, failure = excused(failure, "UnknownTopicOrPartitionError")
    if failure is not None:
        raise failure
    return topics


def own_configs(entries: Mapping[str, ConfigEntry]) -> dict[str, str | None]:
    """The settings that a topic has for itself."""
    return {name: entry.value for name, entry in sorted(entries.items()) if entry.source in _AS_TOPIC_ONLY}


def _number(entry: ConfigEntry | None) -> int | None:
    return int(entry.value) if entry is not None and entry.value is not None and entry.value.isdecimal() else None


def _only(topic: Topic, kind: str) -> Topic:
    return topic._replace(partitions=[each for each in topic.partitions if each.is_among(kind)])


def _object(topic: Topic) -> dict[str, Any]:
    description = topic.description
    return {
        "name": description.name,
        "topic_id": uuid_to_text(description.topic_id),
        "is_internal": description.is_internal,
        "partition_count": len(description.partitions),
        "replication_factor": _factor(description),
        "configs": dict(topic.configs),
        "partitions": [dict(zip(COLUMNS, _row(each), strict=True)) for each in topic.partitions],
    }


def _factor(description: TopicDescription) -> int:
    return len(description.partitions[0].replicas) if description.partitions else 0


def _row(partition: Partition) -> list[Value]:
    info = partition.info
    return [
        info.partition,
        info.leader_id if info.leader_id >= 0 else None,
        info.leader_epoch if info.leader_epoch >= 0 else None,
        list(info.replicas),
        list(info.isr),
        list(info.offline_replicas),
        None if info.eligible_leader_replicas is None else list(info.eligible_leader_replicas),
        None if info.last_known_eligible_leader_replicas is None else list(info.last_known_eligible_leader_replicas),
    ]


def _lines(topics: Iterable[Topic], args: argparse.Namespace) -> Iterator[str]:
    for topic in topics:
        description = topic.description
        configs = escaped(",".join(f"{name}={value}" for name, value in topic.configs.items()))
        if args.only is None:
            yield (
                f"{escaped(description.name)}  id {uuid_to_text(description.topic_id)}"
                f"  partitions {len(description.partitions)}  replication factor {_factor(description)}"
                f"{'  internal' if description.is_internal else ''}{f'  configs {configs}' if configs else ''}"
            )
        else:
            yield escaped(description.name)
        if not args.topics_with_overrides:
            by_partition = {each.info.partition: each for each in topic.partitions}
            rows = [_row(each) for each in topic.partitions]
            yield from _indented(table_lines(_trimmed(rows, by_partition)))


def _trimmed(rows: list[list[Value]], by_partition: Mapping[Any, Partition]) -> Table:
    """People see no column that says nothing about any partition."""
    kept = [index for index in range(len(COLUMNS)) if index < 5 or any(row[index] for row in rows)]

    def tint(row: Sequence[Value]) -> str | None:
        partition = by_partition[row[0]]
        if not partition.is_available or partition.is_among("under-min-isr"):
            return BAD
        return WARN if partition.is_among("under-replicated") else None

    columns = [COLUMNS[index] for index in kept]
    return Table("topics-describe", columns, [[row[index] for index in kept] for row in rows], tint)


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)
