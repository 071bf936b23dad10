"""Brokers that append, refuse, forget and lose, and a network whose answers come late or never: no socket, no clock."""

import random
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from kavka.client.api_errors import DisconnectedError
from kavka.client.broker_versions import BrokerVersions
from kavka.client.call import Call, Callback, Sendable, VersionRange
from kavka.client.cluster import Cluster, PartitionInfo, TopicInfo
from kavka.client.node import Node
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.api import VERSIONS, ApiKey
from kavka.protocol.codec import decode, encode
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kavka.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from kavka.protocol.records.batch import iter_records, read_header, verify_crc
from kavka.protocol.schema import Request, Response

TOPIC = "birds"
TOPIC_ID = bytes(15) + b"\7"
KEPT_BATCHES = 5
SEQUENCES = 0x7FFF_FFFF
_WITH_VERSION = (ApiKey.PRODUCE, ApiKey.TXN_OFFSET_COMMIT)
"""Whose handlers get the request as it was sent."""


class Appended(NamedTuple):
    """A batch that the broker remembers of a producer."""

    first_sequence: int
    last_sequence: int
    base_offset: int


class ProducerState:
    """What a partition knows of a producer."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.batches: deque[Appended] = deque(maxlen=KEPT_BATCHES)


class Log:
    """One partition: its records' values, and its producers."""

    def __init__(self) -> None:
        self.values: list[bytes] = []
        self.producers: dict[int, ProducerState] = {}
        self.start_offset = 0
        self.appends = 0
        self.refuses_unknown = False
        """Whether it takes sequence 0 alone of a producer that it does not know, as brokers did before KIP-360."""
        self.ends_of_eras: list[int] = []
        """Offsets up to which all records were deleted."""

    def append(self, data: bytes) -> tuple[int, int]:
        """(error code, base offset), by Kafka's rules for sequences."""
        header = read_header(data)
        verify_crc(data, 0, header)
        values = [record.value or b"" for record in iter_records(data)]
        assert len(values) == header.count > 0
        base_offset = len(self.values)
        if header.producer_id >= 0:
            code, base_offset = self._check(header, base_offset)
            if code or base_offset < len(self.values):
                return code, base_offset
        self.values += values
        self.appends += 1
        return ErrorCode.NONE, base_offset

    def delete_records(self) -> None:
        """Retention deletes them all, and nothing is known any more of who wrote them."""
        self.start_offset = len(self.values)
        self.ends_of_eras.append(self.start_offset)
        self.producers.clear()

    def eras(self) -> list[list[bytes]]:
        """The values that were there together, between one deletion and the next."""
        edges = [0, *self.ends_of_eras, len(self.values)]
        return [self.values[first:last] for first, last in pairwise(edges)]

    def _check(self, header: Any, base_offset: int) -> tuple[int, int]:
        first, last = header.base_sequence, header.last_sequence
        state = self.producers.get(header.producer_id)
        if state is None and first != 0 and self.refuses_unknown:
            return ErrorCode.UNKNOWN_PRODUCER_ID, -1
        if state is None or state.epoch < header.producer_epoch:
            if state is not None and first != 0:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
            state = self.producers[header.producer_id] = ProducerState(header.producer_epoch)
        elif state.epoch > header.producer_epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH, -1
        elif state.batches:
            for known in state.batches:
                if (known.first_sequence, known.last_sequence) == (first, last):
                    return ErrorCode.NONE, known.base_offset
            if first != (state.batches[-1].last_sequence + 1) & SEQUENCES:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
        state.batches.append(Appended(first, last, base_offset))
        return ErrorCode.NONE, base_offset


class Sent(NamedTuple):
    """A request on a connection."""

    api_key: int
    version: int
    request: Request
    callback: Callback
    is_answered: bool


class Connection:
    """Requests that the broker has not run yet, and answers that the client has not got yet."""

    def __init__(self) -> None:
        self.requests: deque[Sent] = deque()
        self.answers: deque[tuple[Sent, Response]] = deque()

    @property
    def in_flight(self) -> int:
        return len(self.requests) + len(self.answers)


