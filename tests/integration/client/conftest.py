"""Kavka's own client against Kavka, Apache Kafka 3.9 with ZooKeeper, and Apache Kafka 4.3.

Every test that takes `broker` runs once for each; `-k kavka` or `-k kafka-4.3` chooses. The brokers are started when
the first test needs them and shared by all of the session, so a test has topics and groups of its own (`topic`). It may
freeze a broker, or kill and start it again (only Kavka is up again at once): a worker's tests run one after another.
Who needs other settings starts one of its own (`own_broker`).
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.integration.conftest import PROMPT, TESTED
from tests.support import maven
from tests.support.client_brokers import ALL
from tests.support.group_members import Group
from tests.support.kafka_process import KRaftKafka, ZooKeeperKafka
from tests.support.kavka_process import KavkaProcess
from tests.support.server import RunningServer

_FIXTURES = {"kavka": "kavka", "kafka-3.9": "kafka39", "kafka-4.3": "kafka43"}
_PROMPT_GROUPS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "10000",
}


@pytest.fixture(scope="session")
def kavka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KavkaProcess]:
    """A Kavka for the whole session."""
    with KavkaProcess(tmp_path_factory.mktemp("kavka"), _PROMPT_GROUPS) as process:
        yield process


@pytest.fixture(scope="session", params=ALL)
def broker(request: pytest.FixtureRequest) -> RunningServer:
    """Each of the three in turn; `broker.name` says which."""
    server: RunningServer = request.getfixturevalue(_FIXTURES[request.param])
    return server


@pytest.fixture
def bootstrap(broker: RunningServer) -> str:
    """host:port of `broker`."""
    return broker.bootstrap


@pytest.fixture
def own_broker(
    broker_kind: str, tmp_path: Path
) -> Iterator[Callable[[dict[str, str]], KavkaProcess | KRaftKafka | ZooKeeperKafka]]:
    """Starts a broker of the test's own with these settings, to be killed, frozen and restarted."""
    with ExitStack() as stack:

        def start(settings: dict[str, str]) -> KavkaProcess | KRaftKafka | ZooKeeperKafka:
            if broker_kind != "kavka":
                maven.classpath(broker_kind)
            extra = _PROMPT_GROUPS if broker_kind == "kavka" else PROMPT
            server: KavkaProcess | KRaftKafka | ZooKeeperKafka = TESTED[broker_kind](
                tmp_path / "own", {**extra, **settings}
            )
            stack.enter_context(server)
            return server

        yield start


@pytest.fixture
def group(broker: RunningServer, topic: str, tmp_path: Path) -> Iterator[Group]:
    """A group with a topic of its own, whose members end with the test."""
    made = Group(broker, tmp_path, topic)
    yield made
    made.end()


@pytest.fixture(params=ALL)
def broker_kind(request: pytest.FixtureRequest) -> str:
    """Which broker `own_broker` starts: each of the three in turn."""
    kind: str = request.param
    return kind
