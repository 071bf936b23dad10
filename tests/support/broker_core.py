"""A broker's core in one thread: frames in, answers out, with real handlers, real logs and no network."""

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kavka.broker.log_moves.replica_moves import ReplicaMoves
from kavka.broker.metadata.metadata_cache import LEADER_DURING_DELETE, MetadataCache
from kavka.broker.network.connection import Connection
from kavka.broker.partitions.controller_epoch import ControllerEpoch
from kavka.broker.partitions.fetch_sessions import FetchSessions
from kavka.broker.partitions.local_broker import LocalBroker
from kavka.broker.partitions.partition_waits import committed
from kavka.broker.partitions.replica_manager import Followers, ReplicaManager
from kavka.broker.requests.handling import load_handlers, shown_versions
from kavka.broker.requests.prepared import Prepared
from kavka.broker.requests.request_runner import InlineRequests
from kavka.broker.requests.session import Gate, Session, Sessions
from kavka.broker.security.acl import Authorizer
from kavka.broker.services import Services
from kavka.broker.settings.dynamic_config import DynamicConfig
from kavka.broker.waiting.purgatory import Purgatory
from kavka.broker.waiting.timer import Timer
from kavka.cluster.features import GROUP_VERSION, TRANSACTION_VERSION, FinalizedFeatures
from kavka.protocol.codec import encode
from kavka.protocol.headers import encode_request_header
from kavka.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from kavka.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka.protocol.messages.stop_replica import StopReplicaPartitionState, StopReplicaRequest, StopReplicaTopicState
from kavka.storage.files import Files
from kavka.storage.partition_log import PartitionLog
from tests.support.broker_handlers import BROKER_ID, topic_id_of, update_metadata
from tests.support.log_managers import ManagerRig
from tests.support.network_stage import SIZE, FakeSocket, Stage

NOW_MS = 1_700_000_000_000


class ForgetfulSession(Session):
    """Keeps nothing of what the client asks: every request takes the ordinary way."""

    __slots__ = ()

    def __init__(self, prepared: Mapping[int, Prepared], *parts: Any) -> None:
        super().__init__({}, *parts)

    def prepare(self, api_key: int, prepared: Prepared | None) -> None:
        pass


