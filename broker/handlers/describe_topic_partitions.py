"""DescribeTopicPartitions v0.

Behaviour
- The partitions of topics in name order, in pages (KIP-966): at most `response_partition_limit`, and never more than
  `max.request.partition.size.limit`, in one answer, which says where the next page begins. An empty list means all
  topics.
- Topics that do not exist are UNKNOWN_TOPIC_OR_PARTITION; topics that the client may not describe are
  TOPIC_AUTHORIZATION_FAILED when it named them and left out when it asked for all.
- Not done: eligible leader replicas, which exist in KRaft only (none).

Versions
- v0 is the only one.
"""

from typing import TYPE_CHECKING

from kavka.broker.metadata.first_metadata import once_known
from kavka.broker.metadata.metadata_cache import ZERO_TOPIC_ID, TopicMetadata
from kavka.broker.metadata.topic_views import ClusterView, name_error, reached_endpoint
from kavka.broker.requests.handling import Context, handles
from kavka.broker.requests.slices import in_slices
from kavka.broker.security.acl import Operation, ResourceType, topic
from kavka.cluster.promise import Promise
from kavka.cluster.topic_names import is_internal
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

if TYPE_CHECKING:
    from kavka.broker.services import Services


def _refused(
    request: DescribeTopicPartitionsRequest, code: ErrorCode, _message: str | None
) -> DescribeTopicPartitionsResponse:
    topics = [_failed(code, each.name) for each in request.topics]
    return DescribeTopicPartitionsResponse(throttle_time_ms=0, topics=topics)


@handles(DescribeTopicPartitionsRequest, versions="0", error_answer=_refused)
def describe_topic_partitions(
    request: DescribeTopicPartitionsRequest, context: Context, services: "Services"
) -> DescribeTopicPartitionsResponse | Promise[DescribeTopicPartitionsResponse]:
    if not services.metadata.current.brokers:
        return once_known(services, lambda: describe_topic_partitions(request, context, services))
    cursor = request.cursor
    if cursor is not None and cursor.partition_index < 0:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "the cursor's partition index is negative")
    snapshot = services.metadata.current
    all_topics = not request.topics
    names = snapshot.sorted_names() if all_topics else sorted({each.name for each in request.topics})
    if cursor is not None and not all_topics and cursor.topic_name not in names:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "the cursor's topic is none of those asked for")
    start = cursor.topic_name if cursor is not None else ""
    may_list = context.allowed_names(Operation.DESCRIBE, ResourceType.TOPIC)
    denied = []
    visible = []
    for name in in_slices(names):
        if name < start:
            continue
        if may_list(name) if all_topics else context.allows(Operation.DESCRIBE, topic(name)):
            visible.append(name)
        elif not all_topics:
            refused = _failed(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name)
            refused.is_internal = False
            denied.append(refused)
    limit = min(request.response_partition_limit, services.config.current.max_request_partition_size_limit)
    page = _Page(ClusterView(snapshot, context.listener_name, reached_endpoint(context)), context, max(limit, 1))
    for name in in_slices(visible):
        if page.full_before(name):
            break
        known = snapshot.topic(name)
        if known is not None:
            page.add(known, cursor.partition_index if cursor is not None and cursor.topic_name == name else 0)
        else:
            unknown = _failed(name_error(name) or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name)
            unknown.topic_authorized_operations = context.authorized_operations(topic(name))
            page.topics.append(unknown)
    return DescribeTopicPartitionsResponse(
        throttle_time_ms=0, topics=page.topics + denied, next_cursor=page.next_cursor
    )


class _Page:
    """One answer, filled with partitions until `room` is used up."""

    __slots__ = ("_context", "_room", "_view", "next_cursor", "topics")

    def __init__(self, view: ClusterView, context: Context, room: int) -> None:
        self._view = view
        self._context = context
        self._room = room
        self.topics: list[DescribeTopicPartitionsResponseTopic] = []
        self.next_cursor: Cursor | None = None

    def full_before(self, name: str) -> bool:
        """Whether the page ends before that topic, which then is where the next one begins."""
        if self.next_cursor is None and self._room <= 0:
            self.next_cursor = Cursor(topic_name=name, partition_index=0)
        return self.next_cursor is not None

    def add(self, known: TopicMetadata, first_index: int) -> None:
        """Add a topic's partitions from `first_index` on, as far as there is room."""
        partitions: list[DescribeTopicPartitionsResponsePartition] = []
        for each in known.from_index(first_index):
            if len(partitions) >= self._room:
                self.next_cursor = Cursor(topic_name=known.name, partition_index=each.partition_index)
                break
            view = self._view.partition(each)
            partitions.append(
                DescribeTopicPartitionsResponsePartition(
                    error_code=view.error,
                    partition_index=each.partition_index,
                    leader_id=view.leader_id,
                    leader_epoch=each.leader_epoch,
                    replica_nodes=view.replicas,
                    isr_nodes=view.isr,
                    eligible_leader_replicas=[],
                    last_known_elr=[],
                    offline_replicas=list(each.offline),
                )
            )
        self._room -= len(partitions)
        self.topics.append(
            DescribeTopicPartitionsResponseTopic(
                error_code=ErrorCode.NONE,
                name=known.name,
                topic_id=known.topic_id,
                is_internal=is_internal(known.name),
                partitions=partitions,
                topic_authorized_operations=self._context.authorized_operations(topic(known.name)),
            )
        )


def _failed(error: ErrorCode, name: str) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=error, name=name, topic_id=ZERO_TOPIC_ID, is_internal=is_internal(name), partitions=[]
    )
