"""What one administrative call asks: its items, whom they are asked of, and how answers are read. Knows no network.

A call on many items is one operation. The driver (`driver.py`) finds the broker of each item, puts items of one broker
into one request, and asks again for those whose error says so.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from kavka.client.admin.targets import Anywhere, Target
from kavka.client.api_errors import KafkaError, error_of
from kavka.client.call import Sendable, VersionRange
from kavka.client.node import Node
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.errors import ErrorCode

Item = TypeVar("Item", bound=Hashable)
Result = TypeVar("Result")

NO_LIMIT: Final = 2**31 - 1
ALWAYS_RETRIED: Final = frozenset({ErrorCode.THROTTLING_QUOTA_EXCEEDED})


class OneGroupOnlyError(Exception):
    """Raised by a request's builder: in this version the request has room for one item only."""


class Answered(NamedTuple, Generic[Item]):
    """An answer, and what was asked. `version` is the one both went in."""

    body: Any
    items: Sequence[Item]
    node: Node
    version: int


Outcome: TypeAlias = Result | KafkaError


class Operation(Generic[Item, Result]):
    """One API asked for some items. Never changes.

    `request(items, timeout_ms)` makes the request for items of one broker: `timeout_ms` is what the broker may take.
    `read(answered)` yields each item's outcome. What an answer says of other items is ignored, and an item that it
    leaves out has failed. A KafkaError that it raises is the outcome of all items; a RetriableError is retried then.
    """

    __slots__ = (
        "at_once",
        "group",
        "items",
        "name",
        "read",
        "repeatable",
        "request",
        "retried",
        "settled",
        "settled_as",
        "target",
        "versions",
    )

    def __init__(
        self,
        name: str,
        items: Iterable[Item],
        *,
        request: Callable[[Sequence[Item], int], Sendable],
        read: Callable[[Answered[Item]], Iterable[tuple[Item, Outcome[Result]]]],
        target: Target | Callable[[Item], Target] = Anywhere.ANY,
        versions: VersionRange | Callable[[Sequence[Item]], VersionRange] | None = None,
        group: Callable[[Item], Hashable] | None = None,
        at_once: int = NO_LIMIT,
        retried: frozenset[ErrorCode] = ALWAYS_RETRIED,
        repeatable: bool | Callable[[Item], bool] = True,
        settled: frozenset[ErrorCode] = frozenset(),
        settled_as: Result | None = None,
    ) -> None:
        """`target`: whom an item is asked of. `group`: items of one request are equal in this. `at_once`: how many.

        `retried`: error codes after which an item is asked again, beside those that say that its target has moved.
        `repeatable`: whether an item may be asked again when nobody knows what has been done: a connection ended, or it
        took the broker too long. False where twice is another thing than once, or where the second time may mean what
        was not there the first time. Java's client asks again in any case.
        `settled`: error codes that mean, after that, that it had been done the first time; `settled_as` is its result.
        """
        self.name: Final = name
        self.items: Final = tuple(dict.fromkeys(items))
        self.request: Final = request
        self.read: Final = read
        self.target: Final[Callable[[Item], Target]] = target if callable(target) else lambda _: target
        self.versions: Final[Callable[[Sequence[Item]], VersionRange | None]] = (
            versions if callable(versions) else lambda _: versions
        )
        self.group: Final[Callable[[Item], Hashable]] = group if group is not None else lambda _: None
        self.at_once: Final = at_once
        self.retried: Final = retried
        self.repeatable: Final[Callable[[Item], bool]] = repeatable if callable(repeatable) else lambda _: repeatable
        self.settled: Final = settled
        self.settled_as: Final = settled_as


def outcome(code: int, message: str | None, result: Result) -> Outcome[Result]:
    """The result, or the error that the code stands for."""
    return error_of(code, message) if code != ErrorCode.NONE else result


def error_or(row: Any, result: Result) -> Outcome[Result]:
    """The result, or the error that a row of an answer carries, with its message if rows of its kind have any."""
    return outcome(row.error_code, getattr(row, "error_message", None), result)


def check(code: int, message: str | None = None) -> None:
    """Raise what an answer's own error code stands for, if any: it holds for all items."""
    if code != ErrorCode.NONE:
        raise error_of(code, message)


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Partitions' numbers by their topics, in the order given."""
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return topics
