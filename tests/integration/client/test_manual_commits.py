"""The example that commits by hand stores every record, and once where nothing crashes."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from examples.manual_commits.consume import archive
from kavka.client import Consumer, ConsumerRecord
from kavka.client.topic_partition import TopicPartition
from tests.integration.client.test_consuming import produce


@pytest.fixture
def partitions(topic: str, bootstrap: str) -> list[TopicPartition]:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 2, 1)])[topic].result(60)
    return [TopicPartition(topic, number) for number in range(2)]


def patient(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Have no poll end without a record before so many came: a busy machine may be slow with the first ones."""
    polled = Consumer.poll
    left = count

    def poll(consumer: Consumer, timeout_ms: float) -> Sequence[ConsumerRecord]:
        nonlocal left
        records = polled(consumer, timeout_ms)
        while left and not records:
            records = polled(consumer, timeout_ms)
        left -= len(records)
        return records

    monkeypatch.setattr(Consumer, "poll", poll)


def test_what_was_stored_is_committed_and_read_no_more(
    bootstrap: str, topic: str, partitions: list[TopicPartition], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for partition in partitions:
        produce(bootstrap, partition, 700)
    into = tmp_path / "visits.txt"
    with monkeypatch.context() as first:
        patient(first, 1_400)
        assert archive(bootstrap, topic, topic, into, idle_s=1) == 1_400
    produce(bootstrap, partitions[0], 3)
    patient(monkeypatch, 3)
    assert archive(bootstrap, topic, topic, into, idle_s=1) == 3
    lines = into.read_text().splitlines()
    assert len(set(lines)) == len(lines) == 1_403
    assert lines[-1] == f"{topic}-0@702 2"
