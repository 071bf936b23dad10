"""This broker as its controller sees it: the controller's three requests, applied here."""

import copy
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from kavka.broker.metadata.metadata_cache import ZERO_TOPIC_ID
from kavka.broker.partitions.controller_epoch import UNNUMBERED
from kavka.cluster.promise import Promise
from kavka.cluster.topic_names import is_topic_name
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)
from kavka.protocol.messages.stop_replica import StopReplicaResponse
from kavka.protocol.messages.update_metadata import UpdateMetadataResponse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kavka.broker.metadata.metadata_cache import MetadataCache, TopicMetadata
    from kavka.broker.partitions.replica_manager import ReplicaManager
    from kavka.protocol.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrTopicState
    from kavka.protocol.messages.stop_replica import StopReplicaRequest
    from kavka.protocol.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataTopicState


T = TypeVar("T")

log = logging.getLogger(__name__)


class LocalBroker:
    """Implements `cluster.ports.BrokerPort`.

    `number` is the request's correlation id, where it came over the network (`ControllerEpoch.admits`).

    Threads: `kavka-own-orders`, if the controller is this broker's (its own, where there is but one broker), and I/O
    threads that got its requests from elsewhere; whose request comes first is decided by the locks of what they change.
    """

    __slots__ = ("_broker_epoch", "_metadata", "_on_made_anew", "_read_configs", "_registered", "_replicas")

    def __init__(
        self,
        replicas: "ReplicaManager",
        metadata: "MetadataCache",
        broker_epoch: Callable[[], int] = lambda: -1,
        read_configs: Callable[[list[str]], object] | None = None,
        on_made_anew: Callable[[str], object] = lambda topic: None,
    ) -> None:
        """`broker_epoch()` is that of this broker's registration (KIP-380), the last one where none stands.

        `read_configs(topics)` has this broker know their configurations, where its own controller does not see to that.
        `on_made_anew(topic)` is told before, if what it knows of one is of another topic of that name.
        """
        self._on_made_anew = on_made_anew
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
            _check(topic)
        odd = [each for each in request.topic_states if not is_topic_name(each.topic_name)]
        if not odd:
            self._meet(request.topic_states)
            return self._replicas.leader_and_isr(request, number)
        if len(odd) == len(request.topic_states):
            raise BrokerError(ErrorCode.INVALID_REQUEST, f"no topic has a name like {odd[0].topic_name[:300]!r}")
        # Kafka's controllers hand on whatever somebody wrote into ZooKeeper, beside the others, which are to be led all
        # the same: only no folders are named after these.
        log.error("refused are topics with names that are none: %.300r", [each.topic_name for each in odd])
        possible = copy.copy(request)
        possible.topic_states = [each for each in request.topic_states if is_topic_name(each.topic_name)]
        self._meet(possible.topic_states)
        response = self._replicas.leader_and_isr(possible, number)
        if response.error_code == ErrorCode.NONE:
            response.topics = [*response.topics, *map(_refusal, odd)]
        return response

    def stop_replica(self, request: "StopReplicaRequest", number: int = UNNUMBERED) -> StopReplicaResponse:
        """Stop hosting partitions."""
        if self._is_for_another_start(request.broker_epoch):
            return StopReplicaResponse(error_code=ErrorCode.STALE_BROKER_EPOCH, partition_errors=[])
        return self._replicas.stop_replica(request, number)

    def update_metadata(self, request: "UpdateMetadataRequest", number: int = UNNUMBERED) -> UpdateMetadataResponse:
        """Learn what the cluster looks like now."""
        if self._is_for_another_start(request.broker_epoch):
            return UpdateMetadataResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
        self._meet(request.topic_states)
        try:
            self._metadata.apply(request, number)
        except BrokerError as failure:
            return UpdateMetadataResponse(error_code=failure.code)
        return UpdateMetadataResponse(error_code=ErrorCode.NONE)

    def _meet(self, topics: "Iterable[LeaderAndIsrTopicState | UpdateMetadataTopicState]") -> None:
        """Read the configurations of topics that are new here: who creates one, Kafka too, tells nobody of them.

        So is one that was made anew while this broker was out of touch, and nobody has told it of the first one's end.
        """
        if self._read_configs is not None:
            known = self._metadata.current.topics
            if new := [each.topic_name for each in topics if _is_new(known.get(each.topic_name), each.topic_id)]:
                for topic in known.keys() & new:
                    self._on_made_anew(topic)
                self._read_configs(new)

    def _is_for_another_start(self, epoch: int) -> bool:
        """Whether a request was meant for an earlier start of this broker; -1 says that its sender knows no epochs.

        A later epoch than ours is none of another start: the controller can hear of a registration before we do.
        """
        return epoch != -1 and epoch < self._broker_epoch()


def _is_new(known: "TopicMetadata | None", topic_id: bytes) -> bool:
    """Whether a topic of that id is another than is known by its name; where one has no id nobody can tell."""
    if known is None:
        return True
    new_id = bytes(topic_id)
    return ZERO_TOPIC_ID not in (known.topic_id, new_id) and known.topic_id != new_id


def _check(topic: "LeaderAndIsrTopicState") -> None:
    """Refuse what no controller sends, before files tell of it. Raises BrokerError INVALID_REQUEST."""
    for state in topic.partition_states:
        if state.partition_index < 0 or state.leader_epoch < 0 or state.partition_epoch < 0:
            raise BrokerError(
                ErrorCode.INVALID_REQUEST,
                f"topic {topic.topic_name[:300]!r} has no partition {state.partition_index} with leader epoch"
                f" {state.leader_epoch} and partition epoch {state.partition_epoch}",
            )


def _refusal(topic: "LeaderAndIsrTopicState") -> LeaderAndIsrTopicError:
    return LeaderAndIsrTopicError(
        topic_id=bytes(topic.topic_id),
        partition_errors=[
            LeaderAndIsrPartitionError(partition_index=each.partition_index, error_code=ErrorCode.INVALID_REQUEST)
            for each in topic.partition_states
        ],
    )
