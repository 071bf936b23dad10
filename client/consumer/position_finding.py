"""Finds where to read: what was committed, what the reset policy says, and whether the log still has what was read."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from concurrent.futures import Future
from typing import Any, Final, NamedTuple, Protocol

from kavka.client.api_errors import KafkaError, KafkaTimeoutError, RetriableError, error_of
from kavka.client.consumer.buffer import FetchBuffer
from kavka.client.consumer.chunks import Chunk
from kavka.client.consumer.errors import FetchOutOfRangeError, NoOffsetForPartitionError
from kavka.client.consumer.fetch_answers import FetchAnswers
from kavka.client.consumer.fetcher import FetchSettings, MetadataView
from kavka.client.consumer.group.port import OffsetAndMetadata
from kavka.client.consumer.offset_lookup import Found, Lookup, OffsetLookups
from kavka.client.consumer.positions import LATEST, PartitionState, Phase, Position
from kavka.client.consumer.subscription import Subscription
from kavka.client.network_port import NetworkPort
from kavka.client.node import Node
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.api import ApiKey
from kavka.protocol.errors import EncodeError, ErrorCode
from kavka.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

_INFINITY: Final = float("inf")
_EPOCHS_FROM: Final = 3
"""The first version of OffsetForLeaderEpoch that asks for a consumer's permission alone."""

log = logging.getLogger(__name__)


class Committed(Protocol):
    """Where the group's offsets come from."""

    def offsets_of(
        self, partitions: Collection[TopicPartition], deadline_ms: float
    ) -> Future[dict[TopicPartition, OffsetAndMetadata]]: ...


class _Check(NamedTuple):
    generation: int
    fetched: Position
    leader_epoch: int


