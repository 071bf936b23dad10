"""The controller's way to its own broker: no network, and a thread, so that no disk holds up the term."""

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from kavka.broker.interbroker.control_queue import ControlQueue
from kavka.broker.interbroker.telling import tell
from kavka.cluster.ports import BrokerPort, ControlRequest, ControlResponse, OnResponse, call
from kavka.cluster.promise import Promise
from kavka.config.thread_names import thread_name
from kavka.protocol.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from kavka.broker.interbroker.control_order import Order
    from kavka.cluster.znodes.broker import BrokerInfo

STOP_PATIENCE_S: Final = 30.0

log = logging.getLogger(__name__)


class OwnOrders:
    """Implements `cluster.ports.BrokerChannels` for one broker, which is told as others are over the network: in order,
    one by one, and in fewer when too many wait. A disk that hangs holds up what is asked of this broker, and not the
    elections of the cluster.

    What was not begun is answered with BROKER_NOT_AVAILABLE when the term ends, or the broker's registration; what was
    begun ends in its time, as what has arrived at another broker does. Whether it still counts then, is decided where
    the controllers' epochs are known.

    Threads: `update_brokers`, `send` and `done_so_far` by the controller's, `start`, `close` and `join` by any; the
    rest by its own, which does what is ordered. `_changed` guards all, and nobody is called with it held.
    """

    def __init__(self, broker_id: int, port: BrokerPort, on_death: Callable[[BaseException], None]) -> None:
        """`on_death` is told, on the thread, what ended it that should not have."""
        self._broker_id: Final = broker_id
        self._port: Final = port
        self._on_death: Final = on_death
        self._changed: Final = threading.Condition(threading.Lock())
        self._queue: Final = ControlQueue()
        self._broker_epoch: int | None = None
        """None while no controller of this process tells it anything."""
        self._sent = 0
        self._unanswered: dict[int, None] = {}
        """The orders without an answer, by their number, oldest first: as many as wait in the queue."""
        self._waiting: deque[tuple[int, Promise[None]]] = deque()
        """Who waits for all orders before one; in order."""
        self._is_closed = False
        self._thread: Final = threading.Thread(target=self._run, name=thread_name("kavka-own-orders"), daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def update_brokers(self, brokers: Iterable["BrokerInfo"]) -> None:
        """These are the live brokers now; none at all when this broker is not the controller any more."""
        epoch = next((info.epoch for info in brokers if info.broker_id == self._broker_id), None)
        with self._changed:
            if epoch == self._broker_epoch:
                return
            self._broker_epoch = epoch
            void = self._queue.clear()
            waiting = self._let_go()
        for order in void:
            tell(order.answer, _gone())
        for promise in waiting:
            promise.complete(None)

    def send(self, broker_id: int, request: ControlRequest, on_response: OnResponse) -> None:
        """Queue a request; `on_response` is called once: on the thread, or here for what is refused or superseded."""
        with self._changed:
            is_known = self._broker_epoch is not None and not self._is_closed
            superseded: list[Order] = []
            if is_known:
                number = self._sent = self._sent + 1
                self._unanswered[number] = None
                superseded = self._queue.put(request, lambda answer: self._answered(number, on_response, answer))
                self._changed.notify()
        if not is_known:
            on_response(_gone())
        if superseded:
            log.warning("orders made fewer: this broker's disks are slow superseded=%d", len(superseded))
        for order in superseded:
            tell(order.answer, BrokerError(ErrorCode.REQUEST_TIMED_OUT, "Newer orders hold now."))

    def done_so_far(self) -> Promise[None] | None:
        """Completed when all that was sent so far is done, or void with its term; None where it is already."""
        with self._changed:
            if self._is_closed or not self._unanswered:
                return None
            promise: Promise[None] = Promise()
            self._waiting.append((self._sent, promise))
        return promise

    def queue_sizes(self) -> dict[int, int]:
        """How many requests this broker is still to be told by its own controller, the one in flight included."""
        with self._changed:
            return {} if self._broker_epoch is None else {self._broker_id: len(self._queue)}

    def close(self) -> None:
        """Drop what was not begun; `on_response` is not called any more. Waits for nothing."""
        with self._changed:
            self._is_closed = True
            waiting = self._let_go()
            self._changed.notify()
        for promise in waiting:
            promise.complete(None)

    def join(self) -> None:
        """Close, and wait for what was begun: STOP_PATIENCE_S at most, for a disk may answer nothing any more."""
        self.close()
        if self._thread.is_alive():
            self._thread.join(STOP_PATIENCE_S)
            if self._thread.is_alive():
                log.error("the stop goes on without what a disk still holds up after %d s", STOP_PATIENCE_S)

    def take(self) -> "Order | None":
        """The next order, which is to be done now; None when there is none, or one is being done."""
        with self._changed:
            return None if self._is_closed else self._queue.take()

    def do(self, order: "Order") -> None:
        """Do what was taken, and say how it went."""
        answer = self._ask(order.request)
        with self._changed:
            self._queue.done()
            if self._is_closed:
                return
        tell(order.answer, answer)

    def _let_go(self) -> list[Promise[None]]:
        """Under `_changed`: who waits need not wait any more."""
        waiting = [promise for _, promise in self._waiting]
        self._waiting.clear()
        return waiting

    def _run(self) -> None:
        try:
            while not self._is_closed:
                order = self.take()
                if order is not None:
                    self.do(order)
                    continue
                with self._changed:
                    self._changed.wait_for(lambda: self._is_closed or len(self._queue))
        except BaseException as failure:
            self._on_death(failure)
            raise

    def _ask(self, request: ControlRequest) -> ControlResponse | BrokerError:
        try:
            return call(self._port, request)
        except BrokerError as refusal:
            return refusal
        except Exception as failure:
            # As where a request of another broker's controller fails: the next one may not.
            log.exception("an order of this broker's controller failed request=%s", type(request).__name__)
            return BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, repr(failure))

    def _answered(self, number: int, on_response: OnResponse, answer: ControlResponse | BrokerError) -> None:
        tell(on_response, answer)
        done: list[Promise[None]] = []
        with self._changed:
            self._unanswered.pop(number, None)
            oldest = next(iter(self._unanswered), self._sent + 1)
            while self._waiting and self._waiting[0][0] < oldest:
                done.append(self._waiting.popleft()[1])
        for promise in done:
            promise.complete(None)


def _gone() -> BrokerError:
    return BrokerError(ErrorCode.BROKER_NOT_AVAILABLE, "This broker has no such registration, or term, any more.")