class SimulatedCluster:
    """Brokers, logs and who leads them, and the client's connections to them (a NetworkPort).

    `refuse(partition)` gives an error code that a produce to it meets, before the append; `refuse_after` one that it
    meets after.
    """

    def __init__(self, dice: random.Random, *, nodes: int = 2, partitions: int = 3, max_in_flight: int = 5) -> None:
        self.dice = dice
        self.nodes = {number: Node(number, "sim", 9000 + number) for number in range(nodes)}
        self.leaders = {number: number % nodes for number in range(partitions)}
        self.epochs = dict.fromkeys(range(partitions), 1)
        self.logs = {number: Log() for number in range(partitions)}
        self.connections = {number: Connection() for number in self.nodes}
        self.strays: list[tuple[int, Sent]] = []
        """Requests of closed connections that brokers may still run."""
        self.may_stray: Callable[[Sent], bool] = lambda _: True
        self.is_outdated: Callable[[Sent], bool] = lambda _: False
        """Whether one of them is lost after all."""
        self.max_in_flight = max_in_flight
        self.max_batch_bytes = 2**30
        self.refuse: Callable[[int], int] = lambda _: ErrorCode.NONE
        self.refuse_after: Callable[[int], int] = lambda _: ErrorCode.NONE
        self.verify: Callable[[int, bytes], int] = lambda partition, data: ErrorCode.NONE
        """What a partition's leader hears when it asks whether a batch is of a transaction that is open."""
        self.not_ready: set[int] = set()
        self.next_id = 1000
        self.ranges: dict[int, VersionRange] = {key: (known.oldest, known.newest) for key, known in VERSIONS.items()}
        self.features: dict[str, int] = {}
        self.handlers: dict[int, Callable[[int, Any], Response]] = {
            ApiKey.PRODUCE: self._produce,
            ApiKey.INIT_PRODUCER_ID: self._init_producer_id,
        }
        self.produced_versions: set[int] = set()

    # The client's side -----------------------------------------------------------------------------------------------

    def snapshot(self, version: int) -> Cluster:
        """The cluster as its metadata are now."""
        partitions = {number: PartitionInfo(leader, self.epochs[number]) for number, leader in self.leaders.items()}
        topic = TopicInfo(TOPIC, TOPIC_ID, 0, False, partitions)
        return Cluster("sim", 0, self.nodes, {TOPIC: topic}, version)

    def ready(self, node: Node) -> bool:
        return node.id not in self.not_ready and self.connections[node.id].in_flight < self.max_in_flight

    def is_ready(self, node: Node) -> bool:
        return self.ready(node)

    has_news = False

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
        assert self.ready(node)
        call = Call(request, callback, versions)
        version = call.choose_version(self.ranges.get(call.api_key))
        built = call.build(version)
        decoded: Any = decode(type(built), version, encode(built, version))
        self.connections[node.id].requests.append(Sent(call.api_key, version, decoded, callback, is_answered))

    def delay_ms(self, node: Node) -> float:
        return 10.0 if node.id in self.not_ready else float("inf")

    def failures(self, node: Node) -> int:
        return 0

    def in_flight(self, node: Node) -> int:
        return self.connections[node.id].in_flight

    def served(self, node: Node) -> BrokerVersions | None:
        return BrokerVersions(self.ranges, self.features, 1)

    def least_loaded(self, nodes: Sequence[Node]) -> Node | None:
        return min(nodes, key=self.in_flight)

    def disconnect(self, node: Node, reason: str = "") -> None:
        self.cut(node.id)

    def wakeup(self) -> None:
        pass

    # What happens ----------------------------------------------------------------------------------------------------

    def busy(self) -> list[int]:
        """Nodes with something on their connection."""
        return [number for number, connection in self.connections.items() if connection.in_flight]

    def run_next(self, node: int) -> None:
        """The broker runs the oldest request that it has."""
        connection = self.connections[node]
        if connection.requests:
            sent = connection.requests.popleft()
            connection.answers.append((sent, self._run(node, sent)))

    def answer_next(self, node: int) -> None:
        """The client gets the oldest answer."""
        connection = self.connections[node]
        if connection.answers:
            sent, answer = connection.answers.popleft()
            if sent.is_answered:
                sent.callback(decode(type(answer), sent.version, encode(answer, sent.version)))
            else:
                sent.callback(None)

    def cut(self, node: int) -> None:
        """The connection ends. What the broker has got it may still run, now or much later."""
        connection = self.connections[node]
        gone = [sent for sent, _ in connection.answers] + list(connection.requests)
        arrived = self.dice.randint(0, len(connection.requests))
        self.strays += [(node, sent) for sent in list(connection.requests)[:arrived] if self.may_stray(sent)]
        connection.requests.clear()
        connection.answers.clear()
        for sent in gone:
            sent.callback(DisconnectedError("the simulated network has cut the connection"))

    def run_stray(self) -> None:
        """A broker runs a request whose connection is closed; requests of one connection in their order."""
        if self.strays:
            node, sent = self.strays.pop(0)
            if not self.is_outdated(sent):
                self._run(node, sent)

    def move(self, partition: int) -> None:
        """Another broker leads the partition now; its log is the same."""
        self.leaders[partition] = self.dice.choice(list(self.nodes))
        self.epochs[partition] += 1

    # The brokers' side -----------------------------------------------------------------------------------------------

    def _run(self, node: int, sent: Sent) -> Response:
        return self.handlers[sent.api_key](node, sent if sent.api_key in _WITH_VERSION else sent.request)

    def _produce(self, node: int, sent: Sent) -> ProduceResponse:
        request: Any = sent.request
        assert isinstance(request, ProduceRequest)
        self.produced_versions.add(sent.version)
        answers = []
        for topic in request.topic_data:
            assert (topic.topic_id == TOPIC_ID) if sent.version >= 13 else (topic.name == TOPIC)
            parts = [self._append(node, part.index, bytes(part.records)) for part in topic.partition_data]
            answers.append(TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=parts))
        return ProduceResponse(responses=answers)

    def _append(self, node: int, partition: int, data: bytes) -> PartitionProduceResponse:
        log = self.logs[partition]
        base_offset = -1
        code: int = self.refuse(partition)
        if self.leaders[partition] != node:
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        elif len(data) > self.max_batch_bytes:
            code = ErrorCode.MESSAGE_TOO_LARGE
        elif not code:
            code = self.verify(partition, data)
            if not code:
                code, base_offset = log.append(data)
            code = code or self.refuse_after(partition)
        return PartitionProduceResponse(
            index=partition,
            error_code=code,
            base_offset=-1 if code else base_offset,
            log_start_offset=log.start_offset,
            record_errors=[],
        )

    def _init_producer_id(self, node: int, request: Any) -> InitProducerIdResponse:
        assert isinstance(request, InitProducerIdRequest)
        self.next_id += 1
        return InitProducerIdResponse(error_code=0, producer_id=self.next_id, producer_epoch=0)


class SimulatedMetadata:
    """The client's metadata: as old as the test lets them be."""

    refusal: None = None

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._simulated = cluster
        self.cluster = cluster.snapshot(1)
        self.is_wanted = False

    def want(self, topics: Iterable[str]) -> int:
        self.is_wanted = True
        return self.cluster.version

    def request_update(self) -> int:
        self.is_wanted = True
        return self.cluster.version

    def learn_leaders(self, leaders: Mapping[TopicPartition, Any], nodes: Iterable[Node]) -> set[TopicPartition]:
        return set()

    def nodes(self) -> tuple[Node, ...]:
        return tuple(self._simulated.nodes.values())

    def update(self) -> None:
        """The answer to what was wanted."""
        self.is_wanted = False
        self.cluster = self._simulated.snapshot(self.cluster.version + 1)
