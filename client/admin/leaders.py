"""Who leads the partitions that one call is about.

Asked anew for each call, and of any broker: an administrator's calls are rare, their topics change, and what a client
remembered of all that it was ever asked for would only grow and age.
"""

from collections.abc import Iterable
from typing import Any, Final

from kavka.client.admin.ports import AdminPorts
from kavka.client.api_errors import (
    InvalidMetadataError,
    InvalidTopicError,
    KafkaError,
    LeaderNotAvailableError,
    UnknownTopicOrPartitionError,
    error_of,
)
from kavka.client.metadata import check_name
from kavka.client.node import Node
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

UNKNOWN_PATIENCE_MS: Final = 5_000
"""A topic that was just created may be unknown to the broker that is asked. After this it is held not to exist; Java's
client goes on to ask until the whole call's time is over."""


class LeaderLookup:
    """Partitions' leaders, as far as they were found. Threads: the client's owner alone.

    Bounds: the partitions it was asked for; one request at a time.
    """

    __slots__ = (
        "_attempts",
        "_fatal",
        "_is_asking",
        "_leaders",
        "_not_before_ms",
        "_ports",
        "_troubles",
        "_unknown_since_ms",
        "_wanted",
    )

    def __init__(self, ports: AdminPorts) -> None:
        self._ports: Final = ports
        self._leaders: Final[dict[TopicPartition, Node]] = {}
        self._fatal: Final[dict[TopicPartition, KafkaError]] = {}
        self._troubles: Final[dict[TopicPartition, KafkaError]] = {}
        self._unknown_since_ms: Final[dict[TopicPartition, float]] = {}
        self._wanted: Final[set[TopicPartition]] = set()
        self._is_asking = False
        self._not_before_ms = 0.0
        self._attempts = 0

    def node(self, partition: TopicPartition) -> Node | KafkaError | None:
        """The leader; why there will be none; None while it is being looked for, which `work` does."""
        leader = self._leaders.get(partition) or self._fatal.get(partition)
        if leader is None:
            try:
                check_name(partition.topic)
            except (TypeError, InvalidTopicError) as error:
                # Asked for with the others it would keep these from being found.
                leader = self._fatal[partition] = InvalidTopicError(str(error))
            else:
                self._wanted.add(partition)
        return leader

    def trouble(self, partition: TopicPartition) -> KafkaError | None:
        """Why it has not been found yet."""
        return self._troubles.get(partition)

    def lost(self, partition: TopicPartition) -> None:
        """Who was found leads it no longer."""
        self._leaders.pop(partition, None)

    def work(self, now_ms: float) -> float:
        """Ask, if somebody is to be found; how long until that is to be done."""
        if not self._wanted or self._is_asking:
            return float("inf")
        if now_ms < self._not_before_ms:
            return self._not_before_ms - now_ms
        network = self._ports.network
        nodes = self._ports.metadata.nodes()
        node = network.least_loaded(nodes)
        if node is None:
            return min(map(network.delay_ms, nodes), default=float("inf"))
        if not network.ready(node):
            return network.delay_ms(node)
        asked = frozenset(self._wanted)
        topics = dict.fromkeys(partition.topic for partition in asked)
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in topics], allow_auto_topic_creation=False
        )
        self._is_asking = True
        network.send(node, request, lambda answer: self._answered(asked, answer))
        return float("inf")

    def _answered(self, asked: Iterable[TopicPartition], answer: Any) -> None:
        self._is_asking = False
        now_ms = self._ports.now_ms()
        if not isinstance(answer, KafkaError):
            self._learn(asked, answer, now_ms)
        self._attempts = self._attempts + 1 if self._wanted else 0
        self._not_before_ms = now_ms + self._ports.backoff.delay_ms(max(self._attempts, 1))

    def _learn(self, asked: Iterable[TopicPartition], answer: Any, now_ms: float) -> None:
        nodes = {
            broker.node_id: Node(broker.node_id, broker.host, broker.port, broker.rack) for broker in answer.brokers
        }
        topics = {topic.name: topic for topic in answer.topics}
        for partition in asked:
            found = _leader_of(partition, topics.get(partition.topic), nodes)
            if isinstance(found, Node):
                self._leaders[partition] = found
            elif self._is_to_be_asked_again(partition, found, now_ms):
                self._troubles[partition] = found
                continue
            else:
                self._fatal[partition] = found
            self._wanted.discard(partition)
            self._troubles.pop(partition, None)
            self._unknown_since_ms.pop(partition, None)

    def _is_to_be_asked_again(self, partition: TopicPartition, error: KafkaError, now_ms: float) -> bool:
        if isinstance(error, UnknownTopicOrPartitionError):
            return now_ms - self._unknown_since_ms.setdefault(partition, now_ms) < UNKNOWN_PATIENCE_MS
        return isinstance(error, InvalidMetadataError)


def _leader_of(partition: TopicPartition, topic: Any, nodes: dict[int, Node]) -> Node | KafkaError:
    if topic is None:
        return UnknownTopicOrPartitionError(f"the broker's answer does not mention topic {partition.topic!r}")
    if topic.error_code:
        return error_of(topic.error_code)
    for row in topic.partitions:
        if row.partition_index == partition.partition:
            leader = nodes.get(row.leader_id)
            if leader is not None:
                return leader
            return LeaderNotAvailableError(f"partition {partition.partition} of {partition.topic!r} has no leader")
    return UnknownTopicOrPartitionError(f"topic {partition.topic!r} has no partition {partition.partition}")
