"""What a broker that leads one partition, and coordinates everybody, answers to consumers."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from kavka.client import Node
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.api import ApiKey
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.consumer_group_heartbeat import Assignment, ConsumerGroupHeartbeatResponse, TopicPartitions
from kavka.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from kavka.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from kavka.protocol.messages.heartbeat import HeartbeatResponse
from kavka.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from kavka.protocol.messages.leave_group import LeaveGroupResponse
from kavka.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kavka.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kavka.protocol.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kavka.protocol.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from kavka.protocol.messages.sync_group import SyncGroupResponse
from kavka.protocol.records.batch import Record, build_batch
from kavka.protocol.records.header import read_header
from tests.support.answering_broker import Answer, AnsweringBroker
from tests.support.scripted_broker import Asked

TOPIC: Final = "birds"
TOPIC_ID: Final = bytes(15) + b"\7"
BIRDS: Final = TopicPartition(TOPIC, 0)
MEMBER: Final = "member-1"
QUICK: Final[dict[str, Any]] = {
    "retry_backoff_ms": 1,
    "retry_backoff_max_ms": 2,
    "reconnect_backoff_ms": 1,
    "reconnect_backoff_max_ms": 2,
    "fetch_max_wait_ms": 20,
    "heartbeat_interval_ms": 10,
    "auto_offset_reset": "earliest",
    "enable_auto_commit": False,
}
_PARTITION = MetadataResponsePartition(
    error_code=0, partition_index=0, leader_id=1, leader_epoch=0, replica_nodes=[1], isr_nodes=[1], offline_replicas=[]
)


def batch_of(count: int, base_offset: int = 0) -> bytes:
    """Each value is the record's offset, as text."""
    return build_batch([Record(value=b"%d" % (base_offset + n)) for n in range(count)], base_offset=base_offset)


