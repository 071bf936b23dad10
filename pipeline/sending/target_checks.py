"""What would go wrong with old records in a topic: found out before the first one is sent."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from kavka.client import Admin, ConfigResource
from kavka.client.api_errors import UnknownTopicOrPartitionError
from kavka.pipeline.lake.entries import DataFile
from kavka.pipeline.sending.target_partitions import AS_SOURCE

_SETTINGS: Final = (
    "cleanup.policy",
    "message.timestamp.type",
    "message.timestamp.before.max.ms",
    "message.timestamp.after.max.ms",
    "retention.ms",
    "retention.bytes",
)


class Load(NamedTuple):
    """What is to be sent: times in milliseconds (None: no row has one), the bytes of its files, source partitions."""

    oldest_ms: int | None
    newest_ms: int | None
    size_bytes: int
    partitions: frozenset[int]


def load_of(files: Mapping[int, Sequence[DataFile]], from_ms: int | None, to_ms: int | None) -> Load:
    """Of files by source partition, as far as they have rows of that time. Rows from before 1970 go as those of now."""
    every = {each.path: each for found in files.values() for each in found}.values()
    first_ms = max(from_ms or 0, 0)
    oldest = [each.min_timestamp_us // 1000 for each in every if each.min_timestamp_us is not None]
    newest = [each.max_timestamp_us // 1000 for each in every if each.max_timestamp_us is not None]
    return Load(
        min((max(each, first_ms) for each in oldest if each >= 0 or first_ms), default=None),
        max((each if to_ms is None else min(each, to_ms - 1) for each in newest if each >= 0), default=None),
        sum(each.size_bytes for each in every),
        frozenset(files),
    )


class Target(NamedTuple):
    """A topic as it was found: one that was made anew under its name has another id."""

    topic_id: str
    partitions: int


class TargetError(Exception):
    """A topic is not one that the rows can go to as they are; the message says why, and what to do."""


def checked_target(admin: Admin, topic: str, load: Load, way: str, now_ms: int) -> Target:
    """The topic, which can take it all. Raises TargetError with all that is wrong with it, KafkaError."""
    resource = ConfigResource.topic(topic)
    try:
        described = admin.describe_topics([topic])[topic]
    except UnknownTopicOrPartitionError:
        most = max(load.partitions, default=0) + 1
        raise TargetError(f"there is no topic {topic!r}: create it, with {most} partitions") from None
    count = len(described.partitions)
    found = admin.describe_configs([resource], names=_SETTINGS)[resource]
    problems = problems_of({name: entry.value or "" for name, entry in found.items()}, count, load, way, now_ms)
    if problems:
        raise TargetError(f"topic {topic!r}: {'; '.join(problems)}")
    return Target(described.topic_id.hex(), count)


def problems_of(settings: Mapping[str, str], count: int, load: Load, way: str, now_ms: int) -> list[str]:
    """What is wrong, each with what to do; none: it can go."""
    problems = []
    most = max(load.partitions, default=0)
    if way == AS_SOURCE and most >= count:
        problems.append(f"it has {count} partitions, rows are of partition {most}: add some, or choose them by key")
    if settings.get("message.timestamp.type") == "LogAppendTime":
        problems.append("message.timestamp.type=LogAppendTime takes the records' times away: set CreateTime")
    if load.oldest_ms is None or load.newest_ms is None:
        return problems
    age_ms, ahead_ms = now_ms - load.oldest_ms, load.newest_ms - now_ms
    if age_ms > _limit(settings, "message.timestamp.before.max.ms"):
        problems.append(f"message.timestamp.before.max.ms refuses records of {age_ms} ms ago: raise it")
    if ahead_ms > _limit(settings, "message.timestamp.after.max.ms"):
        problems.append(f"message.timestamp.after.max.ms refuses records of {ahead_ms} ms ahead: raise it")
    if "delete" in settings.get("cleanup.policy", "delete"):
        if age_ms > _limit(settings, "retention.ms"):
            problems.append(f"retention.ms deletes records of {age_ms} ms ago: raise it, to -1 for no limit")
        if load.size_bytes > _limit(settings, "retention.bytes") * max(len(load.partitions), 1):
            problems.append(f"retention.bytes keeps less than the {load.size_bytes} bytes that are to come: raise it")
    return problems


def _limit(settings: Mapping[str, str], name: str) -> float:
    """A setting's number; none where it is not there or negative."""
    try:
        value = int(settings.get(name, ""))
    except ValueError:
        return float("inf")
    return float("inf") if value < 0 else value
