"""One broker with a real coordinator's shard behind a fake network: what goes wrong between it and clients is chosen.

broker = GroupBroker({"t": 4})
network = broker.network("a")
network.fate = lambda request: Fate(loses_answer=True)
broker.advance(100)
network.deliver()
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from kavka.client.broker_versions import BrokerVersions
from kavka.client.call import Callback, RequestBuilder, Sendable, VersionRange
from kavka.client.errors import DisconnectedError
from kavka.client.node import Node, NodeKey
from kavka.coordinator.group.group import Client
from kavka.coordinator.group.shard import GroupShard
from kavka.protocol.api import VERSIONS, ApiKey, spec
from kavka.protocol.codec import decode, encode
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.find_coordinator import FindCoordinatorResponse
from kavka.protocol.messages.leave_group import LeaveGroupResponse
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
from kavka.protocol.messages.offset_fetch import OffsetFetchResponse, OffsetFetchResponseGroup
from kavka.protocol.schema import schema_of
from tests.support.coordinator_stage import Asked, Stage

NODE = Node(1, "broker", 9092)
RECONNECT_MS = 50
IN_FLIGHT = 5
COMMITS_BY_ID = 10
SETTINGS = {"group.initial.rebalance.delay.ms": "0", "group.consumer.migration.policy": "bidirectional"}


class Fate(NamedTuple):
    """What becomes of a request. Losing either way ends the connection, as TCP loses nothing but the end."""

    loses_request: bool = False
    loses_answer: bool = False
    doubles: bool = False
    """The coordinator gets it once more after it has answered."""
    delay_ms: float = 0.0
    code: ErrorCode = ErrorCode.NONE
    """Answered with this, and not done."""
    change: Callable[[Any], None] | None = None
    """What is done to the answer before it goes out."""


class GroupBroker:
    """The coordinator, the topics and the clock. `commits` has each offset that was ever stored, in order."""

    def __init__(self, topics: Mapping[str, int], settings: Mapping[str, str] | None = None) -> None:
        self.stage: Stage[GroupShard] = Stage(GroupShard, {**SETTINGS, **(settings or {})})
        self.now_ms = 1_000.0
        self.networks: list[GroupNetwork] = []
        self.coordinator = NODE
        """Who has the group; other nodes answer that they have not."""
        for topic, partitions in topics.items():
            self.stage.topics.add(topic, partitions)

    def network(self, name: str) -> GroupNetwork:
        """A client's connections."""
        network = GroupNetwork(self, name)
        self.networks.append(network)
        return network

    def advance(self, by_ms: float) -> None:
        """Let time pass."""
        self.now_ms += by_ms
        self.stage.advance(by_ms)

    def members(self, group_id: str = "g") -> set[str]:
        """Who the coordinator takes for members."""
        group: Any = self.stage.shard.groups.get(group_id)
        if group is None:
            return set()
        return set(group.members) if hasattr(group, "members") else set(group.logged.members)

    def committed(self, topic: str, partition: int, group_id: str = "g") -> int:
        """The stored offset, -1 for none."""
        found = self.stage.shard.offsets.get(group_id, topic, partition)
        return -1 if found is None else found.offset

    def metadata(self) -> MetadataResponse:
        """The answer to a request for all topics."""
        topics = self.stage.topics
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=NODE.id, host=NODE.host, port=NODE.port)],
            controller_id=NODE.id,
            topics=[
                MetadataResponseTopic(
                    error_code=0,
                    name=name,
                    topic_id=topics.topic_id(name) or bytes(16),
                    is_internal=name.startswith("__"),
                    partitions=[
                        MetadataResponsePartition(
                            error_code=0,
                            partition_index=number,
                            leader_id=NODE.id,
                            leader_epoch=0,
                            replica_nodes=[NODE.id],
                            isr_nodes=[NODE.id],
                        )
                        for number in range(topics.partition_count(name) or 0)
                    ],
                )
                for name in topics.names()
            ],
        )

    def ask(self, key: int, request: Any, version: int, name: str) -> Asked:
        """Put a request to the coordinator."""
        stage = self.stage
        client = Client(name, "/127.0.0.1", version)
        if key == ApiKey.FIND_COORDINATOR:
            asked, node = Asked(), self.coordinator
            asked.answers.append(FindCoordinatorResponse(error_code=0, node_id=node.id, host=node.host, port=node.port))
            return asked
        if key == ApiKey.OFFSET_FETCH:
            group = request.groups[0]
            return stage.ask(lambda shard, reply: shard.fetch(group, reply, require_stable=request.require_stable))
        if key == ApiKey.OFFSET_COMMIT and version >= COMMITS_BY_ID:
            for topic in request.topics:
                found = stage.topics.name_of(topic.topic_id)
                if found is None:
                    asked = Asked()
                    asked.answers.append(_refused_commit(request, ErrorCode.UNKNOWN_TOPIC_ID))
                    return asked
                topic.name = found
        operations: dict[int, Callable[[GroupShard], Any]] = {
            ApiKey.JOIN_GROUP: lambda shard: shard.join,
            ApiKey.SYNC_GROUP: lambda shard: shard.sync,
            ApiKey.HEARTBEAT: lambda shard: shard.heartbeat,
            ApiKey.LEAVE_GROUP: lambda shard: shard.leave,
            ApiKey.OFFSET_COMMIT: lambda shard: shard.commit,
            ApiKey.CONSUMER_GROUP_HEARTBEAT: lambda shard: shard.consumer_heartbeat,
        }
        return stage.ask(lambda shard, reply: operations[key](shard)(request, client, reply))


