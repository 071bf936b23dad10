"""What a fetch's answer means for one partition: records to keep, a closer replica, a new leader, a cut log."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from typing import Any, Final

from kavka.client.api_errors import KafkaError, error_of
from kavka.client.backoff import ExponentialBackoff
from kavka.client.consumer.buffer import FetchBuffer
from kavka.client.consumer.chunks import Chunk
from kavka.client.consumer.decoding import survey
from kavka.client.consumer.errors import (
    CorruptBatchReadError,
    FetchOutOfRangeError,
    FetchTooSmallError,
    LogTruncationError,
)
from kavka.client.consumer.positions import PartitionState, Position
from kavka.client.consumer.subscription import Subscription
from kavka.client.metadata_update import LeaderAndEpoch
from kavka.client.node import Node
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.errors import ErrorCode
from kavka.protocol.framing import SMALL_FRAME_BYTES
from kavka.protocol.records.errors import CorruptRecordsError, TruncatedBatchError
from kavka.protocol.records.header import read_header

_ASK_ANEW: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.LEADER_NOT_AVAILABLE,
    }
)
"""Somebody else may know better: the metadata are old."""
_TRY_AGAIN: Final = frozenset({ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.UNKNOWN_SERVER_ERROR})

Leaders = dict[TopicPartition, LeaderAndEpoch]

log = logging.getLogger(__name__)


class FetchAnswers:
    """Threads: the client's thread alone, under the subscription's lock."""

    def __init__(
        self,
        subscription: Subscription,
        buffer: FetchBuffer,
        backoff: ExponentialBackoff,
        *,
        request_metadata: Callable[[], object],
        learn_leaders: Callable[[Leaders, Iterable[Node]], Collection[TopicPartition]],
        preferred_for_ms: float,
    ) -> None:
        """`preferred_for_ms`: how long a closest replica is read from before the leader is asked again."""
        self._subscription: Final = subscription
        self._buffer: Final = buffer
        self._backoff: Final = backoff
        self._request_metadata: Final = request_metadata
        self._learn_leaders: Final = learn_leaders
        self._preferred_for_ms: Final = preferred_for_ms
        self._failures: dict[TopicPartition, int] = {}
        """In a row."""
        self._leaders: Leaders = {}
        """Those that the answer names so far."""
        self._moved: list[PartitionState] = []
        self._needs_metadata = False

    def take(self, state: PartitionState, offset: int, data: Any, node: Node, now_ms: float) -> int:
        """One partition's answer; it was asked at `offset`, and is still read there. How many records it has."""
        if data.error_code:
            self._refused(state, data, node, now_ms)
            return 0
        self._failures.pop(state.partition, None)
        if data.high_watermark >= 0:
            state.end_offset = data.high_watermark
        if data.last_stable_offset >= 0:
            state.stable_offset = data.last_stable_offset
        if data.log_start_offset >= 0:
            state.log_start_offset = data.log_start_offset
        if data.preferred_read_replica >= 0:
            log.debug("read from another replica partition=%s node=%d", state.partition, data.preferred_read_replica)
            state.preferred_node = data.preferred_read_replica
            state.preferred_until_ms = now_ms + self._preferred_for_ms
        if data.diverging_epoch.end_offset >= 0:
            self.cut(state, data.diverging_epoch.epoch, data.diverging_epoch.end_offset)
        elif data.records:
            return self._keep(state, offset, data)
        return 0

    def after(self, endpoints: Iterable[Any]) -> None:
        """The answer was taken: tell of leaders that it names (KIP-951), or ask for them. Under the lock, too."""
        if self._leaders:
            leaders, self._leaders = self._leaders, {}
            moved, self._moved = self._moved, []
            nodes = [Node(each.node_id, each.host, each.port, each.rack) for each in endpoints]
            changed = self._learn_leaders(leaders, nodes)
            for state in moved:
                if state.partition in changed:
                    # No reason to wait. With nothing new, it might name the same one for ever.
                    state.not_before_ms = 0.0
                else:
                    self._needs_metadata = True
        if self._needs_metadata:
            self._needs_metadata = False
            self._request_metadata()

    def cut(self, state: PartitionState, epoch: int, end_offset: int) -> None:
        """The log ends at `end_offset` in the epoch of what was read last (-1: it has no such epoch): it was cut."""
        if state.fetched != state.position:
            # What was fetched ahead is nobody's yet; whether what was given out is still there, shows next.
            state.refetch()
            return
        where = state.position.offset
        log.warning("log cut below what was read partition=%s position=%d end=%d", state.partition, where, end_offset)
        if end_offset >= 0 and epoch >= 0 and not self._subscription.policy.is_none:
            state.move(Position(min(end_offset, state.position.offset), epoch))
        elif not self._subscription.go_on_without(state):
            partition = state.partition
            divergent = {partition: end_offset} if end_offset >= 0 else {}
            message = f"the log of {partition} was cut below what was read: position {where}, it ends at {end_offset}"
            self._buffer.add(state, Chunk.failed(state, LogTruncationError(message, {partition: where}, divergent)))

    def _keep(self, state: PartitionState, offset: int, data: Any) -> int:
        found = survey(data.records)
        if found.size_bytes == 0:
            self._buffer.add(state, Chunk.failed(state, _unreadable(state.partition, offset, data.records)))
            return 0
        aborted = [(each.producer_id, each.first_offset) for each in data.aborted_transactions or ()]
        records = data.records
        if len(records) < SMALL_FRAME_BYTES:
            # A view would keep all of a large receive buffer for it.
            records = memoryview(bytes(records))
        self._buffer.add(state, Chunk(state, offset, records, found, aborted))
        epoch = found.epoch if found.epoch >= 0 else state.fetched.epoch
        state.fetched = Position(max(found.next_offset, offset), epoch)
        return max(found.records, 0)

    def _refused(self, state: PartitionState, data: Any, node: Node, now_ms: float) -> None:
        code = data.error_code
        log.debug("partition not fetched partition=%s node='%s' code=%d", state.partition, node, code)
        leader = data.current_leader
        if leader.leader_id >= 0 and leader.leader_epoch >= 0:
            self._leaders[state.partition] = LeaderAndEpoch(leader.leader_id, leader.leader_epoch)
            self._moved.append(state)
        was_preferred = state.preferred_node is not None
        state.preferred_node = None
        if code in _ASK_ANEW or code in _TRY_AGAIN:
            self._needs_metadata |= code in _ASK_ANEW and state.partition not in self._leaders
            failures = self._failures[state.partition] = self._failures.get(state.partition, 0) + 1
            state.not_before_ms = now_ms + self._backoff.delay_ms(failures)
        elif code == ErrorCode.OFFSET_OUT_OF_RANGE:
            # A follower may not have as much as the leader: ask that first.
            if not was_preferred:
                self._out_of_range(state)
        else:
            error = error_of(code, f"{state.partition} cannot be fetched: {error_of(code)}")
            self._buffer.add(state, Chunk.failed(state, error))

    def _out_of_range(self, state: PartitionState) -> None:
        where = state.position.offset
        if state.fetched != state.position:
            state.refetch()
        elif self._subscription.go_on_without(state):
            log.info("position out of range, to be reset partition=%s position=%d", state.partition, where)
        else:
            message = f"{state.partition} has nothing at {where}, and auto.offset.reset says not where to go on"
            error = FetchOutOfRangeError(message, {state.partition: where})
            self._buffer.add(state, Chunk.failed(state, error))


def _unreadable(partition: TopicPartition, offset: int, records: memoryview) -> KafkaError:
    """Why not even one batch could be found."""
    try:
        read_header(records)
    except TruncatedBatchError:
        return FetchTooSmallError(f"the batch at {offset} of {partition} has more than {len(records)} bytes")
    except CorruptRecordsError as failure:
        reason = str(failure)
    else:
        reason = "it goes beyond the last offset that there can be"
    return CorruptBatchReadError(f"no batch at {offset} of {partition}: {reason}", partition, offset, offset + 1)
