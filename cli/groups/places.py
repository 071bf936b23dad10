"""Topics and partitions as they are named on the command line: `orders`, `orders:0,1`."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from kavka.cli.failing import Failure
from kavka.cli.parsing import WRONG_USAGE

if TYPE_CHECKING:
    from kavka.client import Admin
    from kavka.client.topic_partition import TopicPartition

_PLACE: Final = re.compile(r"(?P<topic>[^:]+)(?::(?P<partitions>\d{1,9}(?:,\d{1,9})*))?")


def named_places(texts: Iterable[str]) -> dict[str, list[int] | None]:
    """Topics with the partitions that are named of each, None for all. Raises Failure."""
    found: dict[str, list[int] | None] = {}
    for text in texts:
        match = _PLACE.fullmatch(text)
        if match is None:
            raise Failure(f"--topic {text!r} names no partitions", "write TOPIC or TOPIC:0,1,2", WRONG_USAGE)
        topic, numbers = match["topic"], match["partitions"]
        before = found.get(topic, [])
        if numbers is None or before is None:
            found[topic] = None
        else:
            found[topic] = sorted({*before, *map(int, numbers.split(","))})
    return found


def partitions_of(admin: "Admin", places: dict[str, list[int] | None]) -> "list[TopicPartition]":
    """The partitions of these places. Raises Failure for those that are not there, KafkaError for unknown topics."""
    from kavka.client.topic_partition import TopicPartition

    described = admin.describe_topics(list(places)) if places else {}
    found = []
    for topic, wanted in places.items():
        there = {info.partition for info in described[topic].partitions}
        missing = [number for number in wanted or () if number not in there]
        if missing:
            raise Failure(f"{topic} has no partition {missing[0]}", f"it has {len(there)}, counted from 0")
        found += [TopicPartition(topic, number) for number in sorted(there if wanted is None else wanted)]
    return found
