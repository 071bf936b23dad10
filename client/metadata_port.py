"""What a network client needs of whoever knows the cluster: the seam between connections and metadata."""

from collections.abc import Sequence
from typing import Any, Protocol

from kavka.client.call import Sendable
from kavka.client.kafka_error import KafkaError
from kavka.client.node import Node


class MetadataPort(Protocol):
    """Knows the nodes, and says when they are to be asked for again. All calls on the client's owning thread."""

    def nodes(self) -> Sequence[Node]:
        """The nodes as far as they are known; until then the bootstrap addresses."""

    def due_in_ms(self, now_ms: float) -> float:
        """How long until metadata are to be fetched: 0 for now, infinity for never. Not asked while a fetch is out."""

    def unreachable(self, now_ms: float) -> bool:
        """None of `nodes()` can be asked now. True when there are others in their place, to be tried at once."""

    def request_update(self) -> object:
        """Something happened upon which what is known may be old: have it fetched anew, when the back-off is over."""

    def request(self) -> Sendable:
        """What to ask for."""

    def updated(self, response: Any, now_ms: float) -> None:
        """The answer to `request()`."""

    def failed(self, error: KafkaError, now_ms: float) -> None:
        """There was no answer; `due_in_ms` says when to try again."""