class _Call:
    """A request on its way, on one lane."""

    def __init__(self, node: Node, key: int, version: int, callback: Callback, fate: Fate, deadline_ms: float) -> None:
        self.node = node
        self.key = key
        self.version = version
        self.callback = callback
        self.fate = fate
        self.deadline_ms = deadline_ms
        self.asked: Asked | None = None
        self.request: Any = None
        self.not_before_ms = 0.0


class GroupNetwork:
    """A NetworkPort. Answers come in the order of requests, lane by lane, when `deliver` is called."""

    def __init__(self, broker: GroupBroker, name: str) -> None:
        self.broker = broker
        self.name = name
        self.fate: Callable[[Any], Fate] = lambda request: Fate()
        self.is_cut = False
        """Nothing is delivered and nothing connects."""
        self.sent: list[Any] = []
        self._lanes: dict[NodeKey, list[_Call]] = {}
        self._closed_until_ms: dict[NodeKey, float] = {}
        self._failures: dict[NodeKey, int] = {}

    def ready(self, node: Node) -> bool:
        if self.is_cut or self.broker.now_ms < self._closed_until_ms.get(node.key, 0.0):
            return False
        return len(self._lanes.setdefault(node.key, [])) < IN_FLIGHT

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
        key = request.api_key if isinstance(request, RequestBuilder) else schema_of(type(request)).key
        assert key is not None
        known = VERSIONS[key]
        version = min(versions[1] if versions is not None else known.newest, known.newest)
        message = request.build(version) if isinstance(request, RequestBuilder) else request
        api = spec(key)
        message = decode(api.request_class, version, encode(message, version))
        call = _Call(node, key, version, callback, self.fate(message), self.broker.now_ms + (timeout_ms or 30_000))
        call.request = message
        call.not_before_ms = self.broker.now_ms + call.fate.delay_ms
        self.sent.append(message)
        self._lanes[node.key].append(call)

    def deliver(self) -> None:
        """Let the broker hear what has arrived, and call back for what was answered."""
        if self.is_cut:
            for lane in list(self._lanes):
                if any(call.deadline_ms <= self.broker.now_ms for call in self._lanes[lane]):
                    self._break(lane)
            return
        for lane in list(self._lanes):
            self._deliver(lane)

    def cut(self) -> None:
        """All connections end; nothing gets through until `is_cut` is False again."""
        self.is_cut = True
        for lane in list(self._lanes):
            self._break(lane)

    def delay_ms(self, node: Node) -> float:
        left_ms = self._closed_until_ms.get(node.key, 0.0) - self.broker.now_ms
        return left_ms if left_ms > 0 else float("inf")

    def failures(self, node: Node) -> int:
        return self._failures.get(node.key, 0)

    def in_flight(self, node: Node) -> int:
        return len(self._lanes.get(node.key, ()))

    def served(self, node: Node) -> BrokerVersions | None:
        return None

    def least_loaded(self, nodes: Sequence[Node]) -> Node | None:
        return NODE

    def disconnect(self, node: Node, reason: str = "") -> None:
        self._break(node.key)

    def wakeup(self) -> None:
        pass

    def _deliver(self, lane: NodeKey) -> None:
        calls = self._lanes[lane]
        now_ms = self.broker.now_ms
        while calls:
            call = calls[0]
            if call.asked is None:
                if call.not_before_ms > now_ms:
                    return
                if call.fate.loses_request:
                    self._break(lane)
                    return
                self._put(call)
            if call.fate.loses_answer:
                self._break(lane)
                return
            assert call.asked is not None
            if call.asked.waits and not call.fate.code:
                if call.deadline_ms <= now_ms:
                    self._break(lane)
                return
            calls.pop(0)
            self._failures[lane] = 0
            answer = _answer(call)
            if call.fate.change is not None:
                call.fate.change(answer)
            response = spec(call.key).response_class
            call.callback(decode(response, call.version, encode(answer, call.version)))

    def _put(self, call: _Call) -> None:
        if call.key != ApiKey.FIND_COORDINATOR and call.node.id != self.broker.coordinator.id:
            call.fate = Fate(code=ErrorCode.NOT_COORDINATOR)
        if call.fate.code:
            call.asked = Asked()
            return
        call.asked = self.broker.ask(call.key, call.request, call.version, self.name)
        if call.fate.doubles and not call.asked.waits:
            self.broker.ask(call.key, call.request, call.version, self.name)

    def _break(self, lane: NodeKey) -> None:
        calls, self._lanes[lane] = self._lanes.get(lane, []), []
        self._failures[lane] = self._failures.get(lane, 0) + 1
        self._closed_until_ms[lane] = self.broker.now_ms + RECONNECT_MS
        for call in calls:
            call.callback(DisconnectedError("the connection ended"))


