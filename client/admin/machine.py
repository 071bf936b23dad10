"""The calls that an admin client has under way: what its thread drives."""

from collections.abc import Callable
from typing import Any, Final

from kavka.client.admin.driver import AdminCall
from kavka.client.admin.ports import CoordinatorsPort
from kavka.client.errors import ClientClosedError
from kavka.client.kafka_error import AuthenticationError


class AdminMachine:
    """A `Machine` of calls, each for itself. Threads: the client's owner alone.

    Bounds: a call for each thread that waits for one.
    """

    def __init__(
        self, coordinators: CoordinatorsPort, take_refusal: Callable[[], AuthenticationError | None] = lambda: None
    ) -> None:
        """`take_refusal()` says, once, why brokers do not let the client in."""
        self._take_refusal: Final = take_refusal
        self._coordinators: Final = coordinators
        self._calls: Final[list[AdminCall[Any, Any]]] = []
        self._is_closed = False

    def begin(self, call: AdminCall[Any, Any]) -> None:
        """Drive it from now on."""
        if self._is_closed:
            call.fail(ClientClosedError("the admin client was closed"))
        else:
            self._calls.append(call)

    def work(self, now_ms: float) -> float:
        """Have each call do what it can."""
        wait_ms = float("inf")
        refusal = self._take_refusal()
        if refusal is not None:
            # Another broker might do what was asked, but no credentials become better by waiting.
            for call in self._calls:
                call.fail(refusal)
        for call in self._calls:
            wait_ms = min(wait_ms, call.work(now_ms))
        self._calls[:] = [call for call in self._calls if not call.is_done]
        # After the calls, which say whose coordinators they need.
        return min(wait_ms, self._coordinators.work(now_ms))

    def closing(self, now_ms: float) -> None:
        """What has begun goes on, until the time that `close` allows is over."""

    def is_idle(self) -> bool:
        """Whether no call is under way."""
        return not self._calls

    def closed(self) -> None:
        """Fail what is not done."""
        self._is_closed = True
        for call in self._calls:
            call.fail(ClientClosedError("the admin client was closed before the call was done"))
        self._calls.clear()
