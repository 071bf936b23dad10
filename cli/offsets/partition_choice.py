"""Which partitions `kavka offsets get` asks about, in the words of Kafka's GetOffsetShell.

--topic-partitions 'visits:0,orders-.*:2-5,:0,logs'     TOPIC-REGEX[:N | :N-M | :N- | :-M], M not counted
--topic 'visits|orders' --partitions 0,2
"""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

_RULE: Final = re.compile(r"([^:,]*)(?::(?:([0-9]+)|([0-9]*)-([0-9]*))?)?")
_FROM_0_ON: Final = range(2**31)


class Rule(NamedTuple):
    """Topics whose whole name matches, and of these some partitions."""

    topic: re.Pattern[str]
    partitions: range | frozenset[int] = _FROM_0_ON


class Choice:
    """What is meant by one rule or another. Immutable."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._rules: Final = tuple(rules)

    def has_topic(self, topic: str) -> bool:
        """Whether any partition of a topic may be meant."""
        return any(rule.topic.fullmatch(topic) for rule in self._rules)

    def has(self, topic: str, partition: int) -> bool:
        """Whether a partition is meant."""
        return any(partition in rule.partitions and rule.topic.fullmatch(topic) for rule in self._rules)


def chosen(topic_partitions: str | None, topic: str | None, partitions: str | None) -> Choice:
    """What the flags mean; all partitions without any. Raises ValueError."""
    if topic_partitions is not None:
        if topic is not None or partitions is not None:
            raise ValueError("--topic-partitions cannot be used with --topic or --partitions")
        return Choice([_rule(text) for text in topic_partitions.split(",")])
    numbers = _FROM_0_ON if not partitions else frozenset(map(_number, partitions.split(",")))
    return Choice([Rule(_pattern((topic or ".*").replace(",", "|").replace(" ", "")), numbers)])


def _rule(text: str) -> Rule:
    match = _RULE.fullmatch(text)
    if match is None:
        raise ValueError(f"--topic-partitions: {text!r} is no TOPIC:PARTITION, TOPIC:FROM-TO or TOPIC")
    name, number, low, high = match.groups()
    topic = _pattern(name or ".*")
    if number is not None:
        return Rule(topic, range(int(number), int(number) + 1))
    if low is None:
        return Rule(topic)
    return Rule(topic, range(int(low or 0), int(high) if high else _FROM_0_ON.stop))


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise ValueError(f"{text!r} is no regular expression: {error}") from None


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"--partitions: {text!r} is no partition's number")
    return int(text)
