"""Brokers that only remember what their controller told them, and answer as a test wants."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from kavka.cluster.ports import ControlRequest, OnResponse, call
from kavka.cluster.registry.base import Registry
from kavka.cluster.znodes.broker import BrokerInfo, Endpoint, FeatureRange
from kavka.cluster.znodes.topic import LEADER_DURING_DELETE
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)
from kavka.protocol.messages.stop_replica import StopReplicaPartitionError, StopReplicaRequest, StopReplicaResponse
from kavka.protocol.messages.update_metadata import FULL_UPDATE, UpdateMetadataRequest, UpdateMetadataResponse

TopicPartition = tuple[str, int]


class Known(NamedTuple):
    """What a broker was told of a partition that it holds."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int


class FakeBroker:
    """A BrokerPort. `hosted` is what it serves, `metadata` the leaders that it would tell clients."""

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.hosted: dict[TopicPartition, Known] = {}
        self.metadata: dict[TopicPartition, int] = {}
        self.live_brokers: set[int] = set()
        self.requests: list[ControlRequest] = []
        self.deleted: list[TopicPartition] = []
        self.failing: set[TopicPartition] = set()
        self.refusing_deletion = False

    def leader_and_isr(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        self.requests.append(request)
        topics = []
        for topic in request.topic_states:
            errors = []
            for each in topic.partition_states:
                partition = (topic.topic_name, each.partition_index)
                code = ErrorCode.KAFKA_STORAGE_ERROR if partition in self.failing else ErrorCode.NONE
                if code == ErrorCode.NONE:
                    known = Known(each.leader, each.leader_epoch, tuple(each.isr), each.partition_epoch)
                    self.hosted[partition] = known
                errors.append(LeaderAndIsrPartitionError(partition_index=each.partition_index, error_code=code))
            topics.append(LeaderAndIsrTopicError(topic_id=topic.topic_id, partition_errors=errors))
        return LeaderAndIsrResponse(error_code=ErrorCode.NONE, topics=topics)

    def stop_replica(self, request: StopReplicaRequest) -> StopReplicaResponse:
        self.requests.append(request)
        errors = []
        for topic in request.topic_states:
            for each in topic.partition_states:
                partition = (topic.topic_name, each.partition_index)
                code = ErrorCode.KAFKA_STORAGE_ERROR if self.refusing_deletion else ErrorCode.NONE
                if code == ErrorCode.NONE:
                    self.hosted.pop(partition, None)
                    if each.delete_partition:
                        self.deleted.append(partition)
                errors.append(
                    StopReplicaPartitionError(
                        topic_name=topic.topic_name, partition_index=each.partition_index, error_code=code
                    )
                )
        return StopReplicaResponse(error_code=ErrorCode.NONE, partition_errors=errors)

    def update_metadata(self, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
        self.requests.append(request)
        self.live_brokers = {broker.id for broker in request.live_brokers}
        if request.type == FULL_UPDATE:
            self.metadata.clear()
        for topic in request.topic_states:
            for each in topic.partition_states:
                partition = (topic.topic_name, each.partition_index)
                if each.leader == LEADER_DURING_DELETE:
                    self.metadata.pop(partition, None)
                else:
                    self.metadata[partition] = each.leader
        return UpdateMetadataResponse(error_code=ErrorCode.NONE)


class FakeCluster:
    """Registered brokers, and the BrokerChannels to all of them."""

    def __init__(self, registry: Registry, broker_ids: Iterable[int] = (), racks: dict[int, str] | None = None) -> None:
        self._registry = registry
        self._racks = racks or {}
        self.brokers: dict[int, FakeBroker] = {}
        self.known: set[int] = set()
        self.was_let_go = False
        self.on_send: Callable[[int, ControlRequest], None] = lambda broker, request: None
        for broker_id in broker_ids:
            self.add(broker_id)

    def add(
        self,
        broker_id: int,
        features: tuple[FeatureRange, ...] = (),
        metadata: Mapping[TopicPartition, int] = MappingProxyType({}),
    ) -> FakeBroker:
        """A broker starts, with nothing in memory but these metadata: the controller may speak to it at once."""
        self.brokers[broker_id] = FakeBroker(broker_id)
        self.brokers[broker_id].metadata.update(metadata)
        info = broker_info(broker_id, self._racks.get(broker_id))._replace(features=features)
        self._registry.create(BrokerInfo.path(broker_id), info.encode(), ephemeral=True)
        return self.brokers[broker_id]

    def kill(self, broker_id: int) -> None:
        del self.brokers[broker_id]
        self._registry.delete(BrokerInfo.path(broker_id))

    def epoch(self, broker_id: int) -> int:
        return self._registry.get(BrokerInfo.path(broker_id))[1].czxid

    # BrokerChannels

    def update_brokers(self, brokers: Iterable[BrokerInfo]) -> None:
        """All controllers of a test share these channels: one that is deposed takes nothing from the others."""
        live = {broker.broker_id for broker in brokers}
        if live:
            self.known = live
        else:
            self.was_let_go = True

    def send(self, broker_id: int, request: ControlRequest, on_response: OnResponse) -> None:
        self.on_send(broker_id, request)
        broker = self.brokers.get(broker_id)
        if broker is None or broker_id not in self.known:
            on_response(BrokerError(ErrorCode.BROKER_NOT_AVAILABLE, f"broker {broker_id} is gone"))
        else:
            on_response(call(broker, request))

    def done_so_far(self) -> None:
        """All is done."""

    def close(self) -> None:
        self.known = set()


def broker_info(broker_id: int, rack: str | None = None) -> BrokerInfo:
    endpoint = Endpoint("PLAINTEXT", "127.0.0.1", 9000 + broker_id, "PLAINTEXT")
    return BrokerInfo(broker_id, (endpoint,), rack, timestamp_ms=1)
