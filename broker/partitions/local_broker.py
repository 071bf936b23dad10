"""This broker as its controller sees it: the controller's three requests, applied here."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from kavka.broker.partitions.controller_epoch import UNNUMBERED
from kavka.cluster.promise import Promise
from kavka.cluster.topic_names import validate_topic_name
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.leader_and_isr import LeaderAndIsrResponse
from kavka.protocol.messages.stop_replica import StopReplicaResponse
from kavka.protocol.messages.update_metadata import UpdateMetadataResponse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kavka.broker.metadata.metadata_cache import MetadataCache
    from kavka.broker.partitions.replica_manager import ReplicaManager
    from kavka.protocol.messages.leader_and_isr import LeaderAndIsrPartitionState, LeaderAndIsrRequest
    from kavka.protocol.messages.stop_replica import StopReplicaRequest
    from kavka.protocol.messages.update_metadata import UpdateMetadataRequest


T = TypeVar("T")


class LocalBroker:
    """Implements `cluster.ports.BrokerPort`.

    `number` is the request's correlation id, where it came over the network (`ControllerEpoch.admits`).

    Threads: the controller's, if it is this broker's, and I/O threads that got its requests from elsewhere; whose
    request comes first is decided by the locks of what they change.
    """

    __slots__ = ("_broker_epoch", "_metadata", "_read_configs", "_registered", "_replicas")

    def __init__(
        self,
        replicas: "ReplicaManager",
        metadata: "MetadataCache",
        broker_epoch: Callable[[], int] = lambda: -1,
        read_configs: Callable[[list[str]], object] | None = None,
    ) -> None:
        """`broker_epoch()` is that of this broker's registration (KIP-380).

        `read_configs(topics)` has this broker know their configurations, where its own controller does not see to that.
        """
        self._read_configs = read_configs
        self._replicas = replicas
        self._metadata = metadata
        self._broker_epoch = broker_epoch
        self._registered: Promise[None] = Promise()

    def registered(self) -> None:
        """`broker_epoch()` tells the epoch from now on."""
        self._registered.complete(None)

    def once_registered(self, answer: Callable[[], T]) -> T | Promise[T]:
        """What `answer()` gives, or while this broker does not know its epoch yet, a promise of that.

        It listens before it registers, and only then can tell what is meant for an earlier start of it.
        """
        return answer() if self._registered.done else self._registered.then(lambda _: answer())

    def leader_and_isr(self, request: "LeaderAndIsrRequest", number: int = UNNUMBERED) -> LeaderAndIsrResponse:
        """Lead or follow partitions."""
        if self._is_for_another_start(request.broker_epoch):
            return LeaderAndIsrResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
        for topic in request.topic_states:
            _check(topic.topic_name, topic.partition_states)
        self._meet(topic.topic_name for topic in request.topic_states)
        return self._replicas.leader_and_isr(request, number)

    def stop_replica(self, request: "StopReplicaRequest", number: int = UNNUMBERED) -> StopReplicaResponse:
        """Stop hosting partitions."""
        if self._is_for_another_start(request.broker_epoch):
            return StopReplicaResponse(error_code=ErrorCode.STALE_BROKER_EPOCH, partition_errors=[])
        return self._replicas.stop_replica(request, number)

    def update_metadata(self, request: "UpdateMetadataRequest", number: int = UNNUMBERED) -> UpdateMetadataResponse:
        """Learn what the cluster looks like now."""
        if self._is_for_another_start(request.broker_epoch):
            return UpdateMetadataResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
        self._meet(topic.topic_name for topic in request.topic_states)
        try:
            self._metadata.apply(request, number)
        except BrokerError as failure:
            return UpdateMetadataResponse(error_code=failure.code)
        return UpdateMetadataResponse(error_code=ErrorCode.NONE)

    def _meet(self, topics: "Iterable[str]") -> None:
        """Read the configurations of topics that are new here: who creates one, Kafka too, tells nobody of them."""
        if self._read_configs is not None:
            known = self._metadata.current.topics
            if new := [topic for topic in topics if topic not in known]:
                self._read_configs(new)

    def _is_for_another_start(self, epoch: int) -> bool:
        """Whether a request was meant for an earlier start of this broker; -1 says that its sender knows no epochs.

        A later epoch than ours is none of another start: the controller can hear of a registration before we do.
        """
        return epoch != -1 and epoch < self._broker_epoch()


def _check(topic: str, partitions: "Iterable[LeaderAndIsrPartitionState]") -> None:
    """Refuse what no controller sends, before folders are named after it, or files tell of it.

    Raises BrokerError INVALID_REQUEST.
    """
    try:
        validate_topic_name(topic)
    except BrokerError as failure:
        raise BrokerError(ErrorCode.INVALID_REQUEST, failure.message) from failure
    for state in partitions:
        if state.partition_index < 0 or state.leader_epoch < 0 or state.partition_epoch < 0:
            raise BrokerError(
                ErrorCode.INVALID_REQUEST,
                f"topic {topic} has no partition {state.partition_index} with leader epoch {state.leader_epoch}"
                f" and partition epoch {state.partition_epoch}",
            )
