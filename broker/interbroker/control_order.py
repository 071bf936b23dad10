"""One order of the controller to a broker, and how those that wait become fewer.

States are absolute: of a partition only the newest counts, and a broker that was slow for a while need not be told the
past. So metadata that wait are one request with those that follow them, and a queue that has grown too long is made
anew out of what still counts (`condensed`).
"""

import copy
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from kavka.cluster.ports import ControlRequest, ControlResponse, OnResponse
from kavka.protocol.errors import BrokerError
from kavka.protocol.messages.leader_and_isr import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from kavka.protocol.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from kavka.protocol.messages.update_metadata import (
    INCREMENTAL,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)

TYPED_METADATA_SINCE: Final = 8
"""Older versions of UpdateMetadata have no `type`; their brokers keep what they know besides."""

TopicKey = tuple[str, bytes]
"""Name and id: a topic that was made anew under its name is another one, and both are told of."""
MetadataStates = dict[TopicKey, dict[int, UpdateMetadataPartitionState]]


class Order:
    """One request, and who waits for its answer: several, when it was merged of several."""

    __slots__ = ("_on_responses", "_request", "_states")

    def __init__(self, request: ControlRequest, on_responses: Iterable[OnResponse]) -> None:
        self._request = request
        self._on_responses = list(on_responses)
        self._states: MetadataStates | None = None

    @property
    def request(self) -> ControlRequest:
        """What to send; merged once it is asked for."""
        if self._states is not None:
            assert isinstance(self._request, UpdateMetadataRequest)
            self._request = _metadata(self._request, self._states)
            self._states = None
        return self._request

    @property
    def waiting(self) -> int:
        """How many wait for the answer."""
        return len(self._on_responses)

    def merge(self, request: ControlRequest, on_response: OnResponse) -> bool:
        """Take a later request in, if both are metadata of one controller for one broker; False if they are not."""
        own = self._request
        if not isinstance(own, UpdateMetadataRequest) or not isinstance(request, UpdateMetadataRequest):
            return False
        if sender_of(own) != sender_of(request) or own.type != INCREMENTAL or request.type != INCREMENTAL:
            return False
        if self._states is None:
            self._states = {}
            _add_metadata(self._states, own)
        _add_metadata(self._states, request)
        # The live brokers are listed whole each time.
        self._request = request
        self._on_responses.append(on_response)
        return True

    def without_all_but_the_last(self) -> "Order":
        """Keep the last of those who wait; the others, with the request as it was."""
        others = Order(self._request, self._on_responses[:-1])
        del self._on_responses[:-1]
        return others

    def on_responses(self) -> Iterator[OnResponse]:
        """Who waits."""
        return iter(self._on_responses)

    def answer(self, response: ControlResponse | BrokerError) -> None:
        """Tell all who wait."""
        for on_response in self._on_responses:
            on_response(response)


class Condensed(NamedTuple):
    """`orders` take the place of those there were; for `superseded` there will be no answer."""

    orders: list[Order]
    superseded: list[Order]


def in_version(request: ControlRequest, version: int) -> ControlRequest:
    """The request as that version of it can have it; it is not changed itself."""
    if isinstance(request, UpdateMetadataRequest) and request.type != INCREMENTAL and version < TYPED_METADATA_SINCE:
        request = copy.copy(request)
        request.type = INCREMENTAL
    return request


def sender_of(request: ControlRequest) -> tuple[int, int, int]:
    """Who says it, and to which incarnation of the broker."""
    return request.controller_id, request.controller_epoch, request.broker_epoch


