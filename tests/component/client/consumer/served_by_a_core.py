"""A consumer's two threads, step by step, over a broker's own handlers, fetch sessions and logs: no socket, no clock.

Nobody looks at anything unless he was woken, or his time is up: what nobody tells of is never found.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kavka.broker.waiting.purgatory import DelayedOperation
from kavka.client.backoff import ExponentialBackoff
from kavka.client.broker_versions import BrokerVersions
from kavka.client.call import Call, Callback, Sendable, VersionRange
from kavka.client.client_metrics import Metrics
from kavka.client.cluster import Cluster, PartitionInfo, TopicInfo
from kavka.client.connection import Connection
from kavka.client.consumer.buffer import FetchBuffer, News
from kavka.client.consumer.fetch_answers import FetchAnswers
from kavka.client.consumer.fetch_metrics import FetchMetrics
from kavka.client.consumer.fetcher import Fetcher, FetchSettings
from kavka.client.consumer.offset_lookup import OffsetLookups
from kavka.client.consumer.position_finding import PositionFinder
from kavka.client.consumer.positions import EARLIEST, ResetPolicy
from kavka.client.consumer.stretches import Deserializers
from kavka.client.consumer.subscription import Subscription
from kavka.client.errors import AnswerTimeoutError, ClientError, DisconnectedError
from kavka.client.metadata_update import LeaderAndEpoch, with_leaders
from kavka.client.node import Node
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.errors import ErrorCode
from tests.support.broker_core import BrokerCore
from tests.support.broker_handlers import BROKER_ID, topic_id_of

MAX_WAIT_MS: Final = 500
REQUEST_TIMEOUT_MS: Final = 30_000.0
INFINITY: Final = float("inf")
NODE: Final = Node(BROKER_ID, "h", 1)


class Wire:
    """One connection, seen from both its ends, and what is on its way to the broker."""

    def __init__(self, core: BrokerCore) -> None:
        self.client = Connection(client_id="c", max_in_flight=5, max_answer_bytes=1 << 20, discover_versions=False)
        self.server, self.socket = core.stage.connect()
        self.sent: deque[bytes] = deque()

    @property
    def has_answer(self) -> bool:
        return bool(self.socket.taken)


class CoreNetwork:
    """A NetworkPort to one broker. Each step of a request's way is a step of the test's."""

    def __init__(self, core: BrokerCore) -> None:
        self.core = core
        self.now_ms = 1_000.0
        self.fetch_version = 18
        self.results: deque[tuple[Callback, Any]] = deque()
        self.wire: Wire | None = None
        self.is_connecting = False
        self.cut: list[Wire] = []
        """Connections that the client has given up, whose last requests may arrive all the same."""
        self.parked: dict[DelayedOperation, float] = {}
        self._failures = 0
        self._not_before_ms = 0.0

    # NetworkPort

    def ready(self, node: Node) -> bool:
        if self.wire is None and not self.is_connecting and self.now_ms >= self._not_before_ms:
            self.is_connecting = True
        return self.wire is not None and self.wire.client.takes_another

    def send(
        self,
        node: Node,
        request: Sendable,
        callback: Callback,
        *,
        versions: VersionRange | None = None,
        timeout_ms: float | None = None,
        is_answered: bool = True,
    ) -> None:
        assert self.wire is not None
        oldest, newest = versions or (0, 100)
        call = Call(request, callback, (oldest, newest), self.now_ms + REQUEST_TIMEOUT_MS)
        if call.api_key == 1:
            call.newest = min(call.newest, self.fetch_version)
        client = self.wire.client
        client.request(call)
        self.wire.sent.append(b"".join(bytes(part) for part in client.unsent))
        client.unsent.clear()

    def delay_ms(self, node: Node) -> float:
        if self.wire is not None or self.is_connecting:
            return INFINITY
        return max(self._not_before_ms - self.now_ms, 0.0)

    def failures(self, node: Node) -> int:
        return self._failures

    def in_flight(self, node: Node) -> int:
        return self.wire.client.in_flight if self.wire is not None else 0

    def served(self, node: Node) -> BrokerVersions | None:
        return self.wire.client.served if self.wire is not None else None

    def least_loaded(self, nodes: Sequence[Node]) -> Node | None:
        return nodes[0] if nodes else None

    def disconnect(self, node: Node, reason: str = "") -> None:
        self.lose(DisconnectedError(reason))

    def wakeup(self) -> None:
        raise AssertionError("those who wake know the reader")

    # What happens to it

    @property
    def deadline_ms(self) -> float:
        return self.wire.client.deadline_ms if self.wire is not None else INFINITY

    def connected(self, *, succeeds: bool = True) -> None:
        self.is_connecting = False
        if succeeds:
            self.wire, self._failures = Wire(self.core), 0
        else:
            self._failed()

    def lose(self, error: ClientError) -> None:
        """The connection is over for the client; what it has sent may still come to the broker."""
        wire, self.wire = self.wire, None
        if wire is not None:
            self.results += [(call.callback, error) for call in wire.client.abandon()]
            self.cut.append(wire)
            self._failed()

    def _failed(self) -> None:
        self._failures += 1
        self._not_before_ms = self.now_ms + min(50 * 2**self._failures, 1_000)

    def arrive(self, wire: Wire) -> None:
        """The next request comes to the broker, which runs it."""
        wire.socket.input += wire.sent.popleft()
        self._settle(wire)

    def answer(self) -> None:
        """What the broker has answered comes to the client."""
        assert self.wire is not None
        data = memoryview(bytes(self.wire.socket.taken))
        self.wire.socket.taken.clear()
        for frame in self.wire.client.reader.arrived(data):
            answered = self.wire.client.answered(frame)
            assert answered is not None
            call, answer = answered
            self.results.append((call.callback, answer))

    def end(self, wire: Wire) -> None:
        """The broker hears that a connection is over which the client has given up."""
        self.cut.remove(wire)
        if not wire.socket.closed:
            wire.socket.ended = True
            self.core.stage.thread.end(wire.server)
            self._settle(wire)

    def expire_due(self) -> None:
        """Fetches that have waited for long enough are answered."""
        self.notice_parked()
        for operation, due_ms in list(self.parked.items()):
            if operation.ended or due_ms <= self.now_ms:
                del self.parked[operation]
                operation.expire()
        self.core.stage.settle()

    def notice_parked(self) -> None:
        for wire in [*self.cut, *([self.wire] if self.wire is not None else [])]:
            for operation in wire.server.parked:
                self.parked.setdefault(operation, self.now_ms + MAX_WAIT_MS)

    def _settle(self, wire: Wire) -> None:
        self.core.stage.settle()
        assert not self.core.stage.rejected, self.core.stage.rejected
        self.notice_parked()


class CoreMetadata:
    """What fetching needs of `Metadata`: asked of the broker when the test lets it be, after a back-off."""

    def __init__(self, core: BrokerCore, network: CoreNetwork, topic: str, partitions: int) -> None:
        self._core = core
        self._network = network
        self._topic = topic
        self._partitions = partitions
        self.is_wanted = False
        self.not_before_ms = 0.0
        self.cluster = Cluster()
        self.told: list[News] = []
        self.refresh()

    def request_update(self) -> int:
        self.is_wanted = True
        return self.cluster.version

    def refresh(self, *, lacks_topic: bool = False) -> None:
        """An answer; while the broker has not heard of the topic yet it knows no partitions of it."""
        self.is_wanted = lacks_topic
        self.not_before_ms = self._network.now_ms + 100
        hosted = self._core.replicas.partitions
        roles = {number: hosted[self._topic, number].role for number in range(self._partitions)}
        known = {number: PartitionInfo(BROKER_ID, role.leader_epoch) for number, role in roles.items()}
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if lacks_topic else ErrorCode.NONE
        topic = TopicInfo(self._topic, topic_id_of(self._topic), code, False, {} if lacks_topic else known)
        self._publish(Cluster("c", BROKER_ID, {BROKER_ID: NODE}, {self._topic: topic}, self.cluster.version + 1))

    def learn_leaders(
        self, leaders: Mapping[TopicPartition, LeaderAndEpoch], nodes: Iterable[Node]
    ) -> set[TopicPartition]:
        cluster, changed = with_leaders(self.cluster, leaders, [NODE])
        if changed:
            self._publish(cluster)
        return changed

    def _publish(self, cluster: Cluster) -> None:
        self.cluster = cluster
        for news in self.told:
            news.tell()


class ToldNews(News):
    """Whether the polling thread, which waits, would be woken."""

    __slots__ = ("is_told",)

    def __init__(self) -> None:
        super().__init__()
        self.is_told = False

    def tell(self) -> None:
        self.is_told = True


class SteppedReader:
    """What `ConsumerCore` is made of, with the client's thread as `turn`."""

    def __init__(self, network: CoreNetwork, metadata: CoreMetadata, deserializers: Deserializers) -> None:
        settings = FetchSettings(max_partition_bytes=200, max_bytes=500, max_wait_ms=MAX_WAIT_MS)
        self.network = network
        self.metadata = metadata
        self.is_woken = True
        self.sleeps_until_ms = 0.0
        self.news = ToldNews()
        metadata.told.append(self.news)
        clock = lambda: network.now_ms  # noqa: E731  # the clock of all
        metrics = FetchMetrics(Metrics("consumer", "c", now_ms=clock))
        self.subscription = Subscription(ResetPolicy(EARLIEST), self._wake)
        self.buffer = FetchBuffer(
            self.subscription,
            max_bytes=settings.max_bytes,
            news=self.news,
            wake=self._wake,
            metrics=metrics,
            deserializers=deserializers,
        )
        self.lookups = OffsetLookups(network, metadata, is_read_committed=False, retry_backoff_ms=100, now_ms=clock)
        answers = FetchAnswers(
            self.subscription,
            self.buffer,
            ExponentialBackoff(100, 1_000, lambda: 0.5),
            request_metadata=metadata.request_update,
            learn_leaders=metadata.learn_leaders,
            preferred_for_ms=settings.metadata_max_age_ms,
        )
        self.fetcher = Fetcher(network, metadata, self.subscription, self.buffer, settings, answers, metrics, clock)
        self.finder = PositionFinder(
            network,
            metadata,
            self.subscription,
            self.buffer,
            self.lookups,
            answers,
            settings,
            committed=None,
            on_found=self.news.tell,
            now_ms=clock,
            wall_clock_ms=clock,
        )

    @property
    def has_turn(self) -> bool:
        """Whether the client's thread has something to do."""
        network = self.network
        is_late = network.now_ms >= min(self.sleeps_until_ms, network.deadline_ms)
        return self.is_woken or bool(network.results) or is_late

    def turn(self) -> None:
        """One round of the client's thread, as `ClientThread` and `NetworkClient.poll` have it."""
        network = self.network
        self.is_woken = False
        if network.now_ms >= network.deadline_ms:
            network.lose(AnswerTimeoutError("late"))
        for _ in range(len(network.results)):
            callback, result = network.results.popleft()
            callback(result)
        now_ms = network.now_ms
        self.lookups.work(now_ms)
        wait_ms = min(self.finder.work(now_ms), self.lookups.work(now_ms), self.fetcher.work(now_ms))
        self.sleeps_until_ms = now_ms + wait_ms

    def _wake(self) -> None:
        self.is_woken = True
