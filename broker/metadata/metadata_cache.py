"""What this broker knows of the cluster: topics, partitions, brokers, controller, as the controller last told it.

A `MetadataSnapshot` never changes. `MetadataCache.apply` builds the next one from an UpdateMetadata request and swaps
it in whole; a topic that the request does not name keeps its `TopicMetadata` object, shared between snapshots.

A partition is kept as a plain tuple of ints and tuples of ints (the fields of `PartitionMetadata`), which the garbage
collector untracks: 100,000 partitions cost its full passes nothing.
"""

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from kavka.broker.partitions.controller_epoch import UNNUMBERED, ControllerEpoch
from kavka.broker.waiting.purgatory import WatchList
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.update_metadata import FULL_UPDATE

if TYPE_CHECKING:
    from kavka.protocol.messages.update_metadata import (
        UpdateMetadataBroker,
        UpdateMetadataPartitionState,
        UpdateMetadataRequest,
    )

NO_LEADER: Final = -1
LEADER_DURING_DELETE: Final = -2
"""The leader that the controller sends for a partition whose topic is being deleted."""

ZERO_TOPIC_ID: Final = bytes(16)

Row = tuple[int, int, int, tuple[int, ...], tuple[int, ...], tuple[int, ...], int, int]


class Endpoint(NamedTuple):
    """Where a listener is reached."""

    host: str
    port: int


class PartitionMetadata(NamedTuple):
    """One partition as the controller announced it. `leader` is -1 while there is none."""

    partition_index: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...]
    controller_epoch: int
    partition_epoch: int


class BrokerMetadata:
    """A live broker and its endpoint on each of its listeners."""

    __slots__ = ("broker_id", "endpoints", "rack")

    def __init__(self, broker_id: int, rack: str | None, endpoints: Mapping[str, Endpoint]) -> None:
        self.broker_id: Final = broker_id
        self.rack: Final = rack
        self.endpoints: Final = endpoints


class AliveBroker(NamedTuple):
    """A live broker as clients of one listener see it."""

    broker_id: int
    host: str
    port: int
    rack: str | None


class TopicMetadata:
    """A topic's id and partitions, in index order; immutable."""

    __slots__ = ("_rows", "name", "topic_id")

    def __init__(self, name: str, topic_id: bytes, rows: tuple[Row, ...]) -> None:
        self.name: Final = name
        self.topic_id: Final = topic_id
        self._rows: Final = rows

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[PartitionMetadata]:
        return map(PartitionMetadata._make, self._rows)

    def partition(self, index: int) -> PartitionMetadata | None:
        """The partition of that index, or None."""
        rows = self._rows
        position = index if 0 <= index < len(rows) and rows[index][0] == index else bisect_left(rows, (index,))
        if 0 <= position < len(rows) and rows[position][0] == index:
            return PartitionMetadata._make(rows[position])
        return None

    def from_index(self, index: int) -> Iterator[PartitionMetadata]:
        """The partitions from `index` on."""
        rows = self._rows
        return map(PartitionMetadata._make, rows[bisect_left(rows, (index,)) :])

    def replication_factor(self) -> int:
        """The number of replicas of the first partition."""
        return len(self._rows[0][3]) if self._rows else 0


