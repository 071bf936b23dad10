"""What assignors know of a member."""

from typing import NamedTuple

from kavka.coordinator.group.consumer.assignment import Assignment


class Subscriber(NamedTuple):
    """A member that wants partitions."""

    member_id: str
    instance_id: str | None
    topics: frozenset[bytes]
    """The ids of the existing topics that it is subscribed to."""
    held: Assignment
    """What the last target gave it; topics may have gone meanwhile."""
