"""The inter-broker thread before scripted brokers."""

import queue
import threading
from types import TracebackType
from typing import Any, Self

from kavka.broker.interbroker import InterBroker
from kavka.client import ClientSettings, NetworkClient
from kavka.cluster.znodes.broker import BrokerInfo, Endpoint
from kavka.protocol.messages.leader_and_isr import LeaderAndIsrRequest
from kavka.protocol.messages.update_metadata import UpdateMetadataRequest
from tests.support.scripted_broker import TIMEOUT_S, ScriptedBroker
from tests.support.standing_clock import StandingClock

SETTINGS = ClientSettings(discover_versions=False, reconnect_backoff_ms=1, reconnect_backoff_max_ms=5)


class InterBrokerStage:
    """`with InterBrokerStage() as stage:` runs the thread; brokers made by `broker` are gone with it.

    `clock` is the thread's: it goes on by itself but where a test has it stand still.
    """

    def __init__(self, settings: ClientSettings = SETTINGS) -> None:
        self.deaths: list[BaseException] = []
        self.clock = StandingClock()
        self.inter_broker = InterBroker(
            settings, self.deaths.append, now_ms=lambda: self.clock.monotonic_ns() / 1_000_000
        )
        self.answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._brokers: list[ScriptedBroker] = []

    def __enter__(self) -> Self:
        self.inter_broker.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.inter_broker.stop()
        for broker in self._brokers:
            broker.__exit__(None, None, None)
        assert self.deaths == []

    def broker(self, broker_id: int) -> ScriptedBroker:
        broker = ScriptedBroker(broker_id)
        self._brokers.append(broker)
        return broker

    def go(self, ahead_ms: int) -> None:
        """So much time passes, and the thread is told."""
        self.clock.go(ahead_ms)
        self.inter_broker.wake()

    def answer(self) -> Any:
        """The next outcome that was called back with."""
        return self.answers.get(timeout=TIMEOUT_S)

    def turn(self) -> None:
        """Wait until the thread has done what it could with all that has come so far, twice round."""
        turns = _Turns(2)
        self.inter_broker.add(turns)
        assert turns.done.wait(TIMEOUT_S)
        self.inter_broker.remove(turns)


class _Turns:
    """A sender that counts how often it was asked, and has the thread go on until it was asked often enough."""

    def __init__(self, times: int) -> None:
        self._left = times
        self.done = threading.Event()

    def advance(self, _client: NetworkClient, _now_ms: float) -> float:
        self._left -= 1
        if self._left < 0:
            self.done.set()
            return float("inf")
        return 0.0


def info(broker: ScriptedBroker, epoch: int = 100, listener: str = "PLAINTEXT") -> BrokerInfo:
    """How a scripted broker is registered."""
    node = broker.node
    return BrokerInfo(node.id, (Endpoint(listener, node.host, node.port, "PLAINTEXT"),), epoch=epoch)


def leadership(controller_epoch: int = 1) -> LeaderAndIsrRequest:
    return LeaderAndIsrRequest(
        controller_id=9, controller_epoch=controller_epoch, broker_epoch=100, topic_states=[], live_leaders=[]
    )


def metadata(controller_epoch: int = 1) -> UpdateMetadataRequest:
    return UpdateMetadataRequest(
        controller_id=9, controller_epoch=controller_epoch, broker_epoch=100, topic_states=[], live_brokers=[]
    )
