"""Metadata v0-13.

Behaviour
- Answered from one metadata snapshot, with the endpoints of the listener that the client came through; where nothing is
  advertised, this broker's is the address that the client reached.
- A topic asked for by name that does not exist is created if both `auto.create.topics.enable` and the request allow it.
  The answer waits up to CREATION_WAIT_MS for that, and then says LEADER_NOT_AVAILABLE, or why the topic can't be
  created; only the next answer has its partitions. Clients come again for it, and some count on being told to (Kafka
  4.x says UNKNOWN_TOPIC_OR_PARTITION here, of which some clients bear a few only).
- A broker that has not heard of the cluster yet answers when it has.
- All topics: those that the client may describe. An answer over many topics is built in short slices and kept, encoded,
  for as long as the snapshot stands.
- Not done: an unclean client's rebootstrap (REBOOTSTRAP_REQUIRED of v13 is never said).

Versions
- v0: an empty list means all topics, and dead replicas are left out; v1: null means all, empty means none.
- v4: the request may forbid auto creation. v6: LISTENER_NOT_FOUND for a leader without the client's listener.
- v8: authorized operations (KIP-430); those of the cluster only up to v10. v10: topic ids in the answer.
- v12: topics by id. v13: an error code for the whole answer.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kavka.broker.metadata.first_metadata import once_known
from kavka.broker.metadata.metadata_cache import ZERO_TOPIC_ID, MetadataSnapshot, TopicMetadata
from kavka.broker.metadata.topic_creation import auto_create, creatable
from kavka.broker.metadata.topic_views import NO_OPERATIONS, ClusterView, name_error, reached_endpoint
from kavka.broker.requests.handling import Context, handles
from kavka.broker.requests.sliced_encoding import encode_in_slices
from kavka.broker.requests.slices import in_slices
from kavka.broker.security.acl import CLUSTER, Operation, ResourceType, topic
from kavka.cluster.topic_names import is_internal
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

if TYPE_CHECKING:
    from kavka.broker.services import Services
    from kavka.cluster.controller.requests import TopicResult

CREATION_WAIT_MS: Final = 2_000
FIRST_FLEXIBLE: Final = 9
MAX_STORED_ANSWERS: Final = 16
"""Encoded answers kept with a snapshot: one for each version, listener and address that clients use."""


def _refused(request: MetadataRequest, code: ErrorCode, _message: str | None) -> MetadataResponse:
    """An error of the whole request, said of each topic asked for; v13 has a place of its own too."""
    # Before v12 a topic without a name can be asked for, but not answered.
    topics = [_failed(code, each.name or "", each.topic_id) for each in request.topics or ()]
    return MetadataResponse(brokers=[], topics=topics, error_code=code)


@handles(MetadataRequest, versions="0-13", error_answer=_refused)
def metadata(request: MetadataRequest, context: Context, services: "Services") -> Any:
    # A response, a promise of one, or bytes that are sent as they are.
    if not services.metadata.current.brokers:
        return once_known(services, lambda: metadata(request, context, services))
    asked = request.topics
    if asked is None or (not asked and context.api_version == 0):
        return _all_topics(request, context, services)
    if context.api_version < 12 and any(each.name is None or each.topic_id != ZERO_TOPIC_ID for each in asked):
        raise BrokerError(ErrorCode.INVALID_REQUEST, "topics can be asked for by id from version 12 on only")
    rights = _rights_to(asked, request, context, services)
    missing = _to_create(request, asked, rights, services)
    if not missing:
        return _Answer(request, context, services, rights).of_topics(asked, {})

    def not_created(error: BaseException | None = None) -> dict[str, ErrorCode]:
        if error is not None and not isinstance(error, BrokerError):
            raise error
        return dict.fromkeys(missing, ErrorCode.LEADER_NOT_AVAILABLE)

    if context.charge is not None:
        context.charge.created(len(missing) * services.config.current.num_partitions)
    creation = auto_create(missing, services).then(_errors_of, not_created)
    return services.purgatory.within(CREATION_WAIT_MS, creation, not_created).then(
        lambda errors: _Answer(request, context, services, rights).of_topics(asked, errors)
    )


def _all_topics(request: MetadataRequest, context: Context, services: "Services") -> bytes:
    """The encoded answer about all topics, from the snapshot's store if nobody's rights make it differ."""
    answer = _Answer(request, context, services)
    if context.session.authorizer is not None:
        return answer.of_all_topics()
    key = (
        context.api_version,
        context.listener_name,
        reached_endpoint(context),
        request.include_cluster_authorized_operations,
        request.include_topic_authorized_operations,
    )
    store = answer.snapshot.encoded
    encoded = store.get(key)
    if encoded is None:
        encoded = answer.of_all_topics()
        if len(store) >= MAX_STORED_ANSWERS:
            store.clear()
        store[key] = encoded
    return encoded


class _Rights(NamedTuple):
    """What the client must not do with topics that it names."""

    hidden: Collection[str] = frozenset()
    """It is not told whether they exist."""
    not_creatable: Collection[str] = frozenset()
    """They don't exist, and would be created."""


ALL_RIGHTS: Final = _Rights()


def _rights_to(
    asked: list[MetadataRequestTopic], request: MetadataRequest, context: Context, services: "Services"
) -> _Rights:
    if context.session.authorizer is None:
        return ALL_RIGHTS
    named = _named(asked)
    hidden = {name for name in in_slices(named) if not context.allows(Operation.DESCRIBE, topic(name))}
    if not _creates(request, services):
        return _Rights(hidden)
    absent = named - hidden - services.metadata.current.topics.keys()
    return _Rights(hidden, absent.difference(creatable(absent, context)))


