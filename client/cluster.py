"""The cluster as its metadata last told of it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from kavka.client.node import Node
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.schema import ZERO_UUID, Uuid

NO_LEADER: Final = -1
UNKNOWN_EPOCH: Final = -1
_EMPTY: Final[Mapping[Any, Any]] = MappingProxyType({})


class PartitionInfo(NamedTuple):
    """Who has a partition. `leader_id` is -1 while it has no leader, `leader_epoch` -1 where brokers tell none.

    for number, partition in consumer.partitions_for("visits").items():
        print(number, partition.leader_id, partition.replicas)
    """

    leader_id: int
    leader_epoch: int
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    offline_replicas: tuple[int, ...] = ()


class TopicInfo(NamedTuple):
    """A topic. One that could not be described has the broker's `error_code`, and no partitions.

    `id` is the sixteen bytes that messages carry; all zero where brokers know no ids.

        for name, topic in consumer.list_topics().items():
            print(name, len(topic.partitions))
    """

    name: str
    id: Uuid
    error_code: int
    is_internal: bool
    partitions: Mapping[int, PartitionInfo]


class Cluster:
    """A snapshot of nodes and topics, as far as they were asked for. Immutable: any thread may read it.

    `version` counts up with each update; `names` has the topics by their ids. Before the first update there are no
    nodes, and `version` is 0. Partitioners and assignors are given one:

        class ToTheLast:
            def partition(self, topic, key, key_bytes, value, value_bytes, cluster, partition_key):
                return max(cluster.topics[topic].partitions)

        with Producer(bootstrap_servers="localhost:9092", partitioner_class=ToTheLast) as producer:
            producer.send("visits", b"/start")
    """

    __slots__ = ("cluster_id", "controller_id", "names", "nodes", "topics", "version")

    def __init__(
        self,
        cluster_id: str | None = None,
        controller_id: int = -1,
        nodes: Mapping[int, Node] = _EMPTY,
        topics: Mapping[str, TopicInfo] = _EMPTY,
        version: int = 0,
    ) -> None:
        self.cluster_id: Final = cluster_id
        self.controller_id: Final = controller_id
        self.nodes: Final = nodes
        self.topics: Final = topics
        self.names: Final[Mapping[Uuid, str]] = {
            topic.id: topic.name for topic in topics.values() if topic.id != ZERO_UUID
        }
        self.version: Final = version

    def partition(self, partition: TopicPartition) -> PartitionInfo | None:
        """What is known of a partition; None for nothing."""
        topic = self.topics.get(partition[0])
        return topic.partitions.get(partition[1]) if topic is not None else None

    def leader(self, partition: TopicPartition) -> Node | None:
        """The partition's leader; None while it has none, or none that is known."""
        info = self.partition(partition)
        return self.nodes.get(info.leader_id) if info is not None else None

    @property
    def controller(self) -> Node | None:
        """The node to send the controller's requests to: it, or in KRaft a broker that forwards them."""
        return self.nodes.get(self.controller_id)
