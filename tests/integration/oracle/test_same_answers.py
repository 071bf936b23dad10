"""Raw requests to Kavka and to Apache Kafka 3.9 and 4.3: the answers must be the same, but for a table of reasons."""

import importlib
import re
from collections.abc import Iterator

import pytest

from tests.integration.oracle.answers.comparing import KNOWN, unexpected
from tests.integration.oracle.answers.stage import KAFKA_39, KAFKA_43, SCENARIOS, Scenario
from tests.support.kafka_process import KRaftKafka, ZooKeeperKafka
from tests.support.kavka_process import KavkaProcess
from tests.support.wire import Wire

for _module in (
    "cluster",
    "configs",
    "connection",
    "coordinator_aborts",
    "fetch",
    "groups",
    "late_members",
    "offsets",
    "produce",
    "reading",
    "topics",
    "transactions",
):
    importlib.import_module(f"tests.integration.oracle.answers.{_module}")

pytestmark = [pytest.mark.java, pytest.mark.slow]
SAME_AS_KAFKAS = {
    "broker.id": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}
"""What Kafka's test processes are told too."""


@pytest.fixture(scope="module")
def kavka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    with (
        KavkaProcess(tmp_path_factory.mktemp("kavka"), SAME_AS_KAFKAS) as process,
        Wire(process.host, process.port) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def kafka_39(kafka39: ZooKeeperKafka) -> Iterator[Wire]:
    with Wire(kafka39.host, kafka39.port) as client:
        yield client


@pytest.fixture(scope="module")
def kafka_43(kafka43: KRaftKafka) -> Iterator[Wire]:
    with Wire(kafka43.host, kafka43.port) as client:
        yield client


def scenarios_for(oracle: str) -> list[object]:
    return [pytest.param(each, id=each.name) for each in SCENARIOS if oracle in each.oracles]


@pytest.mark.parametrize("scenario", scenarios_for(KAFKA_39))
def test_kavka_answers_as_kafka_3_9(scenario: Scenario, kavka: Wire, kafka_39: Wire) -> None:
    assert unexpected(scenario, KAFKA_39, kavka, kafka_39) == []


@pytest.mark.parametrize("scenario", scenarios_for(KAFKA_43))
def test_kavka_answers_as_kafka_4_3_in_its_newest_versions(scenario: Scenario, kavka: Wire, kafka_43: Wire) -> None:
    assert unexpected(scenario, KAFKA_43, kavka, kafka_43) == []


def test_every_known_difference_names_a_scenario_and_a_reason() -> None:
    unused = [row for row in KNOWN if not any(re.fullmatch(row.scenario, each.name) for each in SCENARIOS)]
    assert unused == []
    assert all(row.difference and row.reason for row in KNOWN)
