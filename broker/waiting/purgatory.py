"""Where operations wait that cannot be answered yet: acks=all produces, long polls, joins.

An operation watches one or more watch lists; whoever changes what an operation waits for checks the list afterwards,
with no lock held. Watching is: try, register, try again, so that a change between the two is never lost. Whoever
finds the operation satisfied first, or the timer, completes it: once.
"""

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from typing import ClassVar, Final, Generic, Protocol, TypeVar

from kavka.broker.waiting.timer import Timer, TimerEntry
from kavka.cluster.promise import Promise

T = TypeVar("T")

log = logging.getLogger(__name__)


class Watcher(Protocol):
    """Who hears of changes in a watch list."""

    def try_complete(self, changed: "WatchList | None" = None) -> bool:
        """There may be something new; True when that ended a wait. Any thread, with no lock held."""


class Queue(Protocol):
    """Where others wait than operations."""

    @property
    def entries(self) -> Collection[object]:
        """Those who wait."""

    def expire_all(self) -> None:
        """Answer all of them: the broker stops."""


class WatchList:
    """The operations that wait for one thing (a partition's end, its high watermark, a group's members).

    Threads: any; each access is one dictionary operation, atomic by itself.
    """

    __slots__ = ("operations",)

    def __init__(self) -> None:
        self.operations: dict[Watcher, None] = {}

    def check(self) -> int:
        """Complete the operations that are satisfied now; how many. Call with no lock held."""
        completed = 0
        for operation in list(self.operations):
            try:
                completed += operation.try_complete(self)
            except Exception:
                # Not the fault of the one who checks, whose own work goes on.
                log.exception("a delayed operation failed operation=%s", type(operation).__name__)
        return completed


class DelayedOperation(ABC):
    """One operation that waits. `respond` runs exactly once, unless `cancel` came first.

    Threads: `try_complete`, `expire` and `cancel` by any thread; `_claim` is taken by the one that ends the wait
    and is never released.
    """

    __slots__ = ("_claim", "_entry", "_purgatory", "_watching", "expired")

    waits_for_client: ClassVar = False
    """Whether it waits for its client's sake alone: in vain, and maybe for ever, when that one may have left."""

    def __init__(self) -> None:
        self._claim: Final = threading.Lock()
        self._entry: TimerEntry | None = None
        self._purgatory: Purgatory | None = None
        self._watching: Sequence[WatchList] = ()
        self.expired = False

    @abstractmethod
    def is_satisfied(self) -> bool:
        """Whether it need not wait any longer. Called often, by any thread: cheap, without side effects that matter."""

    @abstractmethod
    def respond(self) -> None:
        """End the wait with what there is now; `expired` says that the time ran out."""

    def is_satisfied_by(self, changed: WatchList) -> bool:
        """The same, asked because of a change in `changed`, one of what it watches.

        Whoever watches much looks at that alone: each change is told of, and `is_satisfied` was asked when it began.
        """
        return self.is_satisfied()

    def try_complete(self, changed: WatchList | None = None) -> bool:
        """Respond if satisfied; True when this call was the one that did. `changed`: what has, if only one thing."""
        satisfied = self.is_satisfied() if changed is None else self.is_satisfied_by(changed)
        if not satisfied or not self._claim.acquire(blocking=False):
            return False
        self._leave()
        self.respond()
        return True

    def expire(self) -> None:
        """Respond because the time is up."""
        if self._claim.acquire(blocking=False):
            self.expired = True
            self._leave()
            self.respond()

    def expire_soon(self) -> None:
        """Have the timer's thread respond as if the time were up. Any thread; nothing happens before it is parked."""
        if self._purgatory is not None:
            self._purgatory.expire_soon(self)

    def cancel(self) -> bool:
        """End the wait without a response (the client is gone); False when it had ended."""
        if not self._claim.acquire(blocking=False):
            return False
        self._leave()
        return True

    @property
    def ended(self) -> bool:
        """Whether the wait is over."""
        return self._claim.locked()

    def _leave(self) -> None:
        watching, self._watching = self._watching, ()
        for watched in watching:
            watched.operations.pop(self, None)
        # The entry knows the operation too: without this each wait would be left to the garbage collector.
        entry, self._entry = self._entry, None
        if self._purgatory is not None:
            self._purgatory.forget(self, entry)


class Purgatory:
    """Parks operations until they are satisfied or their time is up.

    Threads: any. The timer's thread expires operations.
    """

    def __init__(self, timer: Timer) -> None:
        self.timer: Final = timer
        self._parked: dict[DelayedOperation, None] = {}
        self._queues: dict[Queue, None] = {}

    def park(self, operation: DelayedOperation, watching: Sequence[WatchList], timeout_ms: float) -> bool:
        """Let `operation` wait for a change in `watching`, `timeout_ms` at most; True when it has ended already.

        One that watches nothing here must hear of changes by itself from before this call on.
        """
        if operation.try_complete():
            return True
        operation._watching = watching
        for watched in watching:
            watched.operations[operation] = None
        # Who watches in a way of his own did so before.
        if not (watching and operation.try_complete()):
            operation._purgatory = self
            self._parked[operation] = None
            operation._entry = self.timer.schedule(operation.expire, timeout_ms)
            if not operation.ended:
                return False
        # It ended while it was being registered and scheduled: whoever ended it could not undo what came after.
        for watched in watching:
            watched.operations.pop(operation, None)
        entry, operation._entry = operation._entry, None
        self.forget(operation, entry)
        return True

    def within(self, timeout_ms: float, promise: Promise[T], late: Callable[[], T]) -> Promise[T]:
        """What `promise` brings, or what `late()` gives where that one is not settled after `timeout_ms`.

        `late` is short: it runs on the timer's thread, or that of `expire_all`. What it raises fails the promise.
        """
        if promise.done:
            return promise
        operation = _Bounded(promise, late)
        settled = WatchList()
        promise.watch(lambda *_: settled.check())
        self.park(operation, [settled], timeout_ms)
        return operation.promise

    def forget(self, operation: DelayedOperation, entry: TimerEntry | None) -> None:
        """An operation has ended: nothing of it stays here."""
        self._parked.pop(operation, None)
        if entry is not None:
            self.timer.cancel(entry)

    def expire_soon(self, operation: DelayedOperation) -> None:
        """Expire an operation before its time, on the timer's thread."""
        self.timer.schedule(operation.expire, 0)

    def expire_all(self) -> None:
        """Respond to everything that waits: the broker stops."""
        for operation in list(self._parked):
            operation.expire()
        for queue in list(self._queues):
            queue.expire_all()

    def entered(self, queue: Queue) -> None:
        """Somebody waits in a partition's queue."""
        self._queues[queue] = None

    def left(self, queue: Queue) -> None:
        """Nobody does any more."""
        self._queues.pop(queue, None)

    @property
    def size(self) -> int:
        """How many operations wait."""
        return len(self._parked) + sum([len(queue.entries) for queue in list(self._queues)])


class _Bounded(DelayedOperation, Generic[T]):
    """A wait for one promise."""

    __slots__ = ("_awaited", "_late", "promise")

    def __init__(self, awaited: Promise[T], late: Callable[[], T]) -> None:
        super().__init__()
        self._awaited = awaited
        self._late = late
        self.promise: Final[Promise[T]] = Promise()

    def is_satisfied(self) -> bool:
        return self._awaited.done

    def respond(self) -> None:
        self.promise.settle_by(self._awaited.result if self._awaited.done else self._late)
