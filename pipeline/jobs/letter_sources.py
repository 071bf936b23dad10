"""Where dead letters may be sent back to: what they say of that is anybody's word who may write to their topic."""

from collections.abc import Callable
from typing import Final

from kavka.client import Admin
from kavka.client.api_errors import UnknownTopicOrPartitionError

_OWN_PREFIX: Final = "_kavka_"
"""Of topics that are the pipeline's own books."""


def anywhere(topic: str) -> bool:
    """Any topic that is nobody's books."""
    return True


class LetterSources:
    """Looked up as letters name them. Raises KafkaError. Threads: one."""

    def __init__(self, admin: Admin, letters: str, allows: Callable[[str], bool]) -> None:
        """`letters` is the topic that letters lie in, `allows` says whether others may be written to."""
        self._admin: Final = admin
        self._allows: Final = allows
        self._there: Final = frozenset(each for each in admin.list_topics() if each != letters)
        self._counts: Final[dict[str, int]] = {}

    def takes(self, topic: str | None) -> bool:
        """Whether letters go back there: it is there, is meant, and is neither internal nor a marker topic."""
        if topic is None or topic not in self._there or topic.startswith(_OWN_PREFIX):
            return False
        return self._allows(topic) and self._count(topic) > 0

    def partition(self, topic: str, number: int | None) -> int | None:
        """The number, or None, for the key to decide, where the topic has no such partition."""
        return number if number is not None and number < self._count(topic) else None

    def _count(self, topic: str) -> int:
        if topic not in self._counts:
            try:
                found = len(self._admin.describe_topics([topic])[topic].partitions)
            except UnknownTopicOrPartitionError:
                found = 0
            self._counts[topic] = found
        return self._counts[topic]
