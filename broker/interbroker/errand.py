"""A request to another broker that waits to be sent or answered."""

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from kavka.client.call import Sendable, VersionRange

OnAnswer: TypeAlias = Callable[[Any], None]
"""Takes the other broker's answer, or the BrokerError in its place."""


class Errand:
    """Immutable. `deadline_ms` by the monotonic clock; `versions` where not all that both sides know will do."""

    __slots__ = ("deadline_ms", "on_answer", "request", "versions")

    def __init__(
        self, request: Sendable, on_answer: OnAnswer, versions: VersionRange | None, deadline_ms: float
    ) -> None:
        self.request: Final = request
        self.on_answer: Final = on_answer
        self.versions: Final = versions
        self.deadline_ms: Final = deadline_ms
