"""docs/compatibility.md shows what Apache Kafka 3.9 and 4.3 serve, as their own ApiVersions say."""

import pytest

from tests.support.compatibility_page import NOT_SERVED, served_apis, versions_text
from tests.support.kafka_process import KafkaProcess, KRaftKafka, ZooKeeperKafka
from tests.support.wire import Wire

pytestmark = [pytest.mark.java, pytest.mark.slow]


def test_the_page_shows_what_kafka_3_9_serves(kafka39: ZooKeeperKafka) -> None:
    assert {row.key: row.kafka39 for row in served_apis()} == _shown(kafka39)


def test_the_page_shows_what_kafka_4_3_serves(kafka43: KRaftKafka) -> None:
    assert {row.key: row.kafka43 for row in served_apis()} == _shown(kafka43)


def _shown(kafka: KafkaProcess) -> dict[int, str]:
    """What it serves of the APIs that the page lists."""
    with Wire(kafka.host, kafka.port) as client:
        ranges = client.ranges
    return {row.key: versions_text(*ranges[row.key]) if row.key in ranges else NOT_SERVED for row in served_apis()}