class PositionFinder:
    """Threads: the client's thread alone."""

    def __init__(
        self,
        network: NetworkPort,
        metadata: MetadataView,
        subscription: Subscription,
        buffer: FetchBuffer,
        lookups: OffsetLookups,
        answers: FetchAnswers,
        settings: FetchSettings,
        *,
        committed: Committed | None,
        on_found: Callable[[], None],
        now_ms: Callable[[], float],
        wall_clock_ms: Callable[[], float],
    ) -> None:
        """`on_found` is called when a partition has got a position, or an error in its place."""
        self._network: Final = network
        self._metadata: Final = metadata
        self._subscription: Final = subscription
        self._buffer: Final = buffer
        self._lookups: Final = lookups
        self._answers: Final = answers
        self._settings: Final = settings
        self._committed: Final = committed
        self._on_found: Final = on_found
        self._now_ms: Final = now_ms
        self._wall_clock_ms: Final = wall_clock_ms

    def work(self, now_ms: float) -> float:
        """Begin what can be begun; how long until there is something to do."""
        with self._subscription.lock:
            for state in self._subscription.leaders_changed(self._metadata.cluster):
                if state.has_position:
                    self._begin_anew(state)
            unknown, first_ms = self._subscription.waiting(Phase.UNKNOWN, now_ms)
            if unknown:
                self._find_committed(unknown, now_ms)
            resetting, second_ms = self._subscription.waiting(Phase.RESETTING, now_ms)
            if resetting:
                self._reset(resetting, now_ms)
            checking, third_ms = self._subscription.waiting(Phase.CHECKING, now_ms)
            fourth_ms = self._check(checking) if checking else _INFINITY
        return min(first_ms, second_ms, third_ms, fourth_ms)

    # Committed offsets

    def _find_committed(self, states: list[PartitionState], now_ms: float) -> None:
        if self._committed is None:
            for state in states:
                self._without_position(state)
            return
        asked = {state.partition: state.generation for state in states}
        for state in states:
            state.is_asked = True
        future = self._committed.offsets_of(list(asked), now_ms + self._settings.request_timeout_ms)
        future.add_done_callback(lambda done: self._found_committed(asked, done))

    def _found_committed(
        self, asked: dict[TopicPartition, int], done: Future[dict[TopicPartition, OffsetAndMetadata]]
    ) -> None:
        error = None if done.cancelled() else done.exception()
        found = {} if error is not None or done.cancelled() else done.result()
        with self._subscription.lock:
            for partition, generation in asked.items():
                state = self._subscription.known(partition, generation)
                if state is None or state.phase is not Phase.UNKNOWN:
                    continue
                if error is not None:
                    self._failed(state, error)
                elif (offset := found.get(partition)) is not None:
                    phase = Phase.READING if offset.leader_epoch is None else Phase.CHECKING
                    state.move(Position(offset.offset, offset.leader_epoch), phase)
                else:
                    self._without_position(state)
        self._on_found()

    def _without_position(self, state: PartitionState) -> None:
        if not self._subscription.go_on_without(state):
            message = f"nothing is committed for {state.partition}, and auto.offset.reset says not where to begin"
            self._fail(state, NoOffsetForPartitionError(message, {state.partition: -1}))

    # Resets

    def _reset(self, states: list[PartitionState], now_ms: float) -> None:
        timestamps: dict[TopicPartition, int] = {}
        asked: dict[TopicPartition, int] = {}
        for state in states:
            policy = state.reset_to or self._subscription.policy
            if policy.is_none:
                self._fail_made_anew(state)
                continue
            timestamps[state.partition] = policy.timestamp_at(self._wall_clock_ms())
            asked[state.partition] = state.generation
            state.is_asked = True
        for partition, timestamp in timestamps.items():
            # Each by itself: what keeps one waiting keeps no other.
            self._ask({partition: timestamp}, asked, now_ms)

    def _ask(self, timestamps: dict[TopicPartition, int], asked: dict[TopicPartition, int], now_ms: float) -> None:
        deadline_ms = now_ms + self._settings.request_timeout_ms

        def found(offsets: Found) -> None:
            self._found_reset(timestamps, asked, offsets)

        def failed(error: KafkaError) -> None:
            with self._subscription.lock:
                for partition in timestamps:
                    state = self._subscription.known(partition, asked[partition])
                    if state is not None:
                        self._failed(state, error)
            self._on_found()

        self._lookups.ask(Lookup(timestamps, deadline_ms, found, failed))

    def _found_reset(
        self, timestamps: dict[TopicPartition, int], asked: dict[TopicPartition, int], offsets: Found
    ) -> None:
        with self._subscription.lock:
            for partition, timestamp in timestamps.items():
                state = self._subscription.known(partition, asked[partition])
                place = offsets.get(partition)
                if state is None or state.phase is not Phase.RESETTING:
                    continue
                if place is None and timestamp >= 0:
                    # Nothing is as young: on from the end.
                    self._ask({partition: LATEST}, asked, self._now_ms())
                elif place is not None:
                    log.info("position reset partition=%s offset=%d", partition, place.offset)
                    state.move(Position(place.offset, place.leader_epoch))
                    state.checked_epoch = -1
                else:
                    self._failed(state, error_of(ErrorCode.OFFSET_NOT_AVAILABLE))
        self._on_found()

    def _begin_anew(self, state: PartitionState) -> None:
        """The topic is another one by the same name: a position in the former one means nothing."""
        log.warning("topic made anew under its name partition=%s position=%d", state.partition, state.position.offset)
        state.checked_epoch = -1
        state.begin(Phase.RESETTING)

    def _fail_made_anew(self, state: PartitionState) -> None:
        """Until somebody seeks there is no position: nothing is read on, and nothing of the former topic committed."""
        message = f"{state.partition} was deleted and made anew, and auto.offset.reset says not where to go on"
        self._fail(state, FetchOutOfRangeError(message, {state.partition: state.position.offset}))

    # Whether the log was cut

    def _check(self, states: list[PartitionState]) -> float:
        cluster = self._metadata.cluster
        by_node: dict[Node, list[PartitionState]] = {}
        wait_ms = _INFINITY
        for state in states:
            leader = cluster.leader(state.partition)
            if leader is None:
                self._metadata.request_update()
                wait_ms = min(wait_ms, self._settings.retry_backoff_ms)
            elif state.fetched.epoch is None:
                state.phase = Phase.READING
            else:
                by_node.setdefault(leader, []).append(state)
        for node, some in by_node.items():
            if not self._network.ready(node):
                if self._network.failures(node):
                    self._metadata.request_update()
                wait_ms = min(wait_ms, self._network.delay_ms(node))
                continue
            served = self._network.served(node)
            newest = served.newest(ApiKey.OFFSET_FOR_LEADER_EPOCH, (0, 4)) if served is not None else None
            if newest is None or newest < _EPOCHS_FROM:
                for state in some:
                    info = cluster.partition(state.partition)
                    self._is_good(state, info.leader_epoch if info is not None else -1)
                wait_ms = 0.0
            else:
                self._send_check(node, some)
        return wait_ms

    def _send_check(self, node: Node, states: list[PartitionState]) -> None:
        cluster = self._metadata.cluster
        topics: dict[str, OffsetForLeaderTopic] = {}
        asked: dict[TopicPartition, _Check] = {}
        for state in states:
            (name, number), epoch = state.partition, state.fetched.epoch
            info = cluster.partition(state.partition)
            topic = topics.setdefault(name, OffsetForLeaderTopic(topic=name, partitions=[]))
            leader_epoch = info.leader_epoch if info is not None else -1
            topic.partitions.append(
                OffsetForLeaderPartition(
                    partition=number,
                    current_leader_epoch=leader_epoch,
                    leader_epoch=-1 if epoch is None else epoch,
                )
            )
            asked[state.partition] = _Check(state.generation, state.fetched, leader_epoch)
            state.is_asked = True
        request = OffsetForLeaderEpochRequest(replica_id=-1, topics=list(topics.values()))
        try:
            self._network.send(node, request, lambda answer: self._checked(asked, answer), versions=(_EPOCHS_FROM, 4))
        except (KafkaError, EncodeError) as error:
            for state in states:
                self._failed(state, error)

    def _checked(self, asked: dict[TopicPartition, _Check], answer: Any) -> None:
        rows: dict[TopicPartition, Any] = {}
        if not isinstance(answer, KafkaError):
            rows = {
                TopicPartition(topic.topic, row.partition): row for topic in answer.topics for row in topic.partitions
            }
        with self._subscription.lock:
            for partition, (generation, position, leader_epoch) in asked.items():
                state = self._subscription.known(partition, generation)
                if state is None or state.phase is not Phase.CHECKING:
                    continue
                if state.fetched != position:
                    # Something else was read meanwhile.
                    state.is_asked = False
                    continue
                row = rows.get(partition)
                if row is None:
                    error = answer if isinstance(answer, KafkaError) else error_of(ErrorCode.UNKNOWN_SERVER_ERROR)
                    self._failed(state, error)
                elif row.error_code:
                    self._failed(state, error_of(row.error_code))
                elif row.end_offset < 0 or row.leader_epoch < 0 or row.end_offset < position.offset:
                    state.is_asked = False
                    self._answers.cut(state, row.leader_epoch, row.end_offset)
                else:
                    self._is_good(state, leader_epoch)
        self._on_found()

    def _is_good(self, state: PartitionState, leader_epoch: int) -> None:
        """The log of that leader has what was read. If there is a newer one by now, that is asked too."""
        state.is_asked = False
        state.checked_epoch = leader_epoch
        info = self._metadata.cluster.partition(state.partition)
        if info is None or info.leader_epoch <= leader_epoch:
            state.phase = Phase.READING

    # Failures, under the lock

    def _failed(self, state: PartitionState, error: BaseException) -> None:
        """Try again after the back-off, or have poll raise it."""
        state.is_asked = False
        state.not_before_ms = self._now_ms() + self._settings.retry_backoff_ms
        if isinstance(error, RetriableError):
            if not isinstance(error, KafkaTimeoutError):
                self._metadata.request_update()
        else:
            failure = error if isinstance(error, KafkaError) else KafkaError(repr(error))
            self._fail(state, failure)

    def _fail(self, state: PartitionState, error: KafkaError) -> None:
        if not state.buffered_errors:
            self._buffer.add(state, Chunk.failed(state, error))