def _to_create(
    request: MetadataRequest, asked: list[MetadataRequestTopic], rights: _Rights, services: "Services"
) -> list[str]:
    """The topics that are asked for by name, do not exist, and are to be created."""
    if not _creates(request, services):
        return []
    absent = _named(asked) - services.metadata.current.topics.keys()
    return sorted(name for name in absent.difference(*rights) if name_error(name) is ErrorCode.NONE)


def _named(asked: list[MetadataRequestTopic]) -> set[str]:
    return {each.name or "" for each in asked if each.topic_id == ZERO_TOPIC_ID}


def _creates(request: MetadataRequest, services: "Services") -> bool:
    return services.config.current.auto_create_topics_enable and request.allow_auto_topic_creation


def _errors_of(results: "list[TopicResult]") -> dict[str, ErrorCode]:
    """What to say of topics that were to be created."""
    return {
        result.name: ErrorCode.LEADER_NOT_AVAILABLE
        if result.error is None or result.error.code is ErrorCode.TOPIC_ALREADY_EXISTS
        else result.error.code
        for result in results
    }


class _Answer:
    """Builds the answer to one request from the snapshot that stands when it is made."""

    __slots__ = ("_context", "_request", "_rights", "_services", "_view", "snapshot")

    def __init__(
        self, request: MetadataRequest, context: Context, services: "Services", rights: _Rights = ALL_RIGHTS
    ) -> None:
        self._rights = rights
        self._request = request
        self._context = context
        self._services = services
        self.snapshot: MetadataSnapshot = services.metadata.current
        self._view = ClusterView(
            self.snapshot,
            context.listener_name,
            reached_endpoint(context),
            knows_listener_error=context.api_version >= 6,
            hides_dead_replicas=context.api_version == 0,
        )

    def of_all_topics(self) -> bytes:
        """All topics that the client may describe, encoded."""
        may_describe = self._context.allowed_names(Operation.DESCRIBE, ResourceType.TOPIC)
        visible = [each for each in in_slices(self.snapshot.topics.values()) if may_describe(each.name)]
        version = self._context.api_version
        return encode_in_slices(
            self._response([]), "topics", visible, self._topic, version, flexible=version >= FIRST_FLEXIBLE
        )

    def of_topics(self, asked: list[MetadataRequestTopic], creation: dict[str, ErrorCode]) -> MetadataResponse:
        """The topics asked for, each once; `creation` says what became of those that were to be created."""
        unique = {
            (each.name, each.topic_id) if each.topic_id == ZERO_TOPIC_ID else each.topic_id: each for each in asked
        }
        return self._response(
            [
                self._by_name(each.name or "", creation)
                if each.topic_id == ZERO_TOPIC_ID
                else self._by_id(each.topic_id)
                for each in in_slices(unique.values())
            ]
        )

    def _by_id(self, topic_id: bytes) -> MetadataResponseTopic:
        known = self.snapshot.topic_by_id(topic_id)
        if known is None:
            return _failed(ErrorCode.UNKNOWN_TOPIC_ID, None, topic_id)
        if not self._context.allows(Operation.DESCRIBE, topic(known.name)):
            return _failed(ErrorCode.TOPIC_AUTHORIZATION_FAILED, None, topic_id)
        return self._topic(known)

    def _by_name(self, name: str, creation: dict[str, ErrorCode]) -> MetadataResponseTopic:
        if name in self._rights.hidden:
            # Whether it is an internal one would be looked up.
            refused = _failed(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name)
            refused.is_internal = False
            return refused
        if name in self._rights.not_creatable:
            return _failed(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name)
        known = self.snapshot.topic(name) if name not in creation else None
        if known is not None:
            return self._topic(known)
        error = creation.get(name) or name_error(name)
        failed = _failed(error or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name)
        if self._request.include_topic_authorized_operations:
            failed.topic_authorized_operations = self._context.authorized_operations(topic(name))
        return failed

    def _topic(self, known: TopicMetadata) -> MetadataResponseTopic:
        partitions = []
        for each in known:
            view = self._view.partition(each)
            partitions.append(
                MetadataResponsePartition(
                    error_code=view.error,
                    partition_index=each.partition_index,
                    leader_id=view.leader_id,
                    leader_epoch=each.leader_epoch,
                    replica_nodes=view.replicas,
                    isr_nodes=view.isr,
                    offline_replicas=list(each.offline),
                )
            )
        operations = NO_OPERATIONS
        if self._request.include_topic_authorized_operations:
            operations = self._context.authorized_operations(topic(known.name))
        return MetadataResponseTopic(
            error_code=ErrorCode.NONE,
            name=known.name,
            topic_id=known.topic_id,
            is_internal=is_internal(known.name),
            partitions=partitions,
            topic_authorized_operations=operations,
        )

    def _response(self, topics: list[MetadataResponseTopic]) -> MetadataResponse:
        operations = NO_OPERATIONS
        if self._request.include_cluster_authorized_operations:
            operations = 0
            if self._context.allows(Operation.DESCRIBE, CLUSTER):
                operations = self._context.authorized_operations(CLUSTER)
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(node_id=each.broker_id, host=each.host, port=each.port, rack=each.rack)
                for each in self._view.brokers
            ],
            cluster_id=self._services.cluster_id,
            controller_id=self._view.controller_id,
            topics=topics,
            cluster_authorized_operations=operations,
        )


def _failed(error: ErrorCode, name: str | None, topic_id: bytes = ZERO_TOPIC_ID) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=error,
        name=name,
        topic_id=topic_id,
        is_internal=name is not None and is_internal(name),
        partitions=[],
    )
