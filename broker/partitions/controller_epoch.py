"""Which controller is heard: the latest that has spoken, in whichever of its three requests."""

import threading
from typing import Final

NO_EPOCH: Final = 0


class ControllerEpoch:
    """The highest epoch of a controller that this broker has heard of.

    Threads: any; `_lock` guards `current`, which is read without it.
    """

    __slots__ = ("_lock", "current")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.current = NO_EPOCH

    def admits(self, epoch: int) -> bool:
        """Whether the sender of a request has not been deposed; it is remembered, so that those before it are.

        Ask under the lock that puts what is asked for in order: who was admitted first is then served first.
        """
        with self._lock:
            if epoch < self.current:
                return False
            self.current = epoch
            return True
