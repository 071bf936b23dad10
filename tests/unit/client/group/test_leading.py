"""What makes the leader of a classic group share out anew."""

from typing import Any

import pytest

from kavka.client.cluster import Cluster, PartitionInfo, TopicInfo
from kavka.client.consumer.group.assignors.loading import load_assignors
from kavka.client.consumer.group.group_settings import GroupSettings
from kavka.client.consumer.group.leading import Leading
from kavka.client.node import Node

BROKERS = (1, 2, 3)


class Topics:
    """Stands for the metadata, and for a subscription to one topic."""

    is_by_pattern = True
    topics = frozenset({"t"})

    def __init__(self) -> None:
        self.cluster = cluster_of(BROKERS)


def cluster_of(brokers: tuple[int, ...], partitions: int = 2, version: int = 1) -> Cluster:
    nodes = {each: Node(each, "h", 9000 + each, f"rack-{each}") for each in brokers}
    infos = {number: PartitionInfo(brokers[0], 1, BROKERS, brokers) for number in range(partitions)}
    return Cluster("c", 1, nodes, {"t": TopicInfo("t", bytes(16), 0, False, infos)}, version)


def leading(client_rack: str | None) -> tuple[Any, Leading]:
    topics: Any = Topics()
    host: Any = None
    settings = GroupSettings("g", assignors=load_assignors(["range"]), client_rack=client_rack)
    made = Leading(settings, topics, topics, host)
    made._shape = made._shape_of(topics.cluster, {"t"})
    return topics, made


@pytest.mark.parametrize("client_rack", [None, "rack-1"])
def test_new_partitions_are_news(client_rack: str | None) -> None:
    topics, made = leading(client_rack)
    topics.cluster = cluster_of(BROKERS, partitions=3, version=2)
    assert made.has_changed()


def test_a_broker_that_restarts_is_no_news_for_who_asks_for_no_rack() -> None:
    topics, made = leading(None)
    topics.cluster = cluster_of(BROKERS[1:], version=2)
    assert not made.has_changed()
    topics.cluster = cluster_of(BROKERS, version=3)
    assert not made.has_changed()


def test_other_racks_are_news_for_who_has_one() -> None:
    topics, made = leading("rack-1")
    topics.cluster = cluster_of(BROKERS[1:], version=2)
    assert made.has_changed()
