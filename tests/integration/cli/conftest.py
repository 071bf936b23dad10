"""The `kavka` command against Kavka, Apache Kafka 3.9 with ZooKeeper, and Apache Kafka 4.3.

Every test that takes `broker` runs once for each; `-k kavka` or `-k kafka-4.3` chooses. The brokers are started when
the first test needs them and shared by all of the session, so a test has topics and groups of its own (`topic`).
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from kavka.cli.main import main
from tests.support.client_brokers import ALL
from tests.support.java_tools import JavaTools
from tests.support.kavka_process import KavkaProcess
from tests.support.server import RunningServer

_FIXTURES = {"kavka": "kavka", "kafka-3.9": "kafka39", "kafka-4.3": "kafka43"}


class Done(NamedTuple):
    """What came of a command."""

    code: int
    out: str
    err: str


Kavka = Callable[..., Done]


@pytest.fixture(scope="session")
def kavka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KavkaProcess]:
    """A Kavka for the whole session."""
    with KavkaProcess(tmp_path_factory.mktemp("kavka"), {"group.initial.rebalance.delay.ms": "0"}) as process:
        yield process


@pytest.fixture(scope="session", params=ALL)
def broker(request: pytest.FixtureRequest) -> RunningServer:
    """Each of the three in turn; `broker.name` says which."""
    server: RunningServer = request.getfixturevalue(_FIXTURES[request.param])
    return server


@pytest.fixture
def run(broker: RunningServer, capsys: pytest.CaptureFixture[str]) -> Kavka:
    """Runs one command in this process: `run("topics", "list")` asks `broker`."""

    def run_command(*words: str) -> Done:
        capsys.readouterr()
        code = main([*words, "--bootstrap-server", broker.bootstrap])
        printed = capsys.readouterr()
        return Done(code, printed.out, printed.err)

    return run_command


@pytest.fixture(scope="session")
def tools39() -> Iterator[JavaTools]:
    """Kafka 3.9's own tools, in one JVM for the session."""
    with JavaTools("kafka-3.9") as tools:
        yield tools


@pytest.fixture(scope="session")
def tools43() -> Iterator[JavaTools]:
    """Kafka 4.3's own tools, in one JVM for the session."""
    with JavaTools("kafka-4.3") as tools:
        yield tools