class ConsumersBroker:
    """Its answers, all of them good, and `asked`, what came. `node` is set once it is known where it listens.

    One partition with these batches. One member a group, which leads it where there are leaders.
    """

    node: Node

    def __init__(self, batches: Sequence[bytes] = ()) -> None:
        self.topics = {TOPIC: TOPIC_ID}
        """By names; those that begin with two underscores are internal."""
        self.asked: list[Any] = []
        self.committed = -1
        """What came last; of a connection that the client gave up it may come late."""
        self.commits: list[int] = []
        self._batches = batches
        self._is_over = threading.Event()
        handlers: dict[int, Callable[[Any], Any]] = {
            ApiKey.METADATA: self._metadata,
            ApiKey.FIND_COORDINATOR: self._coordinator,
            ApiKey.LIST_OFFSETS: self._list,
            ApiKey.FETCH: self._fetch,
            ApiKey.OFFSET_FETCH: self._stored,
            ApiKey.OFFSET_COMMIT: self._commit,
            ApiKey.JOIN_GROUP: self._join,
            ApiKey.SYNC_GROUP: self._sync,
            ApiKey.HEARTBEAT: lambda _: HeartbeatResponse(error_code=0),
            ApiKey.LEAVE_GROUP: lambda _: LeaveGroupResponse(error_code=0, members=[]),
            ApiKey.CONSUMER_GROUP_HEARTBEAT: self._beat,
        }
        self.answers: dict[int, Answer] = {key: self._remembering(each) for key, each in handlers.items()}

    @contextmanager
    def serves(
        self, mangle: Callable[[Asked, bytes], bytes | None] = lambda _, frame: frame
    ) -> Iterator[AnsweringBroker]:
        """Until the end of the `with`; see `AnsweringBroker` for `mangle`."""
        with AnsweringBroker(self.answers, mangle) as broker:
            self.node = broker.node
            try:
                yield broker
            finally:
                self._is_over.set()

    def requests(self, kind: type) -> list[Any]:
        """Those that came of a kind."""
        return [request for request in list(self.asked) if isinstance(request, kind)]

    def _remembering(self, handler: Callable[[Any], Any]) -> Answer:
        def answer(asked: Asked) -> Any:
            self.asked.append(asked.request)
            return handler(asked.request)

        return answer

    def _metadata(self, request: Any) -> MetadataResponse:
        broker = MetadataResponseBroker(node_id=1, host=self.node.host, port=self.node.port)
        names = list(self.topics) if request.topics is None else [each.name for each in request.topics]
        topics = [
            MetadataResponseTopic(
                error_code=ErrorCode.NONE if name in self.topics else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                name=name,
                topic_id=self.topics.get(name, bytes(16)),
                is_internal=name.startswith("__"),
                partitions=[_PARTITION] if name in self.topics else [],
            )
            for name in names
        ]
        return MetadataResponse(brokers=[broker], cluster_id="c", controller_id=1, topics=topics)

    def _coordinator(self, request: Any) -> FindCoordinatorResponse:
        rows = [
            Coordinator(key=key, node_id=1, host=self.node.host, port=self.node.port, error_code=0, error_message=None)
            for key in request.coordinator_keys
        ]
        return FindCoordinatorResponse(coordinators=rows)

    def _list(self, request: Any) -> ListOffsetsResponse:
        topics = [
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    ListOffsetsPartitionResponse(
                        partition_index=each.partition_index,
                        error_code=0,
                        offset=0 if each.timestamp == -2 else self._end,
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        return ListOffsetsResponse(topics=topics)

    @property
    def _end(self) -> int:
        return read_header(self._batches[-1]).next_offset if self._batches else 0

    def _fetch(self, request: Any) -> FetchResponse:
        """Without sessions: each request says all. Nothing comes as late as it may."""
        found = [
            FetchableTopicResponse(
                topic=topic.topic,
                topic_id=topic.topic_id,
                partitions=[self._read(topic, each) for each in topic.partitions],
            )
            for topic in request.topics
        ]
        if not any(row.records or row.error_code for topic in found for row in topic.partitions):
            self._is_over.wait(request.max_wait_ms / 1000)
        return FetchResponse(session_id=0, responses=found)

    def _read(self, topic: Any, row: Any) -> PartitionData:
        code = ErrorCode.NONE
        if topic.topic_id not in self.topics.values():
            code = ErrorCode.UNKNOWN_TOPIC_ID
        elif not 0 <= row.fetch_offset <= self._end:
            code = ErrorCode.OFFSET_OUT_OF_RANGE
        records = b"".join(each for each in self._batches if read_header(each).next_offset > row.fetch_offset)
        return PartitionData(
            partition_index=row.partition,
            error_code=code,
            high_watermark=-1 if code else self._end,
            records=b"" if code else records,
        )

    def _stored(self, request: Any) -> OffsetFetchResponse:
        groups = [
            OffsetFetchResponseGroup(
                group_id=group.group_id,
                error_code=0,
                topics=[
                    OffsetFetchResponseTopics(
                        name=topic.name,
                        partitions=[
                            OffsetFetchResponsePartitions(
                                partition_index=number, committed_offset=self.committed, metadata="", error_code=0
                            )
                            for number in topic.partition_indexes
                        ],
                    )
                    for topic in group.topics
                ],
            )
            for group in request.groups
        ]
        return OffsetFetchResponse(topics=[], groups=groups)

    def _commit(self, request: Any) -> OffsetCommitResponse:
        answers = []
        for topic in request.topics:
            self.committed = topic.partitions[0].committed_offset
            self.commits.append(self.committed)
            rows = [
                OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=0)
                for each in topic.partitions
            ]
            answers.append(OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=rows))
        return OffsetCommitResponse(topics=answers)

    def _join(self, request: Any) -> JoinGroupResponse:
        first = request.protocols[0]
        return JoinGroupResponse(
            error_code=0,
            generation_id=1,
            protocol_type="consumer",
            protocol_name=first.name,
            leader=MEMBER,
            skip_assignment=False,
            member_id=MEMBER,
            members=[JoinGroupResponseMember(member_id=MEMBER, metadata=bytes(first.metadata))],
        )

    def _sync(self, request: Any) -> SyncGroupResponse:
        given = next((each.assignment for each in request.assignments if each.member_id == MEMBER), b"")
        return SyncGroupResponse(
            error_code=0,
            protocol_type="consumer",
            protocol_name=request.protocol_name,
            assignment=bytes(given),
        )

    def _beat(self, request: Any) -> ConsumerGroupHeartbeatResponse:
        leaves = request.member_epoch < 0
        rows = [TopicPartitions(topic_id=identity, partitions=[0]) for identity in self.topics.values()]
        return ConsumerGroupHeartbeatResponse(
            error_code=0,
            member_id=request.member_id,
            member_epoch=request.member_epoch if leaves else max(request.member_epoch, 1),
            heartbeat_interval_ms=0 if leaves else 10,
            assignment=None if leaves else Assignment(topic_partitions=rows),
        )
