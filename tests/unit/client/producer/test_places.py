"""Where records go when others without key stick to a partition of the same topic."""

from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

import pytest

from kavka.client import Producer
from kavka.client.cluster import Cluster, PartitionInfo, TopicInfo

PARTITIONS = 4


@pytest.fixture(params=[False, True], ids=["plain", "serialized"])
def producer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Producer]:
    """One that knows a topic, and whose thread has not begun."""
    staged: dict[str, Any] = {"value_serializer": lambda value: value} if request.param else {}
    made = Producer(bootstrap_servers="127.0.0.1:1", batch_size=300, **staged)
    partitions = {number: PartitionInfo(0, 0) for number in range(PARTITIONS)}
    topic = TopicInfo("birds", bytes(16), 0, False, MappingProxyType(partitions))
    cluster = Cluster(topics={"birds": topic})
    made._metadata.cluster = cluster
    assert made._accumulator.topic("birds", cluster) is not None
    monkeypatch.setattr(made._thread, "start", lambda: None)
    yield made
    made.close(0)


def test_a_key_or_partition_that_was_given_counts_whatever_others_stick_to(producer: Producer) -> None:
    placed: dict[bytes, set[int]] = {}
    for number in range(400):
        producer.send("birds", b"x" * 50)
        key = b"k%d" % (number % 7)
        future = producer.send("birds", b"x" * 50, key=key)
        placed.setdefault(key, set()).add(future.delivery.topic_partition.partition)
        chosen = producer.send("birds", b"x" * 50, partition=number % PARTITIONS)
        assert chosen.delivery.topic_partition.partition == number % PARTITIONS
    assert {key: len(partitions) for key, partitions in placed.items()} == dict.fromkeys(placed, 1)
