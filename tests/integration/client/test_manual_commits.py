"""The example that commits by hand stores every record, and once where nothing crashes."""

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from examples.manual_commits.consume import archive
from kavka.client.topic_partition import TopicPartition
from tests.integration.client.test_consuming import produce


@pytest.fixture
def partitions(topic: str, bootstrap: str) -> list[TopicPartition]:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 2, 1)])[topic].result(60)
    return [TopicPartition(topic, number) for number in range(2)]


def test_what_was_stored_is_committed_and_read_no_more(
    bootstrap: str, topic: str, partitions: list[TopicPartition], tmp_path: Path
) -> None:
    for partition in partitions:
        produce(bootstrap, partition, 700)
    into = tmp_path / "visits.txt"
    assert archive(bootstrap, topic, topic, into, idle_s=5) == 1_400
    produce(bootstrap, partitions[0], 3)
    assert archive(bootstrap, topic, topic, into, idle_s=5) == 3
    lines = into.read_text().splitlines()
    assert len(set(lines)) == len(lines) == 1_403
    assert lines[-1] == f"{topic}-0@702 2"
