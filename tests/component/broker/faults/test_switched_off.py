"""A broker without faults: nothing of their code, of their threads or of their ways is there."""

import subprocess
import sys
from pathlib import Path

import pytest

from kavka.broker.faults.control import FaultControl
from kavka.broker.faults.session import WatchedSession
from kavka.broker.requests.session import Session
from kavka.config.broker_config import BrokerConfig
from kavka.config.errors import ConfigError
from kavka.protocol.errors import ErrorCode
from tests.support.running_broker import HOST, RunningBroker, threads
from tests.support.wire import RawClient

SERVES_ONCE = """
import sys
from pathlib import Path
from tempfile import mkdtemp
from tests.support.running_broker import HOST, RunningBroker
from tests.support.wire import RawClient

with RunningBroker(Path(mkdtemp()), {"kavka.faults.enable": sys.argv[1]}) as running:
    with RawClient(HOST, running.port) as client:
        client.create_topic("t")
        assert client.produce("t", b"x").error_code == 0
print(*[name for name in sys.modules if name.startswith("kavka.broker.faults")])
"""


def imported(enabled: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", SERVES_ONCE, enabled], capture_output=True, text=True, timeout=300, check=True
    )
    return done.stdout.split()


def test_a_broker_without_faults_imports_none_of_it() -> None:
    assert imported("false") == []
    assert "kavka.broker.faults.door" in imported("true")


def test_sessions_prepare_requests_only_where_there_are_no_faults(tmp_path: Path) -> None:
    for faults, expected, prepared in ((None, Session, True), (FaultControl(), WatchedSession, False)):
        with RunningBroker(tmp_path / str(prepared), faults=faults) as running, RawClient(HOST, running.port) as client:
            client.create_topic("t")
            client.produce("t", b"x")
            (thread,) = [each for each in running.broker._sockets.network_threads if each.connections]
            (connection,) = thread.connections.values()
            assert type(connection.session) is expected
            assert (0 in connection.session.prepared) is prepared


def test_faults_are_switched_at_the_start_only(tmp_path: Path) -> None:
    with RunningBroker(tmp_path) as running:
        for name, value in (("kavka.faults.enable", "true"), ("kavka.faults.port", "1234")):
            assert running.alter({name: value}).error_code == ErrorCode.INVALID_REQUEST
        assert threads("kavka.faults") == 0


@pytest.mark.parametrize("port", ["-1", "65536", "x"])
def test_the_doors_port_is_a_port(port: str) -> None:
    with pytest.raises(ConfigError, match=r"kavka\.faults\.port"):
        BrokerConfig({"kavka.faults.port": port})
