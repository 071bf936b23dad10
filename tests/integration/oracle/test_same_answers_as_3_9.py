"""Raw requests to Kavka and to Apache Kafka 3.9: the answers must be the same, but for a table of reasons."""

import re
from collections.abc import Iterator

import pytest

from tests.integration.oracle.answers.comparing import KNOWN, Met, unexpected, unneeded
from tests.integration.oracle.answers.scenarios import scenarios_for
from tests.integration.oracle.answers.stage import KAFKA_39, SCENARIOS, Scenario
from tests.support.kafka_process import ZooKeeperKafka
from tests.support.wire import Wire

pytestmark = [pytest.mark.java, pytest.mark.slow]


@pytest.fixture(scope="module")
def kafka(kafka39: ZooKeeperKafka) -> Iterator[Wire]:
    with Wire(kafka39.host, kafka39.port) as client:
        yield client


@pytest.mark.parametrize("scenario", scenarios_for(KAFKA_39))
def test_kavka_answers_as_kafka_3_9(scenario: Scenario, kavka: Wire, kafka: Wire, met: Met) -> None:
    assert unexpected(scenario, KAFKA_39, kavka, kafka, met) == []


def test_what_is_known_to_differ_from_kafka_3_9_does(met: Met) -> None:
    assert unneeded(KAFKA_39, met) == []


def test_every_known_difference_names_a_scenario_and_a_reason() -> None:
    unused = [row for row in KNOWN if not any(re.fullmatch(row.scenario, each.name) for each in SCENARIOS)]
    assert unused == []
    assert all(row.difference and row.reason for row in KNOWN)
