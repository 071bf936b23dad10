"""Listeners that are no more, or not ready: nobody serves their clients by less than they ask for."""

import subprocess
import sys
import textwrap
from pathlib import Path
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
from tests.support.certificates import PASSWORD, Authority
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


UNLOADED = """
    import os, resource, sys
    from kavka.broker.metrics.registry import Metrics
    from kavka.broker.security.listener_transports import ListenerTransports
    from kavka.config.broker_config import BrokerConfig
    from tests.support.network_stage import LISTENER, PEER, FakeSocket, Stage

    listener, *store = sys.argv[1:]
    late = [f"kavka.broker.network.{each}" for each in ("authentication", "tls_reading")]
    for name in late:
        sys.modules.pop(name, None)
    settings = {"listeners": listener, "security.inter.broker.protocol": listener.partition(":")[0]}
    config = BrokerConfig(settings | dict(zip(store[::2], store[1::2])))
    transports = ListenerTransports(Metrics(), print)
    transports.prepare(config, config.listeners)
    stage = Stage(transport=transports.of(config.listeners[0].name))
    assert stage.limits.take_place(LISTENER)
    assert stage.limits.admit(LISTENER, PEER)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    try:
        while True:
            os.open(os.devnull, os.O_RDONLY)
    except OSError:
        pass
    stage.thread.adopt(FakeSocket(), PEER, LISTENER)
    stage.loop.settle()
    assert len(stage.thread.connections) == 1
    print("good")
"""


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SSL"])
def test_the_first_client_of_a_guarded_listener_needs_no_descriptor_but_its_own(tmp_path: Path, protocol: str) -> None:
    """Else its place would be taken for good, and its socket open: nobody would see to either."""
    authority = Authority()
    store = authority.issue("broker").write_pkcs12(tmp_path / "keys.p12")
    settings = ["ssl.keystore.location", str(store), "ssl.keystore.password", PASSWORD] if protocol == "SSL" else []
    program = [sys.executable, "-c", textwrap.dedent(UNLOADED), f"{protocol}://127.0.0.1:0", *settings]
    run = subprocess.run(program, capture_output=True, text=True, timeout=200, check=False)
    assert (run.returncode, run.stdout.strip()) == (0, "good"), run.stderr


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
