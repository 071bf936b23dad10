"""What one decision of the controller has to tell the brokers, gathered and sent at once.

A broker gets at most one LeaderAndIsr, one UpdateMetadata and one StopReplica, in that order: it leads before clients
are told so. Who lives is told before, by a batch of its own. Structures that are the same for all brokers are built
once and shared; nobody changes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, NamedTuple

from kavka.cluster.controller.context import ClusterContext, Replica, ReplicaPhase, TopicPartition
from kavka.cluster.ports import BrokerChannels, ControlRequest, ControlResponse
from kavka.cluster.topic_ids import ZERO_ID
from kavka.cluster.znodes.broker import SECURITY_PROTOCOL_IDS
from kavka.cluster.znodes.topic import LEADER_DURING_DELETE
from kavka.protocol.errors import BrokerError
from kavka.protocol.messages.leader_and_isr import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from kavka.protocol.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from kavka.protocol.messages.update_metadata import (
    FULL_UPDATE,
    INCREMENTAL,
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)

EPOCH_DURING_DELETE: Final = -2
"""In StopReplica: whatever the replica's leader epoch is, the topic goes."""


class Answer(NamedTuple):
    """What a broker said to a request."""

    broker_id: int
    request: ControlRequest
    response: ControlResponse | BrokerError


