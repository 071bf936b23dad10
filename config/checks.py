"""What a value must satisfy. A check says what it expects in the words Kafka's tools show; `str(check)` is for docs."""

from __future__ import annotations

import re
from typing import Any, Final, Protocol

Problem = tuple[object, str]


class Check(Protocol):
    def problem(self, value: Any) -> Problem | None:
        """The offending value and what is expected instead, or None if all is right."""


class Range:
    """A number of at least `low` and, if given, at most `high`. Null passes."""

    __slots__ = ("high", "low")

    def __init__(self, low: float, high: float | None = None) -> None:
        self.low = low
        self.high = high

    def problem(self, value: Any) -> Problem | None:
        if value is None:
            return None
        if value < self.low:
            return value, f"Value must be at least {self.low}"
        if self.high is not None and value > self.high:
            return value, f"Value must be no more than {self.high}"
        return None

    def __str__(self) -> str:
        return f"[{self.low},...]" if self.high is None else f"[{self.low},...,{self.high}]"


class GzipLevel:
    """1 to 9, or -1 for the codec's own default (KIP-390)."""

    __slots__ = ()

    def problem(self, value: Any) -> Problem | None:
        if value == -1 or 1 <= value <= 9:
            return None
        return value, "Value must be between 1 and 9 or equal to -1"

    def __str__(self) -> str:
        return "[1,...,9] or -1"


class OneOf:
    """One of the given words; null passes."""

    __slots__ = ("any_case", "words")

    def __init__(self, *words: str, any_case: bool = False) -> None:
        self.words = words
        self.any_case = any_case

    def problem(self, value: Any) -> Problem | None:
        if value is None or value in self.words or (self.any_case and value.upper() in self.words):
            return None
        how = " (case insensitive)" if self.any_case else ""
        return value, f"String must be one of{how}: {', '.join(self.words)}"

    def __str__(self) -> str:
        return f"{'(case insensitive) ' if self.any_case else ''}[{', '.join(self.words)}]"


class EachOneOf:
    """A list of the given words only."""

    __slots__ = ("words",)

    def __init__(self, *words: str) -> None:
        self.words = words

    def problem(self, value: Any) -> Problem | None:
        for word in value or ():
            if word not in self.words:
                return word, f"String must be one of: {', '.join(self.words)}"
        return None

    def __str__(self) -> str:
        return f"[{', '.join(self.words)}]"


class ThrottledReplicas:
    """`*`, or `partition:broker` pairs (KIP-73)."""

    __slots__ = ()
    PAIR: Final = re.compile(r"[0-9]+:[0-9]+", re.ASCII)

    def problem(self, value: Any) -> Problem | None:
        if value == ("*",) or all(self.PAIR.fullmatch(pair) for pair in value):
            return None
        return ",".join(value), (
            "must be the literal '*' or a list of replicas in the following format: "
            "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
        )

    def __str__(self) -> str:
        return "[partitionId]:[brokerId],[partitionId]:[brokerId],..."


class Release:
    """A release by which brokers talk to each other: 3.9, or one of its steps, 3.9-IV0."""

    __slots__ = ()
    STEPS: Final = (
        "0.8.0 0.8.1 0.8.2 0.9.0 0.10.0-IV0 0.10.0-IV1 0.10.1-IV0 0.10.1-IV1 0.10.1-IV2 0.10.2-IV0 0.11.0-IV0 "
        "0.11.0-IV1 0.11.0-IV2 1.0-IV0 1.1-IV0 2.0-IV0 2.0-IV1 2.1-IV0 2.1-IV1 2.1-IV2 2.2-IV0 2.2-IV1 "
        "2.3-IV0 2.3-IV1 2.4-IV0 2.4-IV1 2.5-IV0 2.6-IV0 2.7-IV0 2.7-IV1 2.7-IV2 2.8-IV0 2.8-IV1 3.0-IV0 "
        "3.0-IV1 3.1-IV0 3.2-IV0 3.3-IV0 3.3-IV1 3.3-IV2 3.3-IV3 3.4-IV0 3.5-IV0 3.5-IV1 3.5-IV2 3.6-IV0 "
        "3.6-IV1 3.6-IV2 3.7-IV0 3.7-IV1 3.7-IV2 3.7-IV3 3.7-IV4 3.8-IV0 3.9-IV0 4.0-IV0 4.0-IV1"
    )

    @classmethod
    def step(cls, version: str) -> int:
        """Where a valid version stands among all steps; a release without a step is its last one, as in Kafka."""
        steps = cls.STEPS.split()
        if version in steps:
            return steps.index(version)
        return max(index for index, each in enumerate(steps) if _release_of(each) == _release_of(version))

    def problem(self, value: Any) -> Problem | None:
        steps = self.STEPS.split()
        if value is None or value in steps or (_release_of(value) in map(_release_of, steps) and "-" not in value):
            return None
        return value, f"Version {value} is not a valid version"

    def __str__(self) -> str:
        return f"[{', '.join(self.STEPS.split())}]"


def _release_of(version: str) -> str:
    """`3.9` of `3.9-IV0` or `3.9.1`; releases before 1.0 have three parts (`0.10.2.1` is 0.10.2)."""
    numbers = version.partition("-")[0].split(".")
    return ".".join(numbers[: 3 if numbers[0] == "0" else 2])


def at_least(low: float) -> Range:
    return Range(low)


def between(low: float, high: float) -> Range:
    return Range(low, high)


POSITIVE: Final = Range(1)
NOT_NEGATIVE: Final = Range(0)
