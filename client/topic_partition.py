"""A partition's name."""

from typing import NamedTuple


class TopicPartition(NamedTuple):
    """A partition of a topic. Immutable; equal to, and hashed as, the plain tuple.

    partition = TopicPartition("visits", 0)
    print(partition == ("visits", 0), f"{partition}")
    """

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
