"""One broker of the simulation: the real classes of replication and of the controller, put together without a thread.

What a socket would carry is a message in `network.py`; what a thread would do is a method that somebody calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from kavka.broker.partitions.alter_partition_manager import AlterPartitionManager
from kavka.broker.partitions.controller_epoch import ControllerEpoch
from kavka.broker.partitions.disk_notices import DiskNotices
from kavka.broker.partitions.local_broker import LocalBroker
from kavka.broker.partitions.log_reading import Reading, ReadLimits, read_all
from kavka.broker.partitions.partition import Partition
from kavka.broker.partitions.partition_waits import committed
from kavka.broker.partitions.replica_manager import ReplicaManager
from kavka.broker.partitions.replication import Replication
from kavka.broker.partitions.topic_adoption import known_partitions
from kavka.broker.replication import copying
from kavka.broker.replication.fetcher import Fetcher
from kavka.broker.replication.fetcher_manager import FetcherManager
from kavka.broker.replication.followed_partitions import FetchPlan, Followed, Key
from kavka.broker.replication.leader_port import LATEST, LeaderPort, LeaderUnreachableError
from kavka.cluster.broker_registration import BrokerRegistration
from kavka.cluster.controller.controller import Controller
from kavka.cluster.ports import ControlRequest, call
from kavka.cluster.znodes.broker import BrokerInfo, Endpoint
from kavka.cluster.znodes.notifications import LogDirEvent
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.alter_partition import AlterPartitionRequest
from kavka.protocol.messages.fetch import FetchableTopicResponse, FetchPartition, FetchResponse
from kavka.protocol.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from kavka.protocol.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from kavka.protocol.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from tests.simulation.channels import Channels
from tests.simulation.model_log import Config, Disk, ModelLogs
from tests.simulation.model_registry import Client

TOPIC = "visits"
TOPIC_ID = bytes(range(16))
KEY = (TOPIC, 0)
LAG_MS = 1_000
BACKOFF_MS = 5
MOST_RECORDS = 3
"""So many records a fetch gets at most."""


class Settings:
    """What the controller reads of the broker's."""

    delete_topic_enable = True
    num_partitions = 1
    default_replication_factor = 3
    auto_leader_rebalance_enable = True
    leader_imbalance_per_broker_percentage = 10
    inter_broker_protocol_version = "3.9-IV0"
    inter_broker_listener_name: str | None = None
    awaits_other_releases = False

    def __init__(self, *, unclean: bool) -> None:
        self.unclean_leader_election_enable = unclean

    @property
    def current(self) -> Settings:
        return self


class Metadata:
    """What `UpdateMetadata` has told: who lives, who is the controller."""

    def __init__(self, controller_epoch: ControllerEpoch) -> None:
        self._controller_epoch = controller_epoch
        self._latest = (-1, -1, -1)
        self.went_back = False
        """Whether something was taken in that its sender had said before what was taken in last."""
        self.live: frozenset[int] = frozenset()
        self.controller_id = -1

    def apply(self, request: UpdateMetadataRequest, number: int) -> None:
        if not self._controller_epoch.admits(request.controller_epoch, request.broker_epoch, number):
            raise BrokerError(ErrorCode.STALE_CONTROLLER_EPOCH)
        latest = request.controller_epoch, request.broker_epoch, number
        self.went_back |= latest < self._latest
        self._latest = latest
        self.live = frozenset(broker.id for broker in request.live_brokers)
        self.controller_id = request.controller_id


class SteppedFetcher(Fetcher):
    """Its round is cut in two where a real one waits for the leader's answer."""

    def __init__(self, source: int, leader: LeaderPort, **more: Any) -> None:
        super().__init__(f"from-{source}", leader, **more)
        self.source = source

    def start(self) -> None:
        """Nobody runs but who calls."""

    def begin(self) -> FetchPlan | None:
        """Cut what has to be cut; what to ask for."""
        for followed in self.partitions.truncating():
            self._settle(followed, copying.cut_to_high_watermark(followed))
        return self.partitions.plan(self._now_ms())

    def finish(self, plan: FetchPlan, answer: FetchResponse) -> None:
        """The answer is here."""
        try:
            self._take(plan, answer)
        except LeaderUnreachableError:
            self.partitions.lost()

    def lost(self) -> None:
        """No answer came."""
        self.partitions.lost()

    def _wait_out(self) -> None:
        """Time goes on when the schedule says so."""


