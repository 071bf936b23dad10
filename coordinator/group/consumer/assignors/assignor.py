"""What an assignor is, and which there are."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from kavka.coordinator.group.consumer.assignment import Assignment
from kavka.coordinator.group.consumer.assignors.ranges import assign_ranges
from kavka.coordinator.group.consumer.assignors.subscriber import Subscriber
from kavka.coordinator.group.consumer.assignors.uniform import assign_uniformly

log = logging.getLogger(__name__)

Assign: TypeAlias = Callable[[Sequence[Subscriber], Mapping[bytes, int]], dict[str, Assignment]]
"""From members and the partition counts of all topics they are subscribed to: each member's assignment."""


class Assignor(NamedTuple):
    """An assignor under the name by which members ask for it."""

    name: str
    assign: Assign


UNIFORM: Final = Assignor("uniform", assign_uniformly)
RANGE: Final = Assignor("range", assign_ranges)

_PACKAGE: Final = "org.apache.kafka.coordinator.group.assignor."
_KNOWN: Final = {
    "uniform": UNIFORM,
    "range": RANGE,
    f"{_PACKAGE}UniformAssignor": UNIFORM,
    f"{_PACKAGE}RangeAssignor": RANGE,
}


def assignors_of(setting: Iterable[str]) -> dict[str, Assignor]:
    """Those of `group.consumer.assignors` by name, the default first.

    Java classes of a user's own can't run here; they are left out with a warning. If none remains, uniform and range
    serve.
    """
    found: dict[str, Assignor] = {}
    for name in setting:
        assignor = _KNOWN.get(name)
        if assignor is None:
            log.warning("group.consumer.assignors names %s, which is not an assignor of this broker: left out", name)
        else:
            found[assignor.name] = assignor
    return found or {UNIFORM.name: UNIFORM, RANGE.name: RANGE}
