"""A member of a consumer group, as the log says it: what it wants, and what it has.

Two records make a member: its metadata (type 5) says what it is subscribed to, its current assignment (type 8) where it
stands on its way to the target. Members are never changed, a new one takes the old one's place.
"""

from enum import IntEnum
from typing import Any, Final, NamedTuple

from kavka.coordinator.group.consumer.assignment import (
    NO_EPOCHS,
    NO_PARTITIONS,
    NOTHING_ASSIGNED,
    Assignment,
    AssignmentEpochs,
)

JOINING: Final = 0
"""The member epoch of a request to join, and of a member that has not got an epoch yet."""
LEAVING: Final = -1
"""The member epoch with which a member leaves for good."""
LEFT_FOR_A_WHILE: Final = -2
"""The member epoch of a static member that has gone and is expected back within its session timeout."""


class MemberState(IntEnum):
    """Where a member stands on its way to the target assignment; the numbers are those of the records."""

    UNKNOWN = 127
    """A later Kafka's. The member is told to give up everything and to start anew."""

    STABLE = 0
    """It has what the target of its epoch gives it."""

    UNREVOKED_PARTITIONS = 1
    """It must give partitions up first, and stays in its epoch until it says that it has."""

    UNRELEASED_PARTITIONS = 2
    """It has reached the target's epoch, and waits for partitions that others have not given up yet."""


class ClassicMetadata(NamedTuple):
    """What is kept of a member that speaks the classic protocol: to serve it, and to make a classic group again."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    """The client's assignors by preference, each with the subscription."""

    @property
    def protocol_name(self) -> str:
        """The name that JoinGroup answers: the member's own first choice."""
        return self.protocols[0][0] if self.protocols else ""


class Member(NamedTuple):
    """One member. Equal members have equal records."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    regex: str = ""
    """The subscribed regular expression, empty for none."""
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    classic: ClassicMetadata | None = None
    """Set for a member that speaks the classic protocol."""

    epoch: int = JOINING
    previous_epoch: int = JOINING
    state: MemberState = MemberState.STABLE
    assigned: Assignment = NOTHING_ASSIGNED
    """What it may consume, and will be told."""
    revoking: Assignment = NOTHING_ASSIGNED
    """What it has to give up, and still holds as far as is known."""
    assignment_epochs: AssignmentEpochs = NO_EPOCHS
    """Since when it has what it has and must give up; what is left out, since its own epoch."""

    @property
    def wishes(self) -> tuple[Any, ...]:
        """What it wants, in the fields' order: what its metadata record says."""
        return self[1:10]

    @property
    def standing(self) -> tuple[Any, ...]:
        """What it has, in the fields' order: what its current assignment record says."""
        return self[10:]

    def assignment_epoch(self, topic_id: bytes, partition: int) -> int | None:
        """The epoch in which it was assigned that partition; None if it neither has it nor must give it up."""
        if partition not in self.assigned.get(topic_id, NO_PARTITIONS) and (
            partition not in self.revoking.get(topic_id, NO_PARTITIONS)
        ):
            return None
        return self._epoch_of(topic_id, partition)

    def epochs_of(self, *assignments: Assignment) -> dict[bytes, dict[int, int]]:
        """The assignment epochs of those partitions, all of which it has."""
        found: dict[bytes, dict[int, int]] = {}
        for assignment in assignments:
            for topic_id, partitions in assignment.items():
                epochs = found.setdefault(topic_id, {})
                for partition in partitions:
                    epochs[partition] = self._epoch_of(topic_id, partition)
        return found

    def _epoch_of(self, topic_id: bytes, partition: int) -> int:
        epochs = self.assignment_epochs.get(topic_id)
        epoch = None if epochs is None else epochs.get(partition)
        return max(self.epoch, JOINING) if epoch is None else epoch

    def is_reconciled_to(self, target_epoch: int) -> bool:
        """Whether it has all that the target of that epoch gives it."""
        return self.state is MemberState.STABLE and self.epoch == target_epoch
