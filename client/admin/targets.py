"""Which broker an item is asked of, before it is known where that broker is."""

import enum
from typing import NamedTuple, TypeAlias

from kavka.client.coordinators import CoordinatorKind
from kavka.client.topic_partition import TopicPartition


class Anywhere(enum.Enum):
    """Places of which a cluster has one, or that are all the same."""

    ANY = "any broker"
    """The least loaded one, as whichever is asked can answer, or passes it on."""
    CONTROLLER = "the controller"


class Broker(NamedTuple):
    """One given broker."""

    id: int

    def __str__(self) -> str:
        return f"broker {self.id}"


class Coordinator(NamedTuple):
    """Whoever coordinates a group or a transactional id."""

    kind: CoordinatorKind
    key: str

    def __str__(self) -> str:
        return f"the coordinator of {self.key!r}"


Target: TypeAlias = Anywhere | Broker | Coordinator | TopicPartition
"""A partition stands for its leader."""


def described(target: Target) -> str:
    """The target for a message to people."""
    if isinstance(target, TopicPartition):
        return f"the leader of {target.topic}-{target.partition}"
    return target.value if isinstance(target, Anywhere) else str(target)
