"""Which controller is heard: the latest that has spoken, in whichever of its three requests."""

import threading
from typing import Final

NO_EPOCH: Final = 0
UNNUMBERED: Final = -1
"""The number of what comes over no connection: this broker's own controller calls."""


class ControllerEpoch:
    """The highest epoch of a controller that this broker has heard of, and its latest request.

    A controller that gives up a connection sends its request once more on the next one, and goes on; the first may have
    arrived all the same, and be run when much has come after it. UpdateMetadata would bring back who lived then, and a
    StopReplica delete a topic's successor: neither names an epoch that tells. But Kafka's clients, and Kavka's, number
    their requests over all their connections, and those to a later registration of this broker anew. What is meant for
    an earlier registration comes late, too: while this broker has none it can't tell by its own.

    Threads: any; `_lock` guards all, `current` is read without it.
    """

    __slots__ = ("_latest", "_lock", "current")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._latest = (NO_EPOCH, -1, UNNUMBERED)
        """Of the request that was admitted last: its controller's epoch, this broker's in it, its number."""
        self.current = NO_EPOCH

    def admits(self, epoch: int, broker_epoch: int = -1, number: int = UNNUMBERED) -> bool:
        """Whether the sender of a request has not been deposed, nor has sent another one since that came before it.

        It is remembered, so that those before it are not admitted. `number`: the request's correlation id.

        Ask under the lock that puts what is asked for in order: who was admitted first is then served first.
        """
        with self._lock:
            if epoch < self.current:
                return False
            controller, own, latest = self._latest
            if epoch == controller and (
                -1 < broker_epoch < own or (broker_epoch == own and UNNUMBERED < number < latest)
            ):
                return False
            self._latest = epoch, broker_epoch, number
            self.current = epoch
            return True