def condensed(orders: list[Order]) -> Condensed:
    """What still counts of orders of one sender, in at most four: what to stop, who is alive, what to lead, the rest.

    A stop takes the place of what its partition was to lead or follow before. One who is asked to lead or follow
    afterwards is still asked to stop first, as what was there may be of a deleted topic.
    """
    stops: dict[str, dict[int, StopReplicaPartitionState]] = {}
    leads = _Leads()
    metadata: MetadataStates = {}
    last: dict[type, Order] = {}
    superseded: list[Order] = []
    stopped: list[OnResponse] = []
    for order in orders:
        request = order.request
        if isinstance(request, StopReplicaRequest):
            _add_stops(stops, leads, request)
            # What was deleted is known by its answer alone.
            stopped += order.on_responses()
        else:
            if isinstance(request, LeaderAndIsrRequest):
                leads.add(request)
            else:
                _add_metadata(metadata, request)
            if type(request) in last:
                superseded.append(last[type(request)])
        last[type(request)] = order
    made: list[Order] = []
    if (stop := last.get(StopReplicaRequest)) is not None:
        made.append(Order(_stops(stop.request, stops), stopped))
    update = last.get(UpdateMetadataRequest)
    if (lead := last.get(LeaderAndIsrRequest)) is not None:
        if update is not None:
            # A follower ignores a leader that it does not know to be alive.
            made.append(Order(_metadata(update.request, {}), ()))
        made.append(Order(leads.request(lead.request), lead.on_responses()))
    if update is not None:
        superseded.append(update.without_all_but_the_last())
        made.append(Order(_metadata(update.request, metadata), update.on_responses()))
    return Condensed(made, superseded)


class _Leads:
    """What is to be led or followed. `_new`: what the broker has not heard of before, whoever leads it meanwhile."""

    __slots__ = ("_leaders", "_new", "_states")

    def __init__(self) -> None:
        self._states: dict[TopicKey, dict[int, LeaderAndIsrPartitionState]] = {}
        self._leaders: dict[int, LeaderAndIsrLiveLeader] = {}
        self._new: set[tuple[TopicKey, int]] = set()

    def add(self, request: LeaderAndIsrRequest) -> None:
        """A later request."""
        self._leaders.update((leader.broker_id, leader) for leader in request.live_leaders)
        for topic in request.topic_states:
            key = topic.topic_name, topic.topic_id
            partitions = self._states.setdefault(key, {})
            for state in topic.partition_states:
                if state.is_new:
                    self._new.add((key, state.partition_index))
                elif (key, state.partition_index) in self._new:
                    state = copy.copy(state)
                    state.is_new = True
                partitions[state.partition_index] = state

    def stop(self, name: str, index: int, *, is_deleted: bool) -> None:
        """The partition is neither led nor followed, unless a later request says so."""
        for key, partitions in self._states.items():
            if key[0] == name:
                partitions.pop(index, None)
                if is_deleted:
                    self._new.discard((key, index))

    def request(self, last: ControlRequest) -> LeaderAndIsrRequest:
        """All of it, for the rest like `last`."""
        request = copy.copy(last)
        assert isinstance(request, LeaderAndIsrRequest)
        request.topic_states = [
            LeaderAndIsrTopicState(topic_name=name, topic_id=topic_id, partition_states=list(partitions.values()))
            for (name, topic_id), partitions in self._states.items()
            if partitions
        ]
        request.live_leaders = list(self._leaders.values())
        return request


def _add_stops(
    stops: dict[str, dict[int, StopReplicaPartitionState]], leads: _Leads, request: StopReplicaRequest
) -> None:
    for topic in request.topic_states:
        partitions = stops.setdefault(topic.topic_name, {})
        for state in topic.partition_states:
            leads.stop(topic.topic_name, state.partition_index, is_deleted=state.delete_partition)
            before = partitions.get(state.partition_index)
            if before is not None and before.delete_partition and not state.delete_partition:
                state = copy.copy(state)
                state.delete_partition = True
            partitions[state.partition_index] = state


def _add_metadata(states: MetadataStates, request: UpdateMetadataRequest) -> None:
    for topic in request.topic_states:
        partitions = states.setdefault((topic.topic_name, topic.topic_id), {})
        partitions.update((state.partition_index, state) for state in topic.partition_states)


def _stops(last: ControlRequest, stops: dict[str, dict[int, StopReplicaPartitionState]]) -> StopReplicaRequest:
    request = copy.copy(last)
    assert isinstance(request, StopReplicaRequest)
    request.topic_states = [
        StopReplicaTopicState(topic_name=name, partition_states=list(partitions.values()))
        for name, partitions in stops.items()
    ]
    return request


def _metadata(last: ControlRequest, states: MetadataStates) -> UpdateMetadataRequest:
    request = copy.copy(last)
    assert isinstance(request, UpdateMetadataRequest)
    request.topic_states = [
        UpdateMetadataTopicState(topic_name=name, topic_id=topic_id, partition_states=list(partitions.values()))
        for (name, topic_id), partitions in states.items()
    ]
    return request
