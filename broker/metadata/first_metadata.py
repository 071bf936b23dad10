"""Answers about the cluster by a broker that has just begun: they wait until its controller has told it of one.

A broker of a cluster can be connected to before it can say anything. A client that was told of a cluster without
brokers would take it for the truth.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from kavka.broker.requests.dispatcher import CloseConnection
from kavka.broker.waiting.purgatory import DelayedOperation
from kavka.cluster.promise import Promise

if TYPE_CHECKING:
    from kavka.broker.metadata.metadata_cache import MetadataCache
    from kavka.broker.services import Services

LONGEST_WAIT_MS: Final = 15_000
"""Then the connection is closed, so that the client turns to another broker: half of what it waits by default."""


def once_known(services: "Services", answer: Callable[[], Any]) -> Promise[Any]:
    """A promise of `answer()`, asked for when the first UpdateMetadata has come. Call only while there are no brokers.

    None comes within LONGEST_WAIT_MS: it fails with CloseConnection.
    """
    operation = _FirstMetadata(services.metadata, answer)
    services.purgatory.park(operation, [services.metadata.arrived], LONGEST_WAIT_MS)
    return operation.promise


class _FirstMetadata(DelayedOperation):
    """One request that waits."""

    __slots__ = ("_answer", "_metadata", "promise")

    def __init__(self, metadata: "MetadataCache", answer: Callable[[], Any]) -> None:
        super().__init__()
        self._metadata = metadata
        self._answer = answer
        self.promise: Final[Promise[Any]] = Promise()

    def is_satisfied(self) -> bool:
        return bool(self._metadata.current.brokers)

    def respond(self) -> None:
        if not self.is_satisfied():
            self.promise.fail(CloseConnection("the controller has not told this broker of the cluster yet"))
            return
        # What is answered may itself be owed.
        told: Promise[None] = Promise()
        told.then(lambda _: self._answer()).watch(self.promise.settle)
        told.complete(None)
