"""Fetches what is assigned, ahead of the polling thread: which requests go where, and what becomes of the answers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, Protocol

from kavka.client.api_errors import KafkaError, UnsupportedVersionError
from kavka.client.call import RequestBuilder
from kavka.client.cluster import Cluster
from kavka.client.consumer.buffer import FetchBuffer
from kavka.client.consumer.chunks import Chunk
from kavka.client.consumer.fetch_answers import FetchAnswers
from kavka.client.consumer.fetch_metrics import FetchMetrics
from kavka.client.consumer.fetch_session import FetchSession, SessionRequest, Wanted
from kavka.client.consumer.positions import PartitionState, Phase
from kavka.client.consumer.subscription import Subscription
from kavka.client.network_port import NetworkPort
from kavka.client.node import Node
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.errors import EncodeError, ErrorCode
from kavka.protocol.messages.fetch import FetchRequest
from kavka.protocol.schema import ZERO_UUID, Request

_NAMES: Final = 12
"""The newest version of Fetch that has topics by name."""
_OLDEST: Final = 4
_NEWEST: Final = 18
_INFINITY: Final = float("inf")
LEADER_ONLY_MS: Final = 30_000.0
"""How long a closest replica that cannot be reached is left alone. The leader, which reaches it, names it again and
again; Kafka's client gets no records until it does not."""

log = logging.getLogger(__name__)


class MetadataView(Protocol):
    """What fetching and looking up need of the client's `Metadata`."""

    cluster: Cluster

    def request_update(self) -> int: ...


class FetchSettings(NamedTuple):
    """Named after Kafka's settings; the defaults are Kafka's too. Immutable."""

    min_bytes: int = 1
    max_bytes: int = 52_428_800
    max_wait_ms: int = 500
    max_partition_bytes: int = 1_048_576
    is_read_committed: bool = False
    client_rack: str = ""
    retry_backoff_ms: float = 100
    metadata_max_age_ms: float = 300_000
    request_timeout_ms: float = 30_000


class _Asked(NamedTuple):
    """A partition of a request that is out, as it was then."""

    state: PartitionState
    generation: int
    offset: int
    leader_epoch: int
    topic_id: bytes

    @property
    def is_stale(self) -> bool:
        """Whether the answer is nobody's: read elsewhere by now, or it may be cut, as a newer leader is known.

        Or somebody else answered first: a closest replica may still owe an answer when it is given up for the leader.
        """
        state = self.state
        return (
            state.generation != self.generation
            or state.fetched.offset != self.offset
            or state.phase is not Phase.READING
            or self.leader_epoch < state.checked_epoch
        )


