"""Handlers called as the dispatcher calls them, with a broker's services made of real parts and small fakes.

Requests and responses go through the codec in the version asked for, so that a handler's answer is seen as a client
sees it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from kavka.broker.metadata.metadata_cache import MetadataCache
from kavka.broker.partitions.producer_ids import ProducerIds
from kavka.broker.partitions.role import PartitionRole
from kavka.broker.requests.handling import Context, Handler, registered_handlers
from kavka.broker.requests.session import Session
from kavka.broker.security.acl import Operation, Resource, ResourceType
from kavka.broker.services import Services
from kavka.broker.settings.dynamic_config import DynamicConfig
from kavka.broker.waiting.purgatory import Purgatory
from kavka.broker.waiting.timer import Timer
from kavka.cluster.controller.requests import ConfigEntity, NewPartitions, NewTopic, ProducerIdBlock, TopicResult
from kavka.cluster.features import GROUP_VERSION, TRANSACTION_VERSION, FinalizedFeatures
from kavka.cluster.promise import Promise
from kavka.cluster.znodes.config import text_of_node
from kavka.config.broker_config import BrokerConfig
from kavka.protocol import api
from kavka.protocol.codec import decode, encode
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from kavka.protocol.schema import schema_of

if TYPE_CHECKING:
    from kavka.storage.log_answers import FoundOffset

BROKER_ID = 1
LISTENER = "PLAINTEXT"


def topic_id_of(name: str) -> bytes:
    return name.encode().ljust(16, b"\1")[:16]


def update_metadata(
    topics: Mapping[str, Sequence[int]],
    *,
    epoch: int = 1,
    brokers: Mapping[int, tuple[str, int]] | None = None,
    replicas: Sequence[int] = (BROKER_ID,),
    kind: int = 0,
) -> UpdateMetadataRequest:
    """An UpdateMetadata of topics: the leader of each of their partitions (-2: deleted)."""
    addresses = brokers if brokers is not None else {BROKER_ID: ("broker.example", 9092)}
    return UpdateMetadataRequest(
        controller_id=BROKER_ID,
        controller_epoch=epoch,
        type=kind,
        topic_states=[
            UpdateMetadataTopicState(
                topic_name=name,
                topic_id=topic_id_of(name),
                partition_states=[
                    UpdateMetadataPartitionState(
                        partition_index=index,
                        controller_epoch=epoch,
                        leader=leader,
                        leader_epoch=3,
                        isr=list(replicas),
                        zk_version=0,
                        replicas=list(replicas),
                    )
                    for index, leader in enumerate(leaders)
                ],
            )
            for name, leaders in topics.items()
        ],
        live_brokers=[
            UpdateMetadataBroker(
                id=broker_id,
                endpoints=[UpdateMetadataEndpoint(host=host, port=port, listener=LISTENER, security_protocol=0)],
                rack=None,
            )
            for broker_id, (host, port) in addresses.items()
        ],
    )


class FakeConnection:
    """What a handler sees of a connection."""

    def __init__(self, authorizer: Denying | None = None, local: tuple[str, int] = ("10.1.2.3", 9999)) -> None:
        self.listener_name = LISTENER
        self.peer_host = "10.0.0.9"
        self.local_host, self.local_port = local
        self.session = Session({}, authorizer)


class Denying:
    """An authorizer that forbids some (operation, name) and allows the rest; a name of "*" is any."""

    audits_everything = False
    principal = "User:ANONYMOUS"

    def __init__(self, *denied: tuple[Operation, str]) -> None:
        self._denied = denied
        self.refused: list[tuple[Operation, Resource]] = []
        """What was asked for and denied, but for what was only probed."""

    def rights(self, principal: str, host: str) -> Denying:
        return self

    def allows(self, operation: Operation, resource: Resource, api_key: int, *, quiet: bool = False) -> bool:
        allowed = self.unaudited(operation, resource.type)(resource.name)
        if not allowed and not quiet:
            self.refused.append((operation, resource))
        return allowed

    def allows_on_any(
        self, operation: Operation, resource_type: ResourceType, api_key: int, *, quiet: bool = False
    ) -> bool:
        return self.unaudited(operation, resource_type)("*")

    def unaudited(self, operation: Operation, resource_type: ResourceType) -> Callable[[str], bool]:
        return lambda name: not any(each in ((operation, name), (operation, "*")) for each in self._denied)


class FakeLog:
    """A partition log as ListOffsets, DeleteRecords and the like see it."""

    def __init__(self) -> None:
        self.topic, self.partition, self.folder = "", 0, "visits-0"
        self.log_start_offset = 5
        self.last_stable_offset = 80
        self.high_watermark = 90
        self.log_end_offset = 100
        self.flushes_by_count = False
        self.deleting = False
        self.size_bytes = 1234
        self.segment_count = 2
        self.config = SimpleNamespace(min_insync_replicas=1)
        self.by_time: FoundOffset | None = None
        self.largest: FoundOffset | None = None
        self.segments: dict[int, int] = {}
        """When each was last written, by where it begins."""

    def offset_for_time(self, timestamp_ms: int) -> FoundOffset | None:
        return self.by_time if self.by_time and self.by_time.timestamp_ms >= timestamp_ms else None

    def max_timestamp_offset(self) -> FoundOffset | None:
        return self.largest

    def offsets_before(self, timestamp_ms: int | None) -> list[int]:
        if timestamp_ms is None:
            return [self.log_end_offset, *reversed(self.segments)]
        return [base for base, written_ms in reversed(self.segments.items()) if written_ms <= timestamp_ms]

    def epoch_for_offset(self, offset: int) -> int:
        return 2

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        return (epoch, 42) if epoch <= 3 else (-1, -1)

    def delete_records_before(self, offset: int) -> int:
        target = self.high_watermark if offset == -1 else offset
        if not 0 <= target <= self.high_watermark:
            raise BrokerError(ErrorCode.OFFSET_OUT_OF_RANGE)
        self.log_start_offset = max(self.log_start_offset, target)
        return self.log_start_offset


class FakePartition:
    """A hosted partition."""

    is_under_min_isr = False

    def __init__(self, topic: str, index: int, *, is_leader: bool = True) -> None:
        self.log = FakeLog()
        self.log.topic, self.log.partition = topic, index
        self.topic, self.index = topic, index
        self.role = PartitionRole(
            is_leader=is_leader,
            leader_id=BROKER_ID,
            leader_epoch=3,
            replicas=(BROKER_ID,),
            isr=(BROKER_ID,),
            maximal_isr=(BROKER_ID,),
            is_sole=is_leader,
        )

    def leader_log(self) -> FakeLog:
        if not self.role.is_leader:
            raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return self.log

    def check_leader_epoch(self, claimed: int) -> None:
        if claimed not in (-1, self.role.leader_epoch):
            older = claimed < self.role.leader_epoch
            raise BrokerError(ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH)


class FakeReplicas:
    """Hosted partitions by (topic, index)."""

    leader_count = offline_count = under_replicated_count = 0

    def __init__(self) -> None:
        self.partitions: dict[tuple[str, int], FakePartition] = {}

    def partition(self, topic: str, index: int) -> FakePartition:
        if (topic, index) not in self.partitions:
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return self.partitions[topic, index]


class FakeController:
    """Answers at once, or with `holding` never; `refuse` names topics with the error that they get."""

    def __init__(self, metadata: MetadataCache, config: DynamicConfig) -> None:
        self.is_active = True
        self.holding = False
        self.refuse: dict[str, BrokerError] = {}
        self.stored: dict[str, dict[str, str]] = {}
        self.created: list[NewTopic] = []
        self.grown: list[NewPartitions] = []
        self._metadata = metadata
        self._config = config

    def create_topics(
        self, topics: Sequence[NewTopic], validate_only: bool = False, _count: object = None
    ) -> Promise[list[TopicResult]]:
        results = []
        for topic in topics:
            count = len(topic.assignments) or (1 if topic.partitions == -1 else topic.partitions)
            error = self.refuse.get(topic.name)
            if error is None and not validate_only and not self.holding:
                self.created.append(topic)
                self._metadata.apply(update_metadata({topic.name: [BROKER_ID] * count}))
            configs = {name: value for name, value in topic.configs.items() if value is not None}
            results.append(TopicResult(topic.name, topic_id_of(topic.name), error, count, 1, configs))
        return self._answer(results)

    def delete_topics(self, names: Sequence[str], _count: object = None) -> Promise[dict[str, BrokerError | None]]:
        for name in names:
            known = self._metadata.current.topic(name)
            if known is not None and name not in self.refuse:
                self._metadata.apply(update_metadata({name: [-2] * len(known)}))
        return self._answer({name: self.refuse.get(name) for name in names})

    def create_partitions(
        self, growths: Sequence[NewPartitions], validate_only: bool = False, _count: object = None
    ) -> Promise[dict[str, BrokerError | None]]:
        if not validate_only:
            self.grown += growths
        return self._answer({growth.name: self.refuse.get(growth.name) for growth in growths})

    def alter_configs(
        self, entity: ConfigEntity, update: Callable[[dict[str, str]], dict[str, str]], validate_only: bool = False
    ) -> Promise[None]:
        promise: Promise[None] = Promise()
        try:
            new = update(dict(self.stored.get(entity.path, {})))
        except BrokerError as error:
            promise.fail(error)
            return promise
        if not validate_only:
            self.stored[entity.path] = new
            if entity.kind == "topics":
                self._config.topic_changed(entity.name, new)
            elif entity.kind == "groups":
                self._config.group_changed(text_of_node(entity.name), new)
            else:
                self._config.broker_changed(None if entity.name == "<default>" else int(entity.name), new)
        promise.complete(None)
        return promise

    def allocate_producer_id_block(self, broker_id: int) -> Promise[ProducerIdBlock]:
        return self._answer(ProducerIdBlock(1000, 1999))

    def _answer(self, value: Any) -> Promise[Any]:
        promise: Promise[Any] = Promise()
        if not self.holding:
            promise.complete(value)
        return promise


class Broker:
    """A broker's services for handlers, and `ask` to call one."""

    def __init__(
        self, settings: Mapping[str, str] | None = None, *, unadvertised: Sequence[str] = (), **topics: Sequence[int]
    ) -> None:
        self.metadata = MetadataCache(BROKER_ID, unadvertised)
        self.config = DynamicConfig(BrokerConfig(dict(settings or {})), BROKER_ID)
        self.controller = FakeController(self.metadata, self.config)
        self.replicas = FakeReplicas()
        self.purgatory = Purgatory(Timer(lambda failure: None))
        self.metadata.apply(update_metadata({name.replace("__", "."): leaders for name, leaders in topics.items()}))
        services: Any = Services()
        services.features = FinalizedFeatures({GROUP_VERSION: 1, TRANSACTION_VERSION: 2}, 0)
        services.broker_id = BROKER_ID
        services.cluster_id = "cluster-of-the-test"
        services.config = self.config
        services.controller = services.elected_controller = self.controller
        services.metadata = self.metadata
        services.purgatory = self.purgatory
        services.replicas = self.replicas
        services.producer_ids = ProducerIds(lambda: self.controller.allocate_producer_id_block(BROKER_ID))
        self.services = services

    def host(self, topic: str, index: int = 0, *, is_leader: bool = True) -> FakeLog:
        """Host a partition, and give its log."""
        partition = self.replicas.partitions[topic, index] = FakePartition(topic, index, is_leader=is_leader)
        return partition.log

    def ask(
        self,
        request: Any,
        version: int,
        *,
        authorizer: Denying | None = None,
        local: tuple[str, int] = ("10.1.2.3", 9999),
    ) -> Any:
        """The answer to `request`, as a client reads it. A promise that waits is expired."""
        key = schema_of(type(request)).key
        assert key is not None
        handler = registered_handlers()[key]
        assert handler.min_version <= version <= handler.max_version
        connection: Any = FakeConnection(authorizer, local)
        context = Context(connection, memoryview(b""), 0, 0)
        context.api_key = key
        context.api_version = version
        context.client_id = "a-client"
        received = decode(type(request), version, encode(request, version))
        try:
            response = self._settled(handler.function(received, context, self.services))
        except BrokerError as error:
            response = self._error_response(handler, received, error)
        if isinstance(response, bytes):
            return decode(api.spec(key).response_class, version, response)
        return decode(type(response), version, encode(response, version))

    def _settled(self, result: Any) -> Any:
        if not isinstance(result, Promise):
            return result
        outcome: list[Any] = []
        result.watch(lambda response, error: outcome.append(error or response))
        if not outcome:
            self.purgatory.expire_all()
        assert outcome, "the promise waits for ever"
        if isinstance(outcome[0], BaseException):
            raise outcome[0]
        return outcome[0]

    @staticmethod
    def _error_response(handler: Handler, request: Any, error: BrokerError) -> Any:
        if handler.error_answer is not None:
            return handler.error_answer(request, error.code, error.message)
        response: Any = api.spec(handler.api_key).response_class()
        response.error_code = error.code
        return response
