"""What the controller needs of brokers, and brokers of the controller's neighbours: the seams of this room.

The messages are Kafka's own (LeaderAndIsr v7, StopReplica v4, UpdateMetadata v8), so that the same controller code
talks to the broker of its own process by a plain call and to any other one over the network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from kavka.protocol.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from kavka.protocol.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse

if TYPE_CHECKING:
    from kavka.cluster.controller.requests import NewTopic, TopicResult
    from kavka.cluster.promise import Promise
    from kavka.cluster.znodes.broker import BrokerInfo

ControlRequest = LeaderAndIsrRequest | StopReplicaRequest | UpdateMetadataRequest
ControlResponse = LeaderAndIsrResponse | StopReplicaResponse | UpdateMetadataResponse
OnResponse = Callable[[ControlResponse | BrokerError], None]


class BrokerPort(Protocol):
    """A broker as its controller sees it. Told one call at a time, in order: by the controller's thread, where there is
    but one broker, else by threads that may wait for its disks.

    A request whose controller epoch is below the last one seen is answered with STALE_CONTROLLER_EPOCH, one for another
    incarnation of the broker with STALE_BROKER_EPOCH (KIP-380). Failures of single partitions are error codes in the
    response (KAFKA_STORAGE_ERROR takes the replica offline until its broker announces a LogDirEvent, or restarts); a
    raised BrokerError stands for the whole request.
    A call must not wait for anything that the controller does.
    """

    def leader_and_isr(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse: ...

    def stop_replica(self, request: StopReplicaRequest) -> StopReplicaResponse: ...

    def update_metadata(self, request: UpdateMetadataRequest) -> UpdateMetadataResponse: ...


class BrokerChannels(Protocol):
    """The controller's ways to all live brokers."""

    def update_brokers(self, brokers: Iterable[BrokerInfo]) -> None:
        """These are the live brokers now: open ways to new ones, close those to brokers that are gone.

        None at all: this broker is not the controller any more, and what was not sent is void.
        """

    def send(self, broker_id: int, request: ControlRequest, on_response: OnResponse) -> None:
        """Deliver in order per broker; `on_response` is called once, on any thread, with the answer or the failure.

        Never blocks on the network. A broker that is not known answers BROKER_NOT_AVAILABLE at once.
        """

    def done_so_far(self) -> Promise[None] | None:
        """Completed when this process' broker has done what it was told so far, or that is void; None where it has."""

    def close(self) -> None:
        """Drop what was not sent; `on_response` is not called any more."""


class ElectedController(Protocol):
    """The controller, on whichever broker it is, for what every broker may ask of it on its own behalf."""

    def create_topics(self, topics: Sequence[NewTopic]) -> Promise[list[TopicResult]]:
        """One result a topic, in order; those of another broker's controller have no counts."""


class ControllerSettings(Protocol):
    """The settings that the controller reads; the broker's configuration has them."""

    @property
    def delete_topic_enable(self) -> bool: ...

    @property
    def num_partitions(self) -> int: ...

    @property
    def default_replication_factor(self) -> int: ...

    @property
    def unclean_leader_election_enable(self) -> bool: ...

    @property
    def auto_leader_rebalance_enable(self) -> bool: ...

    @property
    def leader_imbalance_per_broker_percentage(self) -> int: ...

    @property
    def inter_broker_protocol_version(self) -> str: ...

    @property
    def inter_broker_listener_name(self) -> str | None: ...

    @property
    def awaits_other_releases(self) -> bool: ...


class ConfigHolder(Protocol):
    """The broker's settings as they are now: dynamic ones change while it runs."""

    @property
    def current(self) -> ControllerSettings: ...


class LocalChannels:
    """The channels of a cluster that has one broker: a send is a call.

    Threads: used by the controller's thread only; `on_response` runs before `send` returns.
    """

    __slots__ = ("_broker_id", "_port")

    def __init__(self, broker_id: int, port: BrokerPort) -> None:
        self._broker_id = broker_id
        self._port = port

    def update_brokers(self, brokers: Iterable[BrokerInfo]) -> None:
        """Nothing to open for a broker in this process."""

    def send(self, broker_id: int, request: ControlRequest, on_response: OnResponse) -> None:
        if broker_id != self._broker_id:
            on_response(BrokerError(ErrorCode.BROKER_NOT_AVAILABLE, f"broker {broker_id} is not in this process"))
            return
        try:
            response = call(self._port, request)
        except BrokerError as error:
            on_response(error)
        else:
            on_response(response)

    def done_so_far(self) -> None:
        """All is done."""

    def close(self) -> None:
        """Nothing to close."""


def call(port: BrokerPort, request: ControlRequest) -> ControlResponse:
    """Hand `request` to the method of `port` that serves its API."""
    if isinstance(request, LeaderAndIsrRequest):
        return port.leader_and_isr(request)
    if isinstance(request, StopReplicaRequest):
        return port.stop_replica(request)
    return port.update_metadata(request)