class Fetcher:
    """One request at a time to each broker that leads, or is the closest to, a partition with a position.

    The next one goes out when the answer has come, for as long as there is room in the buffer: two answers of a
    partition at most, `fetch.max.bytes` in all beside what is paused, and what is on its way.
    Threads: the client's thread alone.
    """

    def __init__(
        self,
        network: NetworkPort,
        metadata: MetadataView,
        subscription: Subscription,
        buffer: FetchBuffer,
        settings: FetchSettings,
        answers: FetchAnswers,
        metrics: FetchMetrics,
        now_ms: Callable[[], float],
    ) -> None:
        self._network: Final = network
        self._metadata: Final = metadata
        self._subscription: Final = subscription
        self._buffer: Final = buffer
        self._settings: Final = settings
        self._answers: Final = answers
        self._metrics: Final = metrics
        self._now_ms: Final = now_ms
        self._sessions: dict[int, FetchSession] = {}
        self._out: dict[int, Node] = {}
        """Nodes that owe an answer."""
        self._is_closing = False

    def work(self, now_ms: float) -> float:
        """Send what can be sent; how long until there is something to do."""
        if self._is_closing:
            return _INFINITY
        cluster = self._metadata.cluster
        wait_ms = _INFINITY
        by_node: dict[int, list[PartitionState]] = {}
        with self._subscription.lock:
            states = self._subscription.states()
            kept_bytes = sum([state.buffered_bytes for state in states if state.is_kept])
            for state in states:
                if state.phase is not Phase.READING or state.is_kept:
                    continue
                if state.not_before_ms > now_ms:
                    wait_ms = min(wait_ms, state.not_before_ms - now_ms)
                    continue
                if not self._buffer.has_room(state, self._settings.max_partition_bytes, kept_bytes):
                    continue
                node_id = self._node_of(state, cluster, now_ms)
                if node_id is None:
                    self._metadata.request_update()
                elif node_id not in self._out:
                    by_node.setdefault(node_id, []).append(state)
        for node_id, some in by_node.items():
            node = cluster.nodes[node_id]
            if self._network.ready(node):
                self._send(node, some, cluster, now_ms)
            else:
                if self._network.failures(node):
                    self._unreachable(some, now_ms)
                wait_ms = min(wait_ms, self._network.delay_ms(node))
        return wait_ms

    def closing(self) -> None:
        """End the sessions, as far as that can be said without waiting: brokers keep them for others then (KIP-227)."""
        self._is_closing = True
        for node_id, session in self._sessions.items():
            node = self._metadata.cluster.nodes.get(node_id)
            last = session.closing()
            if node is None or last is None or node_id in self._out or not self._network.ready(node):
                continue
            try:
                self._network.send(node, self._request(last, wait_ms=0), lambda _answer: None, versions=_versions(last))
            except (KafkaError, EncodeError) as error:
                log.debug("session not ended node='%s' error=%r", node, str(error))

    def _node_of(self, state: PartitionState, cluster: Cluster, now_ms: float) -> int | None:
        """Whom to ask: the closest replica while it is there, or else the leader."""
        info = cluster.partition(state.partition)
        preferred = state.preferred_node
        if preferred is not None:
            is_there = info is not None and preferred not in info.offline_replicas
            if is_there and preferred in cluster.nodes and now_ms < state.preferred_until_ms:
                return preferred
            state.preferred_node = None
        if info is None or info.leader_id not in cluster.nodes:
            return None
        return info.leader_id

    def _unreachable(self, states: list[PartitionState], now_ms: float) -> None:
        """A node does not answer: perhaps others lead by now."""
        self._metadata.request_update()
        with self._subscription.lock:
            for state in states:
                if state.preferred_node is not None:
                    state.preferred_node = None
                    state.leader_only_until_ms = now_ms + LEADER_ONLY_MS

    def _send(self, node: Node, states: list[PartitionState], cluster: Cluster, now_ms: float) -> None:
        session = self._sessions.setdefault(node.id, FetchSession())
        wanted: dict[TopicPartition, Wanted] = {}
        asked: dict[TopicPartition, _Asked] = {}
        with self._subscription.lock:
            # Since they were looked at, some may have gone, or be read elsewhere.
            states = [state for state in states if state.phase is Phase.READING]
            for state in states:
                topic = cluster.topics[state.partition.topic]
                info = topic.partitions.get(state.partition.partition)
                position = state.fetched
                leader_epoch = info.leader_epoch if info is not None else -1
                if state.checked_epoch < 0:
                    state.checked_epoch = leader_epoch
                wanted[state.partition] = Wanted(
                    topic.id,
                    position.offset,
                    self._settings.max_partition_bytes,
                    leader_epoch,
                    -1 if position.epoch is None else position.epoch,
                )
                asked[state.partition] = _Asked(state, state.generation, position.offset, leader_epoch, topic.id)
            asks_leader_alone = any(now_ms < state.leader_only_until_ms for state in states)
        if not states:
            return
        rack = "" if asks_leader_alone else self._settings.client_rack
        request = session.request(wanted)
        names = session.names

        def answered(answer: Any) -> None:
            del self._out[node.id]
            self._answered(node, session, asked, names, answer, now_ms)

        try:
            self._network.send(
                node, self._request(request, self._settings.max_wait_ms, rack), answered, versions=_versions(request)
            )
        except (KafkaError, EncodeError) as error:
            session.lost()
            self._refused(node, asked, error)
        else:
            self._out[node.id] = node

    def _request(self, session: SessionRequest, wait_ms: int, rack: str = "") -> RequestBuilder:
        settings = self._settings

        def build(version: int) -> Request:
            if version < _NAMES:
                for topic in session.topics:
                    for partition in topic.partitions:
                        partition.last_fetched_epoch = -1
            return FetchRequest(
                max_wait_ms=wait_ms,
                min_bytes=settings.min_bytes,
                max_bytes=settings.max_bytes,
                isolation_level=int(settings.is_read_committed),
                session_id=session.session_id,
                session_epoch=session.epoch,
                topics=session.topics,
                forgotten_topics_data=session.forgotten,
                rack_id=rack,
            )

        return RequestBuilder(_FETCH, build)

    def _answered(
        self,
        node: Node,
        session: FetchSession,
        asked: Mapping[TopicPartition, _Asked],
        names: Mapping[bytes, str],
        answer: Any,
        sent_ms: float,
    ) -> None:
        if isinstance(answer, KafkaError):
            session.lost()
            if not self._is_closing:
                log.debug("no answer to a fetch node='%s' error=%r", node, str(answer))
                self._unreachable([each.state for each in asked.values()], self._now_ms())
            return
        session.answered(answer.error_code, answer.session_id)
        if answer.error_code:
            log.debug("fetch session over node='%s' code=%d", node, answer.error_code)
            if answer.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR:
                self._metadata.request_update()
            if answer.error_code not in _SESSION_OVER:
                self._back_off(asked)
            return
        now_ms = self._now_ms()
        size_bytes = records = 0
        with self._subscription.lock:
            for topic in answer.responses:
                name = topic.topic or names.get(topic.topic_id)
                if name is None:
                    continue
                for data in topic.partitions:
                    partition = TopicPartition(name, data.partition_index)
                    each = asked.get(partition)
                    if each is None or each.is_stale:
                        continue
                    if not data.error_code and topic.topic_id == each.topic_id != ZERO_UUID:
                        # Who was assigned after the metadata had come is told of no id before the next ones come. An
                        # answer by name does not say which topic it is of.
                        each.state.topic_id = each.topic_id
                    size_bytes += len(data.records or b"")
                    records += self._answers.take(each.state, each.offset, data, node, now_ms)
            self._answers.after(answer.node_endpoints)
        self._metrics.answered(now_ms - sent_ms, size_bytes, records, answer.throttle_time_ms)

    def _refused(self, node: Node, asked: Mapping[TopicPartition, _Asked], error: Exception) -> None:
        """The broker is too old, or there is no such request: asking again would not help, so poll raises it."""
        log.warning("fetch not sent node='%s' error=%r", node, str(error))
        kind = UnsupportedVersionError if isinstance(error, UnsupportedVersionError) else KafkaError
        with self._subscription.lock:
            for partition, each in asked.items():
                if not each.state.buffered_errors:
                    failure = kind(f"{partition} cannot be fetched from node {node}: {error}")
                    failure.__cause__ = error
                    self._buffer.add(each.state, Chunk.failed(each.state, failure))

    def _back_off(self, asked: Mapping[TopicPartition, _Asked]) -> None:
        until_ms = self._now_ms() + self._settings.retry_backoff_ms
        with self._subscription.lock:
            for each in asked.values():
                each.state.not_before_ms = until_ms


def _versions(request: SessionRequest) -> tuple[int, int]:
    return (_OLDEST, _NEWEST if request.uses_ids else _NAMES)


_FETCH: Final = 1
_SESSION_OVER: Final = frozenset({ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH})
