"""Offsets by timestamp, asked of the leaders (ListOffsets): for resets, and for who asks the consumer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from kavka.client.api_errors import (
    InvalidMetadataError,
    KafkaError,
    KafkaTimeoutError,
    RetriableError,
    UnknownServerError,
    error_of,
)
from kavka.client.consumer.fetcher import MetadataView
from kavka.client.network_port import NetworkPort
from kavka.client.node import Node
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.errors import EncodeError, ErrorCode
from kavka.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

_CONSUMER: Final = -1
_NEWEST: Final = 11
_INFINITY: Final = float("inf")
_LEAST_VERSION: Final = {-3: 7, -4: 8, -5: 9, -6: 11}
"""By timestamps with a meaning of their own."""

log = logging.getLogger(__name__)


class OffsetAndTimestamp(NamedTuple):
    """A record's place: the first whose timestamp is at or after the one that was asked for.

    for partition, found in consumer.offsets_for_times({TopicPartition("visits", 0): 0}).items():
        print(partition, "none" if found is None else found.offset)
    """

    offset: int
    timestamp_ms: int
    """-1 where an end was asked for."""
    leader_epoch: int | None = None


Found = Mapping[TopicPartition, OffsetAndTimestamp | None]
"""None: there is no such record."""


class Lookup:
    """One question on its way. Threads: the client's thread."""

    def __init__(
        self,
        timestamps: Mapping[TopicPartition, int],
        deadline_ms: float,
        on_done: Callable[[Found], None],
        on_failed: Callable[[KafkaError], None],
    ) -> None:
        self.waiting: Final = dict(timestamps)
        """Not asked for, or to be asked for again."""
        self.out: Final[dict[TopicPartition, int]] = {}
        self.found: Final[dict[TopicPartition, OffsetAndTimestamp | None]] = {}
        self.deadline_ms: Final = deadline_ms
        self.not_before_ms = 0.0
        self.is_over = False
        self.last_error: KafkaError | None = None
        self._on_done: Final = on_done
        self._on_failed: Final = on_failed

    def ask_again(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            if partition in self.out:
                self.waiting[partition] = self.out.pop(partition)

    def finish_if_done(self) -> None:
        if not self.is_over and not self.waiting and not self.out:
            self.is_over = True
            self._on_done(self.found)

    def fail(self, error: KafkaError) -> None:
        if not self.is_over:
            self.is_over = True
            self._on_failed(error)


class OffsetLookups:
    """Questions on their way, each until its deadline. Threads: the client's thread alone."""

    def __init__(
        self,
        network: NetworkPort,
        metadata: MetadataView,
        *,
        is_read_committed: bool,
        retry_backoff_ms: float,
        now_ms: Callable[[], float],
    ) -> None:
        self._network: Final = network
        self._metadata: Final = metadata
        self._isolation: Final = int(is_read_committed)
        self._retry_backoff_ms: Final = retry_backoff_ms
        self._now_ms: Final = now_ms
        self._lookups: list[Lookup] = []

    def ask(self, lookup: Lookup) -> None:
        """Have it asked by the next `work`."""
        self._lookups.append(lookup)

    def closed(self, error: KafkaError) -> None:
        lookups, self._lookups = self._lookups, []
        for lookup in lookups:
            lookup.fail(error)

    def work(self, now_ms: float) -> float:
        """Send what can be sent; how long until there is something to do."""
        wait_ms = _INFINITY
        for lookup in self._lookups:
            lookup.finish_if_done()
            if not lookup.is_over and now_ms >= lookup.deadline_ms:
                late = KafkaTimeoutError("offsets could not be looked up in time")
                late.__cause__ = lookup.last_error
                lookup.fail(late)
            if lookup.is_over:
                continue
            wait_ms = min(wait_ms, lookup.deadline_ms - now_ms)
            if lookup.not_before_ms > now_ms:
                wait_ms = min(wait_ms, lookup.not_before_ms - now_ms)
            elif lookup.waiting:
                wait_ms = min(wait_ms, self._send(lookup, now_ms))
        self._lookups = [lookup for lookup in self._lookups if not lookup.is_over]
        return wait_ms

    def _send(self, lookup: Lookup, now_ms: float) -> float:
        cluster = self._metadata.cluster
        by_node: dict[Node, dict[TopicPartition, int]] = {}
        wait_ms = _INFINITY
        for partition, timestamp in lookup.waiting.items():
            leader = cluster.leader(partition)
            if leader is None:
                self._metadata.request_update()
                topic = cluster.topics.get(partition.topic)
                if topic is not None and topic.error_code:
                    error = error_of(topic.error_code, f"{partition.topic}: {error_of(topic.error_code)}")
                    lookup.last_error = error
                    if not isinstance(error, RetriableError):
                        lookup.fail(error)
                        return 0.0
                wait_ms = min(wait_ms, self._retry_backoff_ms)
                continue
            by_node.setdefault(leader, {})[partition] = timestamp
        for node, timestamps in by_node.items():
            if not self._network.ready(node):
                if self._network.failures(node):
                    self._metadata.request_update()
                wait_ms = min(wait_ms, self._network.delay_ms(node))
            else:
                self._send_to(node, lookup, timestamps)
        return wait_ms

    def _send_to(self, node: Node, lookup: Lookup, timestamps: Mapping[TopicPartition, int]) -> None:
        cluster = self._metadata.cluster
        topics: dict[str, ListOffsetsTopic] = {}
        for (name, number), timestamp in timestamps.items():
            topic = topics.setdefault(name, ListOffsetsTopic(name=name, partitions=[]))
            info = cluster.partition(TopicPartition(name, number))
            epoch = info.leader_epoch if info is not None else -1
            topic.partitions.append(
                ListOffsetsPartition(partition_index=number, current_leader_epoch=epoch, timestamp=timestamp)
            )
        oldest = max([_LEAST_VERSION.get(timestamp, 0) for timestamp in timestamps.values()])
        oldest = max(oldest, 2 if self._isolation else 1)
        left_ms = max(lookup.deadline_ms - self._now_ms(), 1.0)
        request = ListOffsetsRequest(
            replica_id=_CONSUMER,
            isolation_level=self._isolation,
            topics=list(topics.values()),
            timeout_ms=int(min(left_ms, 2**31 - 1)),
        )
        for partition in timestamps:
            lookup.out[partition] = lookup.waiting.pop(partition)
        try:
            self._network.send(
                node,
                request,
                lambda answer: self._answered(lookup, list(timestamps), answer),
                versions=(oldest, _NEWEST),
            )
        except (KafkaError, EncodeError) as error:
            lookup.fail(error if isinstance(error, KafkaError) else UnknownServerError(str(error)))

    def _answered(self, lookup: Lookup, asked: list[TopicPartition], answer: Any) -> None:
        if isinstance(answer, KafkaError):
            if isinstance(answer, RetriableError):
                self._again(lookup, asked, answer)
            else:
                lookup.fail(answer)
            return
        refused: list[TopicPartition] = []
        error: KafkaError | None = None
        for topic in answer.topics:
            for row in topic.partitions:
                partition = TopicPartition(topic.name, row.partition_index)
                if partition not in lookup.out:
                    continue
                if row.error_code == ErrorCode.NONE:
                    del lookup.out[partition]
                    epoch = row.leader_epoch if row.leader_epoch >= 0 else None
                    place = OffsetAndTimestamp(row.offset, row.timestamp, epoch)
                    lookup.found[partition] = place if row.offset >= 0 else None
                elif row.error_code == ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT:
                    # Formats without timestamps have no answer.
                    del lookup.out[partition]
                    lookup.found[partition] = None
                else:
                    error = error_of(row.error_code, f"{partition}: {error_of(row.error_code)}")
                    refused.append(partition)
                    if not isinstance(error, RetriableError):
                        lookup.fail(error)
                        return
        left_out = [partition for partition in asked if partition in lookup.out]
        if left_out:
            self._again(lookup, left_out, error)
        lookup.finish_if_done()

    def _again(self, lookup: Lookup, partitions: list[TopicPartition], error: KafkaError | None) -> None:
        log.debug("offsets are asked for again partitions=%s error=%r", partitions, error)
        lookup.last_error = error
        lookup.ask_again(partitions)
        lookup.not_before_ms = self._now_ms() + self._retry_backoff_ms
        if error is None or isinstance(error, InvalidMetadataError):
            self._metadata.request_update()