class RequestBatch:
    """Gathers by broker, then `flush`.

    Threads: owned by the controller's thread; `on_answer` is called on any thread.
    """

    __slots__ = (
        "_channels",
        "_context",
        "_controller_id",
        "_is_full",
        "_leading",
        "_listener_name",
        "_metadata_for",
        "_metadata_of",
        "_on_answer",
        "_stopping",
    )

    def __init__(
        self,
        context: ClusterContext,
        channels: BrokerChannels,
        controller_id: int,
        listener_name: str | None,
        on_answer: Callable[[Answer], None],
    ) -> None:
        self._context = context
        self._channels = channels
        self._controller_id = controller_id
        self._listener_name = listener_name
        self._on_answer = on_answer
        self._leading: dict[int, dict[TopicPartition, bool]] = {}
        self._stopping: dict[int, dict[TopicPartition, bool]] = {}
        self._metadata_for: set[int] = set()
        self._metadata_of: dict[TopicPartition, None] = {}
        self._is_full = False

    def lead_and_follow(
        self, brokers: Iterable[int], partition: TopicPartition, *, is_new: bool = False, is_published: bool = False
    ) -> None:
        """Tell these replicas who leads the partition, and everyone's metadata too, unless that `is_published`."""
        phases = self._context.replica_phases
        for broker in brokers:
            is_new_there = is_new or phases.get(Replica(*partition, broker)) is ReplicaPhase.NEW
            known = self._leading.setdefault(broker, {})
            known[partition] = is_new_there or known.get(partition, False)
        if not is_published:
            self.publish([partition])

    def publish(self, partitions: Iterable[TopicPartition], brokers: Iterable[int] | None = None) -> None:
        """Tell `brokers`, or everyone, the live brokers and what is known of `partitions`."""
        self._metadata_for.update(self._context.brokers if brokers is None else brokers)
        self._metadata_of.update(dict.fromkeys(partitions))

    def publish_all(self, brokers: Iterable[int], epoch: int, *, is_whole: bool) -> None:
        """Tell these brokers at once of all there is.

        `is_whole`: nothing of the tree is missing in memory, so that a topic that a broker knows besides was deleted
        when it could not be told.
        """
        self.publish(self._context.leaders, brokers)
        self._is_full = is_whole
        self.flush(epoch)

    def stop(self, replica: Replica, *, delete: bool) -> None:
        """Tell a broker to stop serving its replica, and if asked to delete it."""
        stops = self._stopping.setdefault(replica.broker_id, {})
        stops[replica.topic_partition] = delete or stops.get(replica.topic_partition, False)

    def flush(self, epoch: int) -> None:
        """Send what was gathered to brokers that live, and start over."""
        leading, self._leading = self._leading, {}
        stopping, self._stopping = self._stopping, {}
        metadata_for, self._metadata_for = self._metadata_for, set()
        metadata_of, self._metadata_of = self._metadata_of, {}
        kind, self._is_full = FULL_UPDATE if self._is_full else INCREMENTAL, False
        for broker, partitions in leading.items():
            self._send(broker, partial(self._leader_and_isr, partitions, epoch))
        if metadata_for:
            topics = self._metadata_topics(metadata_of)
            brokers = self._live_brokers()
            for broker in sorted(metadata_for):
                self._send(broker, partial(self._update_metadata, kind, topics, brokers, epoch))
        for broker, stops in stopping.items():
            self._send(broker, partial(self._stop_replica, stops, epoch))

    def _send(self, broker: int, build: Callable[[int], ControlRequest]) -> None:
        info = self._context.brokers.get(broker)
        if info is None:
            return
        request = build(info.epoch)
        self._channels.send(broker, request, lambda response: self._on_answer(Answer(broker, request, response)))

    def _leader_and_isr(
        self, partitions: dict[TopicPartition, bool], epoch: int, broker_epoch: int
    ) -> LeaderAndIsrRequest:
        context = self._context
        by_topic: dict[str, list[LeaderAndIsrPartitionState]] = {}
        leaders: set[int] = set()
        for (topic, partition), is_new in partitions.items():
            state = context.leaders[topic, partition]
            assignment = context.assignments[topic]
            leaders.add(state.leader)
            by_topic.setdefault(topic, []).append(
                LeaderAndIsrPartitionState(
                    partition_index=partition,
                    controller_epoch=state.controller_epoch,
                    leader=state.leader,
                    leader_epoch=state.leader_epoch,
                    isr=list(state.isr),
                    partition_epoch=state.version,
                    replicas=list(assignment.replicas[partition]),
                    adding_replicas=list(assignment.adding.get(partition, ())),
                    removing_replicas=list(assignment.removing.get(partition, ())),
                    is_new=is_new,
                    leader_recovery_state=state.recovery,
                )
            )
        return LeaderAndIsrRequest(
            controller_id=self._controller_id,
            controller_epoch=epoch,
            broker_epoch=broker_epoch,
            topic_states=[
                LeaderAndIsrTopicState(
                    topic_name=topic,
                    topic_id=context.assignments[topic].topic_id or ZERO_ID,
                    partition_states=states,
                )
                for topic, states in by_topic.items()
            ],
            live_leaders=[self._live_leader(broker) for broker in sorted(leaders) if broker in context.brokers],
        )

    def _live_leader(self, broker: int) -> LeaderAndIsrLiveLeader:
        endpoint = self._context.brokers[broker].endpoint(self._listener_name)
        return LeaderAndIsrLiveLeader(broker_id=broker, host_name=endpoint.host, port=endpoint.port)

    def _stop_replica(self, stops: dict[TopicPartition, bool], epoch: int, broker_epoch: int) -> StopReplicaRequest:
        by_topic: dict[str, list[StopReplicaPartitionState]] = {}
        for (topic, partition), delete in stops.items():
            state = self._context.leaders.get((topic, partition))
            if topic in self._context.deleting:
                leader_epoch = EPOCH_DURING_DELETE
            else:
                leader_epoch = state.leader_epoch if state else -1
            by_topic.setdefault(topic, []).append(
                StopReplicaPartitionState(partition_index=partition, leader_epoch=leader_epoch, delete_partition=delete)
            )
        return StopReplicaRequest(
            controller_id=self._controller_id,
            controller_epoch=epoch,
            broker_epoch=broker_epoch,
            topic_states=[
                StopReplicaTopicState(topic_name=topic, partition_states=states) for topic, states in by_topic.items()
            ],
        )

    def _update_metadata(
        self,
        kind: int,
        topics: list[UpdateMetadataTopicState],
        brokers: list[UpdateMetadataBroker],
        epoch: int,
        broker_epoch: int,
    ) -> UpdateMetadataRequest:
        return UpdateMetadataRequest(
            controller_id=self._controller_id,
            controller_epoch=epoch,
            broker_epoch=broker_epoch,
            type=kind,
            topic_states=topics,
            live_brokers=brokers,
        )

    def _metadata_topics(self, partitions: Iterable[TopicPartition]) -> list[UpdateMetadataTopicState]:
        context = self._context
        by_topic: dict[str, list[UpdateMetadataPartitionState]] = {}
        for topic, partition in partitions:
            state = context.leaders.get((topic, partition))
            if state is None:
                continue
            replicas = context.replicas_of((topic, partition))
            by_topic.setdefault(topic, []).append(
                UpdateMetadataPartitionState(
                    partition_index=partition,
                    controller_epoch=state.controller_epoch,
                    leader=LEADER_DURING_DELETE if topic in context.deleting else state.leader,
                    leader_epoch=state.leader_epoch,
                    isr=list(state.isr),
                    zk_version=state.version,
                    replicas=list(replicas),
                    offline_replicas=[
                        broker for broker in replicas if not context.is_reachable((topic, partition), broker)
                    ],
                )
            )
        return [
            UpdateMetadataTopicState(
                topic_name=topic, topic_id=context.assignments[topic].topic_id or ZERO_ID, partition_states=states
            )
            for topic, states in by_topic.items()
        ]

    def _live_brokers(self) -> list[UpdateMetadataBroker]:
        return [
            UpdateMetadataBroker(
                id=broker.broker_id,
                rack=broker.rack,
                endpoints=[
                    UpdateMetadataEndpoint(
                        port=endpoint.port,
                        host=endpoint.host,
                        listener=endpoint.listener_name,
                        security_protocol=SECURITY_PROTOCOL_IDS[endpoint.security_protocol],
                    )
                    for endpoint in broker.endpoints
                ],
            )
            for broker in self._context.brokers.values()
        ]
