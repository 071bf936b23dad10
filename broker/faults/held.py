"""What a fault holds back: requests before they run, answers before they leave, connections that get none."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

from kavka.broker.faults.hit import release_records
from kavka.broker.requests.dispatcher import CloseConnection
from kavka.broker.waiting.purgatory import DelayedOperation
from kavka.cluster.promise import Promise

if TYPE_CHECKING:
    from kavka.broker.faults.fault import Fault
    from kavka.broker.network.connection import Connection
    from kavka.broker.requests.handling import Context, Services

LONGEST_HOLD_MS: Final = 3_600_000.0
"""What nobody clears goes on after this, as no test waits so long."""


class Held(DelayedOperation):
    """Waits until its time is up or its fault is cleared, and then goes on. Threads: see DelayedOperation."""

    __slots__ = ("_connection", "_fault", "_go_on")

    def __init__(self, fault: "Fault", connection: "Connection", go_on: Callable[[], object]) -> None:
        super().__init__()
        self._fault = fault
        self._connection = connection
        self._go_on = go_on

    def is_satisfied(self) -> bool:
        return self._fault.is_cleared

    def respond(self) -> None:
        self._connection.parked.pop(self, None)
        self._go_on()

    def park(self, services: "Services", hold_ms: float) -> None:
        """Begin to wait."""
        connection = self._connection
        connection.parked[self] = None
        services.purgatory.park(self, [self._fault.waiting], hold_ms)
        if connection.closed:
            self.cancel()
        elif self.waits_for_client and connection.half_closed:
            self.expire_soon()


class HeldAnswer(Held):
    """An answer that is ready. If its client leaves before it goes, what it pins is let go."""

    __slots__ = ("_response",)

    def __init__(self, fault: "Fault", connection: "Connection", go_on: Callable[[], object], response: Any) -> None:
        super().__init__(fault, connection, go_on)
        self._response = response

    def cancel(self) -> bool:
        is_first = super().cancel()
        if is_first:
            release_records(self._response)
        return is_first


class Swallowed(Held):
    """A connection whose answer was dropped: nothing may come behind it, so it stands still until its client leaves."""

    __slots__ = ()

    waits_for_client: ClassVar = True


def after(hold_ms: float, fault: "Fault", context: "Context", services: "Services", run: Callable[[], Any]) -> Any:
    """A promise of what `run()` gives when the time is up or the fault cleared: on an I/O thread, as any request.

    The connection's next request waits meanwhile.
    """
    begun: Promise[None] = Promise()
    answer = begun.then(lambda _: run())
    connection = context.connection
    go_on = partial(connection.thread.defer, connection, partial(begun.settle_by, lambda: None))
    Held(fault, connection, go_on).park(services, hold_ms)
    return answer


def swallow(fault: "Fault", context: "Context", services: "Services") -> Promise[Any]:
    """A promise that brings no answer: the connection is closed when its client leaves it, or the fault is cleared."""
    never: Promise[Any] = Promise()
    reason = CloseConnection("its answer was dropped")
    Swallowed(fault, context.connection, lambda: never.fail(reason)).park(services, LONGEST_HOLD_MS)
    return never


def thawed(fault: "Fault", answer: Any, context: "Context", services: "Services") -> Any:
    """The same response, or promise of one, but not before the fault is cleared."""
    later: Promise[Any] = Promise(effects_complete=answer.effects_complete if isinstance(answer, Promise) else True)

    def hold(response: Any, error: BaseException | None) -> None:
        go_on = partial(later.settle, response, error)
        HeldAnswer(fault, context.connection, go_on, response).park(services, LONGEST_HOLD_MS)

    if isinstance(answer, Promise):
        answer.watch(hold)
    else:
        hold(answer, None)
    return later
