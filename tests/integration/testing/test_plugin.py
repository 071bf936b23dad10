"""The pytest plugin in somebody's project: its fixtures under xdist, and what a failed test is told."""

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest

WORKERS = 4
PROJECT = """
import pytest
from kavka.client.api_errors import TopicExistsError


def test_own(kavka_broker):
    kavka_broker.create_topic("orders")
    kavka_broker.produce("orders", ["own"])
    kavka_broker.assert_records("orders", ["own"])
    assert kavka_broker.records("orders").values == [b"own"]


class TestSettings:
    @pytest.fixture
    def kavka_settings(self):
        return {"num.partitions": "5", "auto.create.topics.enable": "true"}

    def test_settings(self, kavka_broker):
        kavka_broker.create_topic("orders", -1)
        (described,) = kavka_broker.admin.describe_topics(["orders"]).values()
        assert len(described.partitions) == 5


@pytest.mark.parametrize("row", range(8))
def test_shared(kavka_shared, row):
    topic = kavka_shared.create_topic("orders")
    assert topic == kavka_shared.named("orders") == kavka_shared.named(topic)
    kavka_shared.produce("orders", [str(row)])
    kavka_shared.assert_records(topic, [str(row)])
    with pytest.raises(TopicExistsError):
        kavka_shared.create_topic("orders")
    with pytest.raises(RuntimeError, match="kavka_broker"):
        kavka_shared.travel(hours=1)


def test_cluster(kavka_cluster):
    two, one = kavka_cluster(2), kavka_cluster(1)
    assert (two.running, one.running) == ([1, 2], [1])
    two.create_topic("orders", replication_factor=2)
    assert one.admin.list_topics() == {}


def test_dead(kavka_broker):
    kavka_broker.hosted.server._thread_died(RuntimeError("out of ideas"))


def test_dead_and_wrong(kavka_broker):
    kavka_broker.hosted.server._thread_died(RuntimeError("out of ideas"))
    assert 1 + 1 == 3


def test_dead_in_a_cluster(kavka_cluster):
    kavka_cluster(2).hosted[2].server._thread_died(RuntimeError("out of ideas"))


def test_killed_is_not_dead(kavka_cluster):
    kavka_cluster(2).kill(2)


def test_compared(kavka_broker):
    kavka_broker.create_topic("orders")
    kavka_broker.produce("orders", [("key", "there")])
    assert kavka_broker.records("orders") == []
"""

ON_A_LOOP = """
import pytest
import pytest_asyncio
from aiokafka import AIOKafkaProducer
from kavka.testing import Broker


@pytest_asyncio.fixture
async def own():
    async with Broker() as broker:
        yield broker


@pytest.mark.asyncio
async def test_on_a_loop(own):
    own.create_topic("orders")
    async with AIOKafkaProducer(bootstrap_servers=own.bootstrap_servers) as producer:
        await producer.send_and_wait("orders", b"own")
    own.assert_records("orders", ["own"])


@pytest.mark.asyncio
async def test_beside_a_loop(kavka_broker):
    kavka_broker.create_topic("orders")
    async with AIOKafkaProducer(bootstrap_servers=kavka_broker.bootstrap_servers) as producer:
        await producer.send_and_wait("orders", b"shared")
    kavka_broker.assert_records("orders", ["shared"])


@pytest.mark.asyncio
async def test_dead_on_a_loop(kavka_broker):
    kavka_broker.hosted.server._thread_died(RuntimeError("out of ideas"))
"""
OWN_NAMES = """
import pytest


@pytest.fixture
def kavka_broker():
    return "the project's own"


@pytest.fixture(scope="session")
def kavka_cluster():
    return ["also its own"]


def test_own_names(kavka_broker, kavka_cluster, kavka_shared):
    assert (kavka_broker, kavka_cluster) == ("the project's own", ["also its own"])
    kavka_shared.create_topic("orders")


class TestAbove:
    @pytest.fixture
    def kavka_shared(self, kavka_shared):
        kavka_shared.create_topic("made")
        return kavka_shared

    def test_above_the_plugins(self, kavka_shared):
        kavka_shared.produce("made", ["x"])
        kavka_shared.assert_records("made", ["x"])
"""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What became of each test of a project, by its name: "" where it passed, else the reason."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "test_orders.py").write_text(PROJECT)
    (folder / "test_loops.py").write_text(ON_A_LOOP)
    (folder / "test_names.py").write_text(OWN_NAMES)
    names = ("kavka.testing.plugin", "xdist.plugin", "pytest_asyncio.plugin", "no:cacheprovider")
    plugins = [word for name in names for word in ("-p", name)]
    report = folder / "report.xml"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, f"-n{WORKERS}", "-q", f"--junitxml={report}", "."],
        cwd=folder,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "", "KAFKA_BROKER_ID": "77"},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert report.exists(), done.stdout + done.stderr
    found: dict[str, str] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        assert case.find("error") is None, done.stdout
        failure = case.find("failure")
        found[case.attrib["name"]] = "" if failure is None else str(failure.text)
    return found


def test_each_fixture_gives_a_broker_under_xdist(outcomes: dict[str, str]) -> None:
    passed = {name for name, reason in outcomes.items() if not reason}
    shared = {f"test_shared[{row}]" for row in range(8)}
    plain = {"test_own", "test_settings", "test_cluster", "test_killed_is_not_dead"}
    on_loops = {"test_on_a_loop", "test_beside_a_loop"}
    own_names = {"test_own_names", "test_above_the_plugins"}
    assert passed == plain | shared | on_loops | own_names


def test_a_test_whose_broker_died_fails_and_says_why(outcomes: dict[str, str]) -> None:
    for name in ("test_dead", "test_dead_in_a_cluster", "test_dead_on_a_loop"):
        assert "BrokerDiedError" in outcomes[name]
        assert "out of ideas" in outcomes[name]


def test_one_that_failed_by_itself_shows_its_own_reason_and_the_brokers(outcomes: dict[str, str]) -> None:
    assert "assert (1 + 1) == 3" in outcomes["test_dead_and_wrong"]
    assert "out of ideas" in outcomes["test_dead_and_wrong"]


def test_a_comparison_that_fails_shows_what_is_in_the_topic(outcomes: dict[str, str]) -> None:
    assert "topic orders: 1 records in 1 partition" in outcomes["test_compared"]
    assert "'key': 'there'" in outcomes["test_compared"]
