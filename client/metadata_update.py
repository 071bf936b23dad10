"""From one snapshot of the cluster to the next: by an answer to Metadata, or by leaders that errors named. Pure."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple

from kavka.client.cluster import UNKNOWN_EPOCH, Cluster, PartitionInfo, TopicInfo
from kavka.client.node import Node
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.errors import ErrorCode
from kavka.protocol.schema import ZERO_UUID

_ASK_AGAIN: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.LISTENER_NOT_FOUND,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)
"""Errors in metadata that newer metadata may not have."""


class LeaderAndEpoch(NamedTuple):
    """Who leads a partition since when."""

    leader_id: int
    leader_epoch: int


class Update(NamedTuple):
    """The next snapshot, and whether it has gaps that are worth asking again for."""

    cluster: Cluster
    is_incomplete: bool


def next_cluster(old: Cluster, answer: Any, version: int, kept: Collection[str]) -> Update:
    """The snapshot by a MetadataResponse; topics in `kept` that it does not name stay as they were.

    A partition whose leader epoch in the answer is older than the one known stays as it was too: the broker that
    answered has not heard of the newer leader yet (KIP-320). A topic that has another id is another topic.
    """
    nodes = {broker.node_id: Node(broker.node_id, broker.host, broker.port, broker.rack) for broker in answer.brokers}
    topics: dict[str, TopicInfo] = {name: topic for name in kept if (topic := old.topics.get(name)) is not None}
    is_incomplete = False
    for each in answer.topics:
        if each.name is None:
            continue
        before = old.topics.get(each.name)
        topics[each.name], lacks = _topic(each, before)
        is_incomplete |= lacks
    cluster = Cluster(answer.cluster_id, answer.controller_id, nodes, topics, version)
    return Update(cluster, is_incomplete)


def with_leaders(
    old: Cluster, leaders: Mapping[TopicPartition, LeaderAndEpoch], nodes: Iterable[Node]
) -> tuple[Cluster, set[TopicPartition]]:
    """The snapshot with these leaders, where they are newer than those known, and the partitions that changed.

    What names a leader whose address is not known, or a partition that is not, changes nothing (KIP-951).
    """
    # The fields of a node that is known already are not wrong because an error's answer has fewer of them.
    known = {**{node.id: node for node in nodes}, **old.nodes}
    moved = {node.id: node for node in nodes if _is_elsewhere(node, old.nodes.get(node.id))}
    known.update(moved)
    topics = dict(old.topics)
    changed: set[TopicPartition] = set()
    for partition, leader in leaders.items():
        info = old.partition(partition)
        if info is None or leader.leader_epoch <= info.leader_epoch or leader.leader_id not in known:
            continue
        topic = topics[partition[0]]
        partitions = dict(topic.partitions)
        partitions[partition[1]] = info._replace(leader_id=leader.leader_id, leader_epoch=leader.leader_epoch)
        topics[topic.name] = topic._replace(partitions=partitions)
        changed.add(TopicPartition(*partition))
    if not changed:
        return old, changed
    return Cluster(old.cluster_id, old.controller_id, known, topics, old.version), changed


def is_alike(old: Cluster, new: Cluster) -> bool:
    """Whether an update brought no other leader, node or topic."""
    return old.nodes == new.nodes and old.topics == new.topics


def _is_elsewhere(node: Node, known: Node | None) -> bool:
    return known is None or (known.host, known.port) != (node.host, node.port)


def _topic(answer: Any, before: TopicInfo | None) -> tuple[TopicInfo, bool]:
    if before is not None and ZERO_UUID not in (before.id, answer.topic_id) and before.id != answer.topic_id:
        # Deleted and created anew: the epochs begin again.
        before = None
    if answer.error_code:
        lacking = answer.error_code in _ASK_AGAIN
        return TopicInfo(answer.name, answer.topic_id, answer.error_code, answer.is_internal, {}), lacking
    partitions: dict[int, PartitionInfo] = {}
    lacks = False
    for each in answer.partitions:
        lacks |= each.error_code in _ASK_AGAIN
        known = before.partitions.get(each.partition_index) if before is not None else None
        if known is not None and UNKNOWN_EPOCH < each.leader_epoch < known.leader_epoch:
            partitions[each.partition_index] = known
            continue
        partitions[each.partition_index] = PartitionInfo(
            each.leader_id,
            each.leader_epoch,
            tuple(each.replica_nodes),
            tuple(each.isr_nodes),
            tuple(each.offline_replicas),
        )
    return TopicInfo(answer.name, answer.topic_id, 0, answer.is_internal, partitions), lacks
