"""A network client and a scripted broker on one thread, and what was called back."""

from collections.abc import Callable
from typing import Any

from kavka.client import ClientSettings, NetworkClient, Node
from kavka.protocol.messages.heartbeat import HeartbeatRequest
from tests.support.processes import wait_until
from tests.support.scripted_broker import ScriptedBroker, Visitor

TIMEOUT_S = 60.0
HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
SETTINGS = ClientSettings(
    discover_versions=False, reconnect_backoff_ms=1, reconnect_backoff_max_ms=1, request_timeout_ms=60_000
)


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now_ms = 1000.0

    def __call__(self) -> float:
        return self.now_ms


class Line:
    """A client, a broker, and what was called back."""

    def __init__(self, settings: ClientSettings, clock: Callable[[], float] | None = None) -> None:
        self.client = NetworkClient(settings) if clock is None else NetworkClient(settings, now_ms=clock)
        self.broker = ScriptedBroker()
        self.answers: list[Any] = []

    @property
    def node(self) -> Node:
        return self.broker.node

    def until(self, condition: Callable[[], object]) -> None:
        def met() -> bool:
            self.client.poll(5)
            return bool(condition())

        wait_until(met, TIMEOUT_S, lambda: f"answers: {self.answers}")

    def connect(self) -> Visitor:
        self.until(lambda: self.client.ready(self.node))
        return self.broker.accept()

    def send(self, request: Any = HEARTBEAT, **options: Any) -> None:
        self.client.send(self.node, request, self.answers.append, **options)

    def one_answer(self) -> Any:
        self.until(lambda: self.answers)
        (answer,) = self.answers
        self.answers.clear()
        return answer
