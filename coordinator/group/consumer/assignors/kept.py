"""What members may keep of what they have."""

from collections.abc import Mapping, Sequence

from kavka.coordinator.group.consumer.assignment import NOTHING_ASSIGNED, Assignment
from kavka.coordinator.group.consumer.assignors.subscriber import Subscriber


def kept_assignments(
    subscribers: Sequence[Subscriber], partitions: Mapping[bytes, int]
) -> tuple[list[Assignment], dict[bytes, set[int]]]:
    """What each member holds of existing partitions of topics that it is subscribed to; and all those partitions.

    A partition that two members hold (a classic leader's mistake, carried over) stays with the first. An assignment of
    which everything may be kept is kept as the object that it is.
    """
    kept: list[Assignment] = []
    taken: dict[bytes, set[int]] = {}
    for each in subscribers:
        rest: dict[bytes, frozenset[int]] | None = None
        for topic_id, numbers in each.held.items():
            existing = partitions.get(topic_id, 0) if topic_id in each.topics else 0
            others = taken.get(topic_id)
            if existing and max(numbers) < existing and (others is None or others.isdisjoint(numbers)):
                stays = numbers
            else:
                stays = frozenset(number for number in numbers if number < existing and number not in (others or ()))
                rest = dict(each.held) if rest is None else rest
                if stays:
                    rest[topic_id] = stays
                else:
                    del rest[topic_id]
            if others is None:
                taken[topic_id] = set(stays)
            else:
                others |= stays
        kept.append(each.held if rest is None else rest or NOTHING_ASSIGNED)
    return kept, taken