class MetadataSnapshot:
    """The cluster at one moment; immutable but for `encoded`.

    `encoded` keeps answers that were made from this snapshot, by a key of the maker's choice, so that they go when the
    snapshot does. Threads: any; entries are put and got whole, its maker bounds their number. `token` stands for it
    with those who only want to know whether it is still the same: to keep the snapshot itself would keep all of that.
    """

    __slots__ = (
        "brokers",
        "controller_epoch",
        "controller_id",
        "encoded",
        "names_by_id",
        "own_broker_id",
        "sorted_names_memo",
        "token",
        "topics",
        "unadvertised",
    )

    def __init__(
        self,
        *,
        topics: Mapping[str, TopicMetadata],
        names_by_id: Mapping[bytes, str],
        brokers: Mapping[int, BrokerMetadata],
        controller_id: int,
        controller_epoch: int,
        own_broker_id: int,
        unadvertised: frozenset[str],
    ) -> None:
        self.topics: Final = topics
        self.names_by_id: Final = names_by_id
        self.brokers: Final = brokers
        self.controller_id: Final = controller_id
        self.controller_epoch: Final = controller_epoch
        self.own_broker_id: Final = own_broker_id
        self.unadvertised: Final = unadvertised
        self.token: Final = object()
        self.encoded: dict[object, bytes] = {}
        self.sorted_names_memo: list[str] | None = None

    def topic(self, name: str) -> TopicMetadata | None:
        """The topic of that name, or None."""
        return self.topics.get(name)

    def topic_by_id(self, topic_id: bytes) -> TopicMetadata | None:
        """The topic of that id (16 bytes), or None."""
        name = self.names_by_id.get(topic_id)
        return None if name is None else self.topics.get(name)

    def topic_id(self, name: str) -> bytes:
        """The id of that topic, or the zero id."""
        topic = self.topics.get(name)
        return ZERO_TOPIC_ID if topic is None else topic.topic_id

    def partition(self, name: str, index: int) -> PartitionMetadata | None:
        """That partition, or None."""
        topic = self.topics.get(name)
        return None if topic is None else topic.partition(index)

    def sorted_names(self) -> list[str]:
        """All topics' names in order; not to be changed by the caller."""
        names = self.sorted_names_memo
        if names is None:
            names = self.sorted_names_memo = sorted(self.topics)
        return names

    def alive_brokers(self, listener: str, reached: Endpoint | None = None) -> list[AliveBroker]:
        """The live brokers that have that listener, by id.

        `reached` is where the asking client reached this broker; where this broker advertises nothing, that is its
        endpoint.
        """
        alive = []
        for broker_id in sorted(self.brokers):
            endpoint = self.endpoint(broker_id, listener, reached)
            if endpoint is not None:
                alive.append(AliveBroker(broker_id, endpoint.host, endpoint.port, self.brokers[broker_id].rack))
        return alive

    def endpoint(self, broker_id: int, listener: str, reached: Endpoint | None = None) -> Endpoint | None:
        """Where that broker is reached on that listener; None if it is not alive or has no such listener."""
        broker = self.brokers.get(broker_id)
        if broker is None:
            return None
        if reached is not None and broker_id == self.own_broker_id and listener in self.unadvertised:
            return reached
        return broker.endpoints.get(listener)


class MetadataCache:
    """Holds the current snapshot.

    Threads: `current` is read by any thread, lock-free, and changed under `_lock`. `apply` is called by the thread of
    this broker's own controller's orders, or the I/O thread of an UpdateMetadata request; under `_order` it tells the
    listeners, on the same thread, so that they hear of changes in their order.
    """

    def __init__(
        self,
        broker_id: int,
        unadvertised_listeners: Iterable[str] = (),
        *,
        controller_epoch: ControllerEpoch | None = None,
    ) -> None:
        self._order = threading.Lock()
        self._lock = threading.Lock()
        self._controller_epoch = ControllerEpoch() if controller_epoch is None else controller_epoch
        self._listeners: list[Callable[[MetadataSnapshot, MetadataSnapshot], None]] = []
        self.arrived = WatchList()
        """Requests that cannot be answered before the controller has told of the cluster; checked with no lock held."""
        self.current = MetadataSnapshot(
            topics={},
            names_by_id={},
            brokers={},
            controller_id=-1,
            controller_epoch=0,
            own_broker_id=broker_id,
            unadvertised=frozenset(unadvertised_listeners),
        )

    def on_change(self, listener: Callable[[MetadataSnapshot, MetadataSnapshot], None]) -> None:
        """Have `listener(old, new)` called after every change. Register before the first `apply`; it must not block."""
        self._listeners.append(listener)

    def set_unadvertised(self, listeners: Iterable[str]) -> None:
        """These of this broker's listeners advertise nothing from now on: clients get the address that they reached."""
        with self._lock:
            old = self.current
            self.current = MetadataSnapshot(
                topics=old.topics,
                names_by_id=old.names_by_id,
                brokers=old.brokers,
                controller_id=old.controller_id,
                controller_epoch=old.controller_epoch,
                own_broker_id=old.own_broker_id,
                unadvertised=frozenset(listeners),
            )

    def apply(self, request: "UpdateMetadataRequest", number: int = UNNUMBERED) -> MetadataSnapshot:
        """Take in what the controller says and give the new snapshot. `number`: see `ControllerEpoch.admits`.

        Raises BrokerError(STALE_CONTROLLER_EPOCH) for a controller that was deposed, or that has said more since.
        """
        with self._order:
            if not self._controller_epoch.admits(request.controller_epoch, request.broker_epoch, number):
                raise BrokerError(
                    ErrorCode.STALE_CONTROLLER_EPOCH,
                    f"request {number} of controller epoch {request.controller_epoch} is older than what was heard",
                )
            with self._lock:
                old = self.current
                new = self.current = _next_snapshot(old, request)
            for listener in self._listeners:
                listener(old, new)
        if self.arrived.operations:
            self.arrived.check()
        return new


