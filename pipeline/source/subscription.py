"""Which partitions are read: `assign`, `subscribe` or `subscribePattern`."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kavka.client.topic_partition import TopicPartition
from kavka.pipeline.source.errors import OptionError

WAYS: Final = ("assign", "subscribe", "subscribePattern")


@dataclass(frozen=True)
class Subscription:
    """One of the three is set. Immutable."""

    assigned: tuple[TopicPartition, ...] = ()
    names: tuple[str, ...] = ()
    pattern: str | None = None

    @property
    def topics(self) -> tuple[str, ...] | None:
        """The topics by name; None where a pattern finds them."""
        if self.pattern is not None:
            return None
        return self.names or tuple(sorted({each.topic for each in self.assigned}))

    def matches(self, topic: str) -> bool:
        """Whether a topic is read, in whole or in part. A pattern is to match the whole name."""
        names = self.topics
        if names is not None:
            return topic in names
        assert self.pattern is not None
        return re.fullmatch(self.pattern, topic) is not None


def subscription_of(options: Mapping[str, str]) -> Subscription:
    """`options` by their names in lower case. Raises OptionError unless exactly one of the three is there and right."""
    given = [name for name in WAYS if name.lower() in options]
    if len(given) != 1:
        told = f"not {' and '.join(given)}" if given else "and none is"
        raise OptionError(f"exactly one of {', '.join(WAYS)} is to be given, {told}")
    text = options[given[0].lower()].strip()
    if not text:
        raise OptionError(f"{given[0]} is empty")
    if given[0] == "assign":
        return Subscription(assigned=_assigned(text))
    if given[0] == "subscribe":
        names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
        if not names:
            raise OptionError("subscribe names no topic")
        return Subscription(names=names)
    try:
        re.compile(text)
    except re.error as error:
        raise OptionError(f"subscribePattern is no regular expression: {error}") from None
    return Subscription(pattern=text)


def _assigned(text: str) -> tuple[TopicPartition, ...]:
    wrong = OptionError(f'assign: expected JSON like {{"topic":[0,1]}}, not {text[:200]}')
    try:
        value = json.loads(text)
    except ValueError:
        raise wrong from None
    found: set[TopicPartition] = set()
    if not isinstance(value, dict):
        raise wrong
    for topic, partitions in value.items():
        if not isinstance(partitions, list):
            raise wrong
        for partition in partitions:
            if not isinstance(partition, int) or isinstance(partition, bool) or partition < 0:
                raise wrong
            found.add(TopicPartition(topic, partition))
    if not found:
        raise wrong
    return tuple(sorted(found))
