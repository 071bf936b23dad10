"""Raw requests to Kavka and to Apache Kafka 4.3: the answers must be the same, but for a table of reasons."""

from collections.abc import Iterator

import pytest

from tests.integration.oracle.answers.comparing import Met, unexpected, unneeded
from tests.integration.oracle.answers.scenarios import scenarios_for
from tests.integration.oracle.answers.stage import KAFKA_43, Scenario
from tests.support.kafka_process import KRaftKafka
from tests.support.wire import Wire

pytestmark = [pytest.mark.java, pytest.mark.slow]


@pytest.fixture(scope="module")
def kafka(kafka43: KRaftKafka) -> Iterator[Wire]:
    with Wire(kafka43.host, kafka43.port) as client:
        yield client


@pytest.mark.parametrize("scenario", scenarios_for(KAFKA_43))
def test_kavka_answers_as_kafka_4_3_in_its_newest_versions(
    scenario: Scenario, kavka: Wire, kafka: Wire, met: Met
) -> None:
    assert unexpected(scenario, KAFKA_43, kavka, kafka, met) == []


def test_what_is_known_to_differ_from_kafka_4_3_does(met: Met) -> None:
    assert unneeded(KAFKA_43, met) == []
