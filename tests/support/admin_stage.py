"""An admin client with no thread, socket or time: brokers are functions, and the clock moves when nothing else does.

Requests and answers go through the codec in the version that both sides have, so that what cannot be sent in a version
fails here too.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, cast

from kavka.client.admin.areas.area import Area
from kavka.client.admin.driver import AdminCall
from kavka.client.admin.machine import AdminMachine
from kavka.client.admin.operation import Item, Operation, Result
from kavka.client.admin.ports import AdminPorts
from kavka.client.backoff import ExponentialBackoff
from kavka.client.broker_versions import BrokerVersions
from kavka.client.call import Call, Callback, Sendable, VersionRange
from kavka.client.cluster import Cluster
from kavka.client.coordinators import Coordinators
from kavka.client.errors import DisconnectedError
from kavka.client.kafka_error import KafkaError
from kavka.client.metadata import Metadata
from kavka.client.node import Node
from kavka.protocol.api import VERSIONS, spec
from kavka.protocol.codec import decode, encode
from kavka.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from kavka.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kavka.protocol.schema import Request, Response, schema_of

MOST_ROUNDS = 10_000
METADATA_BACKOFF_MS = 100
RECONNECTED_EACH_MS = 500
SILENCE = None
"""What a broker says that never answers."""

Said = Response | KafkaError | None
Broker = Callable[[Node, Any], Said]
AnyArea = TypeVar("AnyArea", bound=Area)


class Asked:
    """A request as a broker saw it."""

    def __init__(self, node: Node, request: Any, version: int, at_ms: float) -> None:
        self.node = node
        self.request = request
        self.version = version
        self.at_ms = at_ms


class ScriptedNetwork:
    """A NetworkPort whose brokers are functions by API."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.brokers: dict[int, Broker] = {}
        self.versions: dict[int, dict[int, VersionRange | None]] = {}
        """What differs from all that is known, by node."""
        self.unreachable: set[int] = set()
        self.asked: list[Asked] = []
        self._answers: deque[tuple[Callback, Any]] = deque()
        self._owed: list[tuple[int, Callback]] = []
        """What was answered with SILENCE."""

    def answer(self, request_class: type[Request], broker: Broker) -> None:
        """From now on this is what is said to such requests."""
        key = schema_of(request_class).key
        assert key is not None
        self.brokers[key] = broker

    def requests(self, request_class: type[Request]) -> list[Asked]:
        return [asked for asked in self.asked if isinstance(asked.request, request_class)]

    def deliver(self) -> bool:
        """Call back for what has been answered; whether there was anything."""
        for _ in range(len(self._answers)):
            callback, answer = self._answers.popleft()
            callback(answer)
            return True
        return False

    def ready(self, node: Node) -> bool:
        return node.id not in self.unreachable

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
        call = Call(request, callback, versions)
        known = VERSIONS[call.api_key]
        version = call.choose_version(self.versions.get(node.id, {}).get(call.api_key, (known.oldest, known.newest)))
        api = spec(call.api_key)
        seen = decode(api.request_class, version, encode(call.build(version), version))
        self.asked.append(Asked(node, seen, version, self.clock()))
        said = self.brokers[call.api_key](node, seen)
        if said is SILENCE:
            self._owed.append((node.id, callback))
            return
        answer = said if isinstance(said, KafkaError) else decode(api.response_class, version, encode(said, version))
        self._answers.append((callback, answer))

    def cut_off(self, broker_id: int) -> None:
        """The broker cannot be reached any more, and what it owes will not come."""
        self.unreachable.add(broker_id)
        gone = DisconnectedError(f"broker {broker_id} is gone")
        self._answers += [(callback, gone) for owing, callback in self._owed if owing == broker_id]
        self._owed = [each for each in self._owed if each[0] != broker_id]

    def delay_ms(self, node: Node) -> float:
        return RECONNECTED_EACH_MS - self.clock() % RECONNECTED_EACH_MS if node.id in self.unreachable else float("inf")

    def failures(self, node: Node) -> int:
        return int(self.clock() // RECONNECTED_EACH_MS) if node.id in self.unreachable else 0

    def in_flight(self, node: Node) -> int:
        return 0

    def served(self, node: Node) -> BrokerVersions | None:
        own = self.versions.get(node.id, {})
        ranges = {key: own.get(key, (known.oldest, known.newest)) for key, known in VERSIONS.items()}
        return BrokerVersions({key: versions for key, versions in ranges.items() if versions is not None}, {}, -1)

    def least_loaded(self, nodes: Sequence[Node]) -> Node | None:
        return next((node for node in nodes if node.id not in self.unreachable), None)

    def disconnect(self, node: Node, reason: str = "") -> None:
        raise AssertionError("an admin client leaves connections alone")

    def wakeup(self) -> None:
        raise AssertionError("there is nobody to be woken")


class StagedMetadata:
    """What the client knows of the cluster: the stage's truth, once it has asked for it."""

    def __init__(self, stage: "AdminStage") -> None:
        self._stage = stage
        self.cluster = Cluster()
        self.updates = 0
        self._is_wanted = False
        self._not_before_ms = 0.0

    def nodes(self) -> Sequence[Node]:
        return tuple(self._stage.nodes.values())

    def request_update(self) -> int:
        self._is_wanted = True
        return self.cluster.version

    @property
    def due_ms(self) -> float:
        return self._not_before_ms if self._is_wanted else float("inf")

    def deliver(self) -> bool:
        stage = self._stage
        if stage.now_ms < self.due_ms:
            return False
        if stage.network.least_loaded(self.nodes()) is None:
            # There is nobody to ask.
            self._not_before_ms = stage.now_ms + METADATA_BACKOFF_MS
            return False
        self._is_wanted = False
        self._not_before_ms = stage.now_ms + METADATA_BACKOFF_MS
        self.updates += 1
        self.cluster = Cluster("c", stage.controller_id, dict(stage.nodes), {}, self.cluster.version + 1)
        return True


class AdminStage:
    """Brokers 1, 2 and 3, the first the controller; partitions are led, and keys coordinated, as the tables say."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000.0
        self.nodes = {broker: Node(broker, f"host-{broker}", 9092) for broker in (1, 2, 3)}
        self.controller_id = 1
        self.leaders: dict[str, list[int]] = {}
        """By topic, each partition's leader; -1 for none."""
        self.coordinators: dict[str, int] = {}
        """By key; -1 for none. Others are coordinated by broker 1."""
        self.network = ScriptedNetwork(lambda: self.now_ms)
        self.network.answer(MetadataRequest, self._metadata)
        self.network.answer(FindCoordinatorRequest, self._coordinator)
        self.metadata = StagedMetadata(self)
        backoff = ExponentialBackoff(100, 1000, lambda: 0.5)
        coordinators = Coordinators(self.network, cast(Metadata, self.metadata), backoff)
        self.ports = AdminPorts(
            network=self.network,
            metadata=self.metadata,
            coordinators=coordinators,
            backoff=backoff,
            now_ms=lambda: self.now_ms,
            request_timeout_ms=30_000,
            retries=2**31 - 1,
        )
        self.machine = AdminMachine(coordinators)
        self.scheduled: list[tuple[float, Callable[[], object]]] = []

    def later(self, delay_ms: float, change: Callable[[], object]) -> None:
        """Have something change in the cluster after a while."""
        self.scheduled.append((self.now_ms + delay_ms, change))
        self.scheduled.sort(key=lambda each: each[0])

    def kill(self, broker_id: int, heir: int) -> None:
        """A broker dies, requests on their way and all; another one has what it led, coordinated and controlled."""
        self.network.cut_off(broker_id)
        for leaders in self.leaders.values():
            leaders[:] = [heir if leader == broker_id else leader for leader in leaders]
        for key, coordinator in self.coordinators.items():
            self.coordinators[key] = heir if coordinator == broker_id else coordinator
        if self.controller_id == broker_id:
            self.controller_id = heir

    def revive(self, broker_id: int) -> None:
        """It can be reached again."""
        self.network.unreachable.discard(broker_id)

    def begin(self, operation: Operation[Item, Result], timeout_ms: float = 60_000) -> AdminCall[Item, Result]:
        call = AdminCall(operation, self.ports, self.now_ms + timeout_ms, lambda: None)
        self.machine.begin(call)
        return call

    def run(self, operation: Operation[Item, Result], timeout_ms: float = 60_000) -> AdminCall[Item, Result]:
        """The call when it is done."""
        call = self.begin(operation, timeout_ms)
        self.drive()
        return call

    def drive(self) -> None:
        """Until no call is left: answers first, and time when there are none."""
        for _ in range(MOST_ROUNDS):
            wait_ms = self.machine.work(self.now_ms)
            if self.machine.is_idle():
                return
            if not self.network.deliver() and not self.metadata.deliver():
                self._wait(wait_ms)
        raise AssertionError(f"not done after {MOST_ROUNDS} rounds")

    def area(self, area_class: type[AnyArea]) -> AnyArea:
        """Methods whose calls are driven at once."""
        return area_class(cast(Any, InlineThread(self)), self.machine, self.ports, 60_000)

    def _wait(self, wait_ms: float) -> None:
        wait_ms = min(wait_ms, self.metadata.due_ms - self.now_ms)
        if self.scheduled and self.scheduled[0][0] <= self.now_ms + wait_ms:
            self.now_ms, change = self.scheduled.pop(0)
            change()
            return
        assert wait_ms != float("inf"), "it waits for nothing"
        self.now_ms += max(wait_ms, 1)

    def _metadata(self, _node: Node, request: MetadataRequest) -> MetadataResponse:
        brokers = [
            MetadataResponseBroker(node_id=node.id, host=node.host, port=node.port) for node in self.nodes.values()
        ]
        asked = self.leaders if request.topics is None else [topic.name or "" for topic in request.topics]
        return MetadataResponse(
            brokers=brokers, cluster_id="c", controller_id=self.controller_id, topics=list(map(self._topic, asked))
        )

    def _topic(self, name: str) -> MetadataResponseTopic:
        if name not in self.leaders:
            return MetadataResponseTopic(error_code=3, name=name, partitions=[])
        partitions = [
            MetadataResponsePartition(
                error_code=0 if leader >= 0 else 5,
                partition_index=index,
                leader_id=leader,
                replica_nodes=[1, 2, 3],
                isr_nodes=[1, 2, 3],
            )
            for index, leader in enumerate(self.leaders[name])
        ]
        return MetadataResponseTopic(error_code=0, name=name, partitions=partitions)

    def _coordinator(self, node: Node, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
        keys = request.coordinator_keys or [request.key]
        rows = [self._coordinator_of(key) for key in keys]
        if request.coordinator_keys:
            return FindCoordinatorResponse(error_code=0, node_id=0, host="", port=0, coordinators=rows)
        (row,) = rows
        return FindCoordinatorResponse(
            error_code=row.error_code, node_id=row.node_id, host=row.host, port=row.port, coordinators=[]
        )

    def _coordinator_of(self, key: str) -> Coordinator:
        broker = self.coordinators.get(key, 1)
        if broker < 0:
            return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=15, error_message=None)
        node = self.nodes[broker]
        return Coordinator(key=key, node_id=node.id, host=node.host, port=node.port, error_code=0, error_message=None)


class InlineThread:
    """A client's thread that is the caller's own."""

    failure: KafkaError | None = None

    def __init__(self, stage: AdminStage) -> None:
        self._stage = stage

    def check(self) -> None:
        """It lives."""

    def submit(self, call: Callable[[], None]) -> None:
        call()
        self._stage.drive()


def in_turn(*answers: Said) -> Broker:
    """Says one after the other, and the last again and again."""
    left = list(answers)
    return lambda _node, _request: left.pop(0) if len(left) > 1 else left[0]


def nodes_of(asked: Iterable[Asked]) -> list[int]:
    """Which brokers requests went to, in their order."""
    return [each.node.id for each in asked]
