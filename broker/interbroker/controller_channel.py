"""Requests to whoever is the controller, however often that changes."""

import logging
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kavka.broker.interbroker.errand import Errand, OnAnswer
from kavka.broker.interbroker.telling import tell
from kavka.client import ClientError, DisconnectedError, ExponentialBackoff, NetworkClient, Node
from kavka.client.call import Sendable, VersionRange
from kavka.protocol.errors import BrokerError, EncodeError, ErrorCode

if TYPE_CHECKING:
    from kavka.broker.interbroker.inter_broker import InterBroker

MAX_QUEUED: Final = 1_000
RETRY_MS: Final = 50.0
RETRY_MAX_MS: Final = 1_000.0
LOOK_AGAIN_MS: Final = 100.0
"""How often to ask who is the controller while one is waited for."""

log = logging.getLogger(__name__)


class ControllerChannel:
    """Sends requests in order, one in flight, on a connection of its own (`lane`).

    A request is sent again until it is answered: to the controller that is known then, after a pause that grows, when
    nobody is, when the one who was asked is not or the connection ended. So it may be done twice, as with Kafka.
    One channel for each matter that is not to wait for others.

    Threads: `send` and `close` by any. `_lock` guards the attributes below it, but that `_asked` is set by the thread
    alone, and read by it without. Nobody is called back with it held;
    `find_controller` is called on the `inter-broker` thread, and answers come there, or in `send` when it refuses.
    """

    def __init__(
        self,
        inter_broker: "InterBroker",
        find_controller: Callable[[], Node | None],
        *,
        lane: str,
        timeout_ms: float,
    ) -> None:
        """`find_controller()` says who it is as far as this broker knows. `timeout_ms` is request.timeout.ms, for each
        time that a request is sent.
        """
        self._inter_broker: Final = inter_broker
        self._find_controller: Final = find_controller
        self._lane: Final = lane
        self._timeout_ms: Final = timeout_ms
        self._backoff: Final = ExponentialBackoff(RETRY_MS, RETRY_MAX_MS)
        self._lock: Final = threading.Lock()
        self._errands: deque[Errand] = deque()
        self._asked: Node | None = None
        """The first errand is in flight there."""
        self._failures = 0
        self._retry_at_ms = 0.0
        self._is_closed = False
        inter_broker.add(self)

    def send(
        self,
        request: Sendable,
        on_answer: OnAnswer,
        *,
        versions: VersionRange | None = None,
        timeout_ms: float | None = None,
    ) -> None:
        """Have the controller asked; `on_answer` is called once, with its answer or a BrokerError.

        The error is REQUEST_TIMED_OUT after `timeout_ms` (None: it is tried for as long as this broker runs), or when
        too many requests wait; UNSUPPORTED_VERSION when the controller has none of `versions`; BROKER_NOT_AVAILABLE
        when this broker stops.
        """
        deadline_ms = float("inf") if timeout_ms is None else self._inter_broker.now_ms() + timeout_ms
        with self._lock:
            is_closed = self._is_closed
            is_taken = not is_closed and len(self._errands) < MAX_QUEUED
            if is_taken:
                self._errands.append(Errand(request, on_answer, versions, deadline_ms))
        if is_taken:
            self._inter_broker.wake()
        else:
            on_answer(_stopping() if is_closed else _late("Too many requests wait for the controller."))

    def close(self) -> None:
        """Send nothing more, and answer all that wait."""
        with self._lock:
            self._is_closed = True
            waiting = list(self._errands)
            self._errands.clear()
        self._inter_broker.remove(self)
        for errand in waiting:
            tell(errand.on_answer, _stopping())

    def advance(self, client: NetworkClient, now_ms: float) -> float:
        """Send what can be sent now: `inter_broker.Sender`."""
        for errand in self._take_late(now_ms):
            tell(errand.on_answer, _late("The controller did not answer in time."))
        with self._lock:
            if not self._errands:
                return float("inf")
            first = self._errands[0]
            until_late_ms = min(errand.deadline_ms for errand in self._errands) - now_ms
            pause_ms = self._retry_at_ms - now_ms
        if self._asked is not None:
            return min(self._look_after(client, self._asked), until_late_ms)
        if pause_ms > 0:
            return min(pause_ms, until_late_ms)
        found = self._find_controller()
        if found is None:
            self._failed("no controller is known")
            return 0.0
        node = found._replace(lane=self._lane)
        if not client.ready(node):
            # Another one may be elected meanwhile.
            return min(client.delay_ms(node), until_late_ms, LOOK_AGAIN_MS)
        self._send(client, node, first, min(self._timeout_ms, first.deadline_ms - now_ms))
        return min(until_late_ms, LOOK_AGAIN_MS)

    def _look_after(self, client: NetworkClient, asked: Node) -> float:
        """A request is in flight: who does not answer and is not the controller any more need not be waited for."""
        found = self._find_controller()
        if found is not None and found.id != asked.id:
            client.disconnect(asked, f"broker {found.id} is the controller now")
            return 0.0
        return LOOK_AGAIN_MS

    def _send(self, client: NetworkClient, node: Node, errand: Errand, timeout_ms: float) -> None:
        self._asked = node
        try:
            answered = partial(self._answered, errand)
            client.send(node, errand.request, answered, versions=errand.versions, timeout_ms=timeout_ms)
        except (ClientError, EncodeError) as failure:
            log.error("the controller cannot be asked controller=%d error=%r", node.id, str(failure))
            self._finish(errand, BrokerError(ErrorCode.UNSUPPORTED_VERSION, str(failure)))

    def _answered(self, errand: Errand, answer: Any) -> None:
        if isinstance(answer, DisconnectedError):
            self._failed(str(answer))
        elif says_not_controller(answer):
            self._failed("who was asked is not the controller")
        else:
            self._finish(errand, answer)

    def _failed(self, reason: str) -> None:
        """Try again, later, whoever is the controller then."""
        with self._lock:
            self._asked = None
            self._failures += 1
            if self._failures == 1:
                log.info("the controller is asked again lane=%s reason=%r", self._lane, reason)
            self._retry_at_ms = self._inter_broker.now_ms() + self._backoff.delay_ms(self._failures)

    def _finish(self, errand: Errand, answer: Any) -> None:
        with self._lock:
            self._asked = None
            self._failures = 0
            self._retry_at_ms = 0.0
            if self._errands and self._errands[0] is errand:
                self._errands.popleft()
                is_owed = True
            else:
                # It was answered when the channel was closed.
                is_owed = False
        if is_owed:
            tell(errand.on_answer, answer)
        self._inter_broker.wake()

    def _take_late(self, now_ms: float) -> list[Errand]:
        """Those whose time is up, out of the queue; the one in flight has its own limit, no later."""
        with self._lock:
            first_waiting = 0 if self._asked is None else 1
            late = [errand for errand in list(self._errands)[first_waiting:] if errand.deadline_ms <= now_ms]
            for errand in late:
                self._errands.remove(errand)
        return late


def says_not_controller(answer: Any) -> bool:
    """Whether an answer, or the answer for one of what was asked for, says that another broker is the controller."""
    if getattr(answer, "error_code", 0) == ErrorCode.NOT_CONTROLLER:
        return True
    items = next((getattr(answer, name) for name in ("topics", "results", "responses") if hasattr(answer, name)), ())
    return any(getattr(item, "error_code", 0) == ErrorCode.NOT_CONTROLLER for item in items)


def _late(why: str) -> BrokerError:
    return BrokerError(ErrorCode.REQUEST_TIMED_OUT, why)


def _stopping() -> BrokerError:
    return BrokerError(ErrorCode.BROKER_NOT_AVAILABLE, "This broker stops.")