def _answer(call: _Call) -> Any:
    asked, request = call.asked, call.request
    assert asked is not None
    code = call.fate.code or (asked.errors[0].code if asked.errors else ErrorCode.NONE)
    if not code:
        answer = asked.answer
        if isinstance(answer, OffsetFetchResponseGroup):
            return OffsetFetchResponse(topics=[], groups=[answer])
        return answer
    if call.key == ApiKey.OFFSET_COMMIT:
        return _refused_commit(request, code)
    if call.key == ApiKey.OFFSET_FETCH:
        group = OffsetFetchResponseGroup(group_id=request.groups[0].group_id, topics=[], error_code=code)
        return OffsetFetchResponse(topics=[], groups=[group])
    if call.key == ApiKey.LEAVE_GROUP:
        return LeaveGroupResponse(error_code=code, members=[])
    defaults: dict[int, dict[str, Any]] = {
        ApiKey.JOIN_GROUP: {"protocol_name": "", "leader": "", "member_id": request.__dict__.get("member_id", "")},
        ApiKey.SYNC_GROUP: {"assignment": b""},
        ApiKey.HEARTBEAT: {},
        ApiKey.FIND_COORDINATOR: {"node_id": -1, "host": "", "port": -1},
        ApiKey.CONSUMER_GROUP_HEARTBEAT: {"member_epoch": 0, "heartbeat_interval_ms": 0},
    }
    return spec(call.key).response_class(error_code=code, **defaults.get(call.key, {}))


def _refused_commit(request: Any, code: int) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
