"""A snapshot of the cluster: leaders and topics by name and by id."""

from kavka.client.cluster import Cluster, PartitionInfo, TopicInfo
from kavka.client.node import Node
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.schema import ZERO_UUID

ONE = Node(1, "a", 9092)
ID = bytes(range(16))


def cluster() -> Cluster:
    partitions = {0: PartitionInfo(1, 5, (1, 2), (1,), (2,)), 1: PartitionInfo(-1, 6), 2: PartitionInfo(7, 1)}
    topics = {"t": TopicInfo("t", ID, 0, False, partitions), "old": TopicInfo("old", ZERO_UUID, 0, False, {})}
    return Cluster("c", 1, {1: ONE}, topics, 3)


def test_a_leader_is_there_only_when_its_node_is_known() -> None:
    seen = [cluster().leader(TopicPartition("t", partition)) for partition in range(4)]
    assert seen == [ONE, None, None, None]
    assert cluster().leader(TopicPartition("other", 0)) is None


def test_a_partition_is_found_by_the_plain_tuple_too() -> None:
    info = cluster().partition(TopicPartition("t", 0))
    assert info is not None
    assert info.leader_epoch == 5
    assert TopicPartition("t", 0) == ("t", 0)
    assert str(TopicPartition("t", 0)) == "t-0"


def test_topics_are_found_by_their_ids_and_zero_is_none() -> None:
    assert cluster().names == {ID: "t"}


def test_nothing_is_known_at_first() -> None:
    empty = Cluster()
    assert (empty.version, empty.controller, empty.cluster_id, dict(empty.nodes)) == (0, None, None, {})
    assert cluster().controller is ONE
