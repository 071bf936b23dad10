"""Kafka's performance tools against a real broker process: many records, every acknowledgement counted."""

import re

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.support.java import run_java
from tests.support.server import RunningServer
from tests.support.topics import create_topic

pytestmark = pytest.mark.java
RECORDS = 100_000


@pytest.mark.parametrize("codec", ["none", "lz4", "zstd"])
def test_every_record_of_producer_performance_is_in_the_log(broker: RunningServer, topic: str, codec: str) -> None:
    create_topic(broker, topic, partitions=3)
    arguments = ["--bootstrap-server", broker.bootstrap, "--topic", topic, "--num-records", str(RECORDS)]
    arguments += ["--record-size", "100", "--throughput", "-1"]
    arguments += ["--command-property", f"compression.type={codec}", "--command-property", "linger.ms=5"]
    output = run_java("org.apache.kafka.tools.ProducerPerformance", arguments)

    sent = re.findall(r"(\d+) records sent", output)
    assert int(sent[-1]) == RECORDS
    assert _records_in_log(broker, topic, partitions=3) == RECORDS


def _records_in_log(broker: RunningServer, topic: str, partitions: int) -> int:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "count"})
    ends = [consumer.get_watermark_offsets(TopicPartition(topic, part), 10.0) for part in range(partitions)]
    consumer.close()
    return sum(end - start for start, end in ends)