class BrokerCore:
    """`ask` runs a frame to its answer. `inline` lets the network thread run small requests itself.

    Unless it `prepares`, every request takes the ordinary way.
    """

    def __init__(
        self,
        directory: Path,
        *settings: str,
        inline: bool = False,
        prepares: bool = True,
        files: Files | None = None,
        topics: Mapping[str, dict[str, str]] | None = None,
        broker_id: int = BROKER_ID,
        followers: Callable[[Services], Followers] | None = None,
        gate_of: Callable[[str], Gate | None] = lambda listener_name: None,
        authorizer: Callable[[Services], Authorizer] | None = None,
    ) -> None:
        """`topics`: configurations by topic, for those that have one of their own. `followers`: makes who fetches.

        `authorizer`: makes who decides, if anybody does.
        """
        self.rig = ManagerRig([directory], *settings, files=files)
        self.rig.overrides.update(topics or {})
        self.broker_epoch = 1
        logs = self.rig.start()
        services: Any = Services()
        services.features = FinalizedFeatures({GROUP_VERSION: 1, TRANSACTION_VERSION: 2}, 0)
        services.broker_id = broker_id
        services.config = DynamicConfig(self.rig.broker_config(*settings), broker_id)
        heard = ControllerEpoch()
        services.metadata = MetadataCache(broker_id, (), controller_epoch=heard)
        services.logs = logs
        services.replica_moves = ReplicaMoves(services, lambda failure: None)
        services.replicas = self.replicas = ReplicaManager(
            broker_id,
            logs,
            controller_epoch=heard,
            followers=None if followers is None else followers(services),
            moves=services.replica_moves,
        )
        services.purgatory = self.purgatory = Purgatory(Timer(lambda failure: None))
        services.fetch_sessions = FetchSessions(100)
        services.now_ms = lambda: NOW_MS
        services.authorizer = None if authorizer is None else authorizer(services)
        self.services: Services = services
        services.local_broker = LocalBroker(services.replicas, services.metadata, lambda: self.broker_epoch)
        services.local_broker.registered()
        handlers = load_handlers(in_cluster=True)
        services.served_versions = shown_versions(handlers)
        small = [key for key, handler in handlers.items() if handler.is_small]
        kind = Session if prepares else ForgetfulSession
        sessions = Sessions(small, logs.moves.moving, services.authorizer, gate_of=gate_of, kind=kind)
        self.stage = Stage(handlers=handlers, services=services, new_session=sessions.new)
        if inline:
            # However busy the machine is: which way a request goes must not hang on that.
            self.stage.thread._run_inline = InlineRequests(self.stage.queue, self.stage.dispatcher, slow_ns=1 << 62).run
        services.metrics = self.stage.metrics
        self.connection: Connection
        self.socket: FakeSocket
        self._topics: dict[str, list[int]] = {}
        self._asking = threading.Lock()
        self.connect()

    def connect(self) -> None:
        self.connection, self.socket = self.stage.connect()

    def create(
        self,
        topic: str,
        partitions: int = 1,
        *,
        leader_epoch: int = 0,
        isr: tuple[int, ...] = (1,),
        replicas: tuple[int, ...] = (),
    ) -> None:
        """Lead all partitions of a topic; again with a later epoch to change that. `replicas`: as the ISR."""
        request = LeaderAndIsrRequest(
            controller_id=BROKER_ID,
            controller_epoch=1,
            broker_epoch=1,
            topic_states=[
                LeaderAndIsrTopicState(
                    topic_name=topic,
                    topic_id=topic_id_of(topic),
                    partition_states=[
                        LeaderAndIsrPartitionState(
                            partition_index=index,
                            controller_epoch=1,
                            leader=BROKER_ID,
                            leader_epoch=leader_epoch,
                            isr=list(isr),
                            partition_epoch=0,
                            replicas=list(replicas or isr),
                        )
                        for index in range(partitions)
                    ],
                )
            ],
            live_leaders=[],
        )
        self.replicas.leader_and_isr(request)
        self._topics[topic] = [BROKER_ID] * partitions
        self.services.metadata.apply(update_metadata(self._topics))

    def shrink_isr(self, topic: str, isr: tuple[int, ...]) -> None:
        """The controller has said that the ISR of the topic's first partition is this one now."""
        partition = self.replicas.partitions[topic, 0]
        role = partition.role
        partition.role = role.committed(isr, role.partition_epoch + 1, role.recovery_state)
        partition.wake_all()

    def replace(self, topic: str) -> None:
        """The topic is deleted with its logs, and created anew, as it was."""
        self.delete_logs(topic)
        self.create(topic, len(self._topics[topic]))

    def delete_logs(self, topic: str) -> None:
        """The controller has the logs deleted of a topic that the metadata still know."""
        partitions = range(len(self._topics[topic]))
        doomed = [
            StopReplicaPartitionState(partition_index=index, leader_epoch=-2, delete_partition=True)
            for index in partitions
        ]
        self.replicas.stop_replica(
            StopReplicaRequest(
                controller_id=BROKER_ID,
                controller_epoch=1,
                broker_epoch=1,
                topic_states=[StopReplicaTopicState(topic_name=topic, partition_states=doomed)],
            )
        )

    def forget(self, topic: str) -> None:
        """The controller has said that the topic is gone; its log is still there."""
        partitions = len(self._topics.pop(topic))
        self.services.metadata.apply(update_metadata({topic: [LEADER_DURING_DELETE] * partitions}))

    def lose(self, topic: str, leader: int, address: tuple[str, int], *, leader_epoch: int) -> None:
        """Another broker leads the topic's first partition from now on, and this one follows."""
        state = LeaderAndIsrPartitionState(
            partition_index=0,
            controller_epoch=1,
            leader=leader,
            leader_epoch=leader_epoch,
            isr=[leader, BROKER_ID],
            partition_epoch=0,
            replicas=[leader, BROKER_ID],
        )
        led = LeaderAndIsrTopicState(topic_name=topic, topic_id=topic_id_of(topic), partition_states=[state])
        self.replicas.leader_and_isr(
            LeaderAndIsrRequest(
                controller_id=BROKER_ID, controller_epoch=1, broker_epoch=1, topic_states=[led], live_leaders=[]
            )
        )
        self._topics[topic][0] = leader
        brokers = {BROKER_ID: ("broker.example", 9092), leader: address}
        self.services.metadata.apply(update_metadata(self._topics, brokers=brokers))

    def replicate(self, topic: str, replica_id: int, offset: int, index: int = 0) -> None:
        """That follower has everything below `offset`."""
        partition = self.replicas.partitions[topic, index]
        end_offset = self.log(topic, index).log_end_offset
        if partition.follower_fetched(
            replica_id, offset, leader_epoch=partition.role.leader_epoch, leader_end_offset=end_offset
        ):
            committed((partition,))

    def ask(self, *frames: bytes) -> bytes:
        """All that the client gets back for frames that come together; no more once the connection closed, or waits.

        Any thread: there is one connection, and they take turns.
        """
        with self._asking:
            if self.socket.closed:
                self.connect()
            before = len(self.socket.taken)
            self.socket.input += b"".join([SIZE.pack(len(frame)) + frame for frame in frames])
            self.stage.settle()
            return bytes(self.socket.taken[before:])

    def log(self, topic: str, index: int = 0) -> PartitionLog:
        log = self.rig.manager.get(topic, index)
        assert log is not None
        return log

    def log_bytes(self, topic: str, index: int = 0) -> bytes:
        log = self.log(topic, index)
        return log.read(0, 1 << 30, min_one=True, end_offset=log.log_end_offset).read_bytes()

    def close(self) -> None:
        self.rig.manager.close()


def produce_frame(
    version: int,
    correlation_id: int,
    records: Mapping[tuple[str, int], bytes | None],
    *,
    acks: int = 1,
    client_id: str | None = "producer",
    transactional_id: str | None = None,
) -> bytes:
    """A produce request, without its size; partitions of one topic stand side by side."""
    topics: dict[str, list[PartitionProduceData]] = {}
    for (topic, index), batch in records.items():
        data: Any = batch
        topics.setdefault(topic, []).append(PartitionProduceData(index=index, records=data))
    request = ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=1000,
        topic_data=[
            TopicProduceData(name=name, topic_id=topic_id_of(name), partition_data=data)
            for name, data in topics.items()
        ],
    )
    return encode_request_header(0, version, correlation_id, client_id) + encode(request, version)