class DirectLeader:
    """A `LeaderPort` for what is asked between two fetches: answered at once, or not at all."""

    def __init__(self, find: Callable[[], SimulatedBroker | None]) -> None:
        self._find = find

    def fetch(self, plan: FetchPlan) -> FetchResponse:
        raise AssertionError("a simulated fetch is a message")

    def offsets(self, epochs: Mapping[Key, int], timestamp: int) -> Mapping[Key, tuple[ErrorCode, int]]:
        leader = self._find()
        if leader is None:
            raise LeaderUnreachableError("cut off")
        return {key: leader.offset(key, epoch, timestamp) for key, epoch in epochs.items()}

    def wake(self) -> None: ...

    def close(self) -> None: ...


class SteppedController:
    """A broker's part in the election and the terms that it wins: an event runs when it is told to."""

    def __init__(self, controller: Controller) -> None:
        self.of = controller
        self._candidacy = controller._candidacy
        self._events = self._candidacy._events

    def begin(self) -> None:
        """As `Controller.start`, but for the thread."""
        candidacy = self._candidacy
        candidacy._registry.on_session_event(candidacy._on_session_event)
        candidacy.submit(candidacy._join)

    @property
    def has_events(self) -> bool:
        return bool(self._events._notices or self._events._requests)

    def step(self) -> None:
        """The next event."""
        event = self._events.next()
        assert event is not None
        event()

    @property
    def epoch(self) -> int:
        """Of its term; -1 without one."""
        term = self._candidacy._term
        return -1 if term is None else term.store.epoch


