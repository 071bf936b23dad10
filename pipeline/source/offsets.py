"""Partitions' offsets as Spark's own Kafka source writes them: `{"visits":{"0":23,"1":42}}`.

Checkpoints hold this JSON, so that a query may change from one source to the other and back. Source: JsonUtils of
spark-sql-kafka.
"""

import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

from kavka.client.topic_partition import TopicPartition
from kavka.pipeline.source.errors import OptionError

Offsets: TypeAlias = dict[TopicPartition, int]
Nested: TypeAlias = dict[str, dict[str, int]]


class OffsetRange(NamedTuple):
    """The records of a partition from one offset on, before another."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def size(self) -> int:
        """How many offsets; records may be fewer."""
        return max(self.end - self.start, 0)

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} [{self.start}, {self.end})"


def nested(offsets: Mapping[TopicPartition, int]) -> Nested:
    """By topic, and by the partition's number as text; in their order."""
    found: Nested = {}
    for (topic, partition), offset in sorted(offsets.items()):
        found.setdefault(topic, {})[str(partition)] = offset
    return found


def flat(value: object, what: str) -> Offsets:
    """What `nested` made, or what JSON holds of it. Raises OptionError, which names `what`."""
    found: Offsets = {}
    if not isinstance(value, Mapping):
        raise _no_offsets(what, value)
    for topic, partitions in value.items():
        if not isinstance(partitions, Mapping):
            raise _no_offsets(what, value)
        for partition, number in partitions.items():
            is_number = isinstance(number, int) and not isinstance(number, bool)
            if not is_number or not str(partition).isascii() or not str(partition).isdigit():
                raise _no_offsets(what, value)
            found[TopicPartition(str(topic), int(partition))] = number
    return found


def parsed(text: str, what: str) -> Offsets:
    """As `flat`, of text."""
    try:
        value = json.loads(text)
    except ValueError:
        raise _no_offsets(what, text) from None
    return flat(value, what)


def listed(partitions: Iterable[TopicPartition], most: int = 5) -> str:
    """Some of the partitions, for a message."""
    names = [str(each) for each in sorted(partitions)]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _no_offsets(what: str, value: object) -> OptionError:
    return OptionError(f'{what}: expected JSON like {{"topic":{{"0":23,"1":42}}}}, not {str(value)[:200]}')
