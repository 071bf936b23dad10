"""Listeners that are no more, or not ready: nobody serves their clients by less than they ask for."""

from typing import Any

import pytest

from kavka.broker.metrics.registry import Metrics
from kavka.broker.security.gates import Gates
from kavka.broker.security.listener_transports import ListenerTransports
from kavka.broker.services import Services
from kavka.broker.settings.dynamic_config import DynamicConfig
from kavka.broker.waiting.timer import Timer
from kavka.cluster.registry.memory import MemoryEnsemble, MemoryRegistry
from kavka.config.broker_config import BrokerConfig
from kavka.config.errors import ConfigError
from tests.support.network_stage import LISTENER, PEER, FakeSocket, Stage
from tests.support.registries import Clock


def test_who_comes_by_a_listener_that_is_not_known_is_closed() -> None:
    deaths: list[BaseException] = []
    stage = Stage(transport=ListenerTransports(Metrics(), deaths.append).of(LISTENER))
    client: Any = FakeSocket()
    assert stage.limits.take_place(LISTENER)
    assert stage.limits.admit(LISTENER, PEER)
    stage.thread.adopt(client, PEER, LISTENER)
    stage.loop.settle()
    assert client.closed
    assert stage.thread.connections == {}
    assert stage.limits.total == 0


def test_no_listener_with_sasl_is_opened_while_the_users_are_not_known_and_nobody_waits_for_them() -> None:
    """A login would wait for ZooKeeper on a thread that serves everybody."""
    registry = MemoryRegistry(MemoryEnsemble(Clock()))
    services, timer = Services(), Timer(lambda _: None)
    services.registry, services.metrics, services.now_ms = registry, Metrics(), Clock()
    services.config = DynamicConfig(BrokerConfig(), 1)
    gates = Gates(services, timer, lambda: 0)
    asked = BrokerConfig(
        {
            "listeners": "SASL_PLAINTEXT://:9092",
            "security.inter.broker.protocol": "SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "SCRAM-SHA-256",
            "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256",
        }
    )
    registry.lose()
    with pytest.raises(ConfigError, match="nobody could log in by SASL"):
        gates.prepare(asked)
    services.registry = MemoryRegistry(MemoryEnsemble(Clock()))
    services.scram_credentials = None
    gates.prepare(asked)
    gates.stop()