def _next_snapshot(old: MetadataSnapshot, request: "UpdateMetadataRequest") -> MetadataSnapshot:
    topics, names_by_id = _next_topics(old, request)
    brokers = {broker.id: _broker(broker) for broker in request.live_brokers}
    return MetadataSnapshot(
        topics=topics,
        names_by_id=names_by_id,
        brokers=brokers,
        controller_id=request.controller_id,
        controller_epoch=request.controller_epoch,
        own_broker_id=old.own_broker_id,
        unadvertised=old.unadvertised,
    )


def _next_topics(
    old: MetadataSnapshot, request: "UpdateMetadataRequest"
) -> tuple[Mapping[str, TopicMetadata], Mapping[bytes, str]]:
    full = request.type == FULL_UPDATE
    updates: list[tuple[str, bytes, Iterable[UpdateMetadataPartitionState]]] = [
        (state.topic_name, state.topic_id, state.partition_states) for state in request.topic_states
    ]
    updates.extend((state.topic_name, ZERO_TOPIC_ID, (state,)) for state in request.ungrouped_partition_states)
    if not updates and not full:
        return old.topics, old.names_by_id
    topics = {} if full else dict(old.topics)
    names_by_id = {} if full else dict(old.names_by_id)
    shared: dict[tuple[int, ...], tuple[int, ...]] = {}
    for name, topic_id, states in updates:
        before = topics.get(name)
        if topic_id == ZERO_TOPIC_ID and before is not None:
            topic_id = before.topic_id
        if before is not None and before.topic_id not in (topic_id, ZERO_TOPIC_ID):
            _forget_id(names_by_id, before.topic_id, name)
            before = None
        rows = _merged_rows(before, states, shared)
        if rows:
            topics[name] = TopicMetadata(name, topic_id, rows)
            if topic_id != ZERO_TOPIC_ID:
                names_by_id[topic_id] = name
        else:
            topics.pop(name, None)
            _forget_id(names_by_id, topic_id, name)
    return topics, names_by_id


def _forget_id(names_by_id: dict[bytes, str], topic_id: bytes, name: str) -> None:
    """Unless it is another topic's as well: Kafka's controllers tell of copies that somebody made of a topic's node."""
    if names_by_id.get(topic_id) == name:
        del names_by_id[topic_id]


def _merged_rows(
    before: TopicMetadata | None,
    states: "Iterable[UpdateMetadataPartitionState]",
    shared: dict[tuple[int, ...], tuple[int, ...]],
) -> tuple[Row, ...]:
    rows: dict[int, Row] = {} if before is None else {row[0]: row for row in before._rows}
    for state in states:
        if state.leader == LEADER_DURING_DELETE:
            rows.pop(state.partition_index, None)
            continue
        replicas, isr, offline = (
            shared.setdefault(ids, ids)
            for ids in (tuple(state.replicas), tuple(state.isr), tuple(state.offline_replicas))
        )
        rows[state.partition_index] = (
            state.partition_index,
            state.leader,
            state.leader_epoch,
            replicas,
            isr,
            offline,
            state.controller_epoch,
            state.zk_version,
        )
    return tuple(rows[index] for index in sorted(rows))


_SECURITY_PROTOCOLS: Final = {0: "PLAINTEXT", 1: "SSL", 2: "SASL_PLAINTEXT", 3: "SASL_SSL"}


def _broker(broker: "UpdateMetadataBroker") -> BrokerMetadata:
    endpoints = {
        endpoint.listener or _SECURITY_PROTOCOLS.get(endpoint.security_protocol, ""): Endpoint(
            endpoint.host, endpoint.port
        )
        for endpoint in broker.endpoints
    }
    if not endpoints and broker.v0_host:
        endpoints["PLAINTEXT"] = Endpoint(broker.v0_host, broker.v0_port)
    return BrokerMetadata(broker.id, broker.rack, endpoints)