class Heard(NamedTuple):
    """The `BrokerPort` of one request."""

    port: LocalBroker
    number: int

    def leader_and_isr(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        return self.port.leader_and_isr(request, self.number)

    def stop_replica(self, request: StopReplicaRequest) -> StopReplicaResponse:
        return self.port.stop_replica(request, self.number)

    def update_metadata(self, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
        return self.port.update_metadata(request, self.number)


class Errand:
    """What a broker asks the controller, for as long as it has no answer."""

    def __init__(self, asker: SimulatedBroker, request: AlterPartitionRequest, on_answer: Callable[[Any], None]):
        self.asker = asker
        self.request = request
        self.on_answer = on_answer


class SimulatedBroker:
    """One run of a broker's process, from its start to its crash."""

    def __init__(
        self,
        broker_id: int,
        disk: Disk,
        registry: Client,
        config: Config,
        settings: Settings,
        now_ms: Callable[[], int],
        find: Callable[[int, int], SimulatedBroker | None],
    ) -> None:
        """`find(from, to)` gives the other broker, if it can be reached."""
        self.broker_id = broker_id
        self.disk = disk
        self.registry = registry
        self.now_ms = now_ms
        self.is_alive = True
        self._find = find
        self.errand: Errand | None = None
        self.jobs: list[Callable[[], None]] = []
        self.controller_epoch = ControllerEpoch()
        self.metadata = Metadata(self.controller_epoch)
        endpoint = Endpoint("PLAINTEXT", "127.0.0.1", 9000 + broker_id, "PLAINTEXT")
        self.registration = BrokerRegistration(registry, BrokerInfo(broker_id, (endpoint,)), now_ms)
        self.logs = ModelLogs(disk, config)
        self._build(self.logs)
        self.channels = Channels(self)
        self.controller = SteppedController(
            Controller(
                registry, broker_id, self.channels, settings, now_ms, registration=self.registration, placement_seed=1
            )
        )

    def _build(self, logs: Any) -> None:
        self.isr_changes = AlterPartitionManager(
            self.broker_id, self.own_epoch, self._ask, lambda delay_ms, job: self.jobs.append(job)
        )
        self.replication = Replication(
            monotonic_ms=self.now_ms,
            lag_time_max_ms=LAG_MS,
            is_eligible=lambda broker_id, broker_epoch: broker_id in self.metadata.live,
            propose=self.isr_changes.propose,
        )
        self.fetchers = FetcherManager(self._new_fetcher, 1)
        known = known_partitions(self.registry)
        logs.lost.learn(known, known.of_broker(self.broker_id))
        self.replicas = ReplicaManager(
            self.broker_id,
            logs,
            replication=self.replication,
            controller_epoch=self.controller_epoch,
            followers=self.fetchers,
        )
        self.notices = DiskNotices(
            self.replicas,
            lambda: self.registry.create(LogDirEvent.PREFIX, LogDirEvent.encode(self.broker_id), sequential=True),
        )
        parts: Any = self.replicas, self.metadata, self.latest_epoch
        self.port = LocalBroker(*parts)

    def start(self) -> None:
        """Register, and stand for election."""
        self.registration.register()
        self.port.registered()
        self.controller.begin()

    def lose_directory(self) -> None:
        """The one with all logs fails, and the broker goes on with another one."""
        self.logs.lose()
        self.replicas.directory_failed([Path("/model")])
        self.notices.tell()

    def own_epoch(self) -> int:
        return self.registration.broker.epoch

    def latest_epoch(self) -> int:
        return self.registration.latest_epoch

    def obey(self, request: ControlRequest, number: int) -> Any:
        """What the handlers do with a controller's request that came over the network."""
        return call(Heard(self.port, number), request)

    @property
    def partition(self) -> Partition | None:
        return self.replicas.partitions.get(KEY)

    # As a follower

    def _new_fetcher(self, source: int, number: int, on_failed: Callable[[Followed], None]) -> SteppedFetcher:
        leader: LeaderPort = DirectLeader(partial(self._find, self.broker_id, source))
        return SteppedFetcher(
            source,
            leader,
            backoff_ms=lambda: BACKOFF_MS,
            on_failed=on_failed,
            now_ms=self.now_ms,
        )

    # As a leader

    def serve(self, replica_id: int, broker_epoch: int, plan: FetchPlan, *, is_full: bool = False) -> FetchResponse:
        """What the Fetch handler does for a follower, but for sessions and waiting.

        `is_full`: what other partitions have is all that the answer takes.
        """
        limits = ReadLimits(MOST_RECORDS, version=17, replica_id=replica_id, isolation_level=0)
        readings = []
        for key, told in plan.partitions:
            asked = FetchPartition(
                partition=key[1],
                current_leader_epoch=told.leader_epoch,
                fetch_offset=told.fetch_offset,
                last_fetched_epoch=told.last_fetched_epoch,
                log_start_offset=told.log_start_offset,
                partition_max_bytes=MOST_RECORDS,
            )
            partition = self.replicas.partitions.get(key)
            refusal = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if partition is None else None
            readings.append(Reading(partition, asked, refusal))
        if is_full:
            for reading in readings:
                reading.read(limits, 0, nothing_yet=False)
        else:
            read_all(readings, limits)
        for reading in readings:
            partition = reading.partition
            if reading.note_progress(replica_id, broker_epoch) and partition is not None:
                committed((partition,))
        for reading in readings:
            reading.attach(by_descriptor=False)
        answers = [reading.answer for reading in readings]
        topic = FetchableTopicResponse(topic=TOPIC, topic_id=TOPIC_ID, partitions=answers)
        return FetchResponse(error_code=0, session_id=0, responses=[topic])

    def offset(self, key: Key, epoch: int, timestamp: int) -> tuple[ErrorCode, int]:
        """What ListOffsets says to a follower."""
        partition = self.replicas.partitions.get(key)
        if partition is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1
        try:
            log = partition.leader_log()
            partition.check_leader_epoch(epoch)
        except BrokerError as failure:
            return failure.code, -1
        return ErrorCode.NONE, log.log_end_offset if timestamp == LATEST else log.log_start_offset

    def _ask(self, request: AlterPartitionRequest, on_answer: Callable[[Any], None]) -> None:
        assert self.errand is None
        self.errand = Errand(self, request, on_answer)
