"""A consumer's calls about offsets: where it reads, where partitions begin and end, what is committed."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import Future
from typing import Any, Final

from kavka.client.api_errors import InvalidGroupIdError, KafkaTimeoutError, error_of
from kavka.client.cluster import PartitionInfo, TopicInfo
from kavka.client.consumer.core import ConsumerCore
from kavka.client.consumer.group.port import (
    CommitCallback,
    ConsumerGroupMetadata,
    GroupPort,
    OffsetAndMetadata,
    Offsets,
)
from kavka.client.consumer.offset_lookup import Found, Lookup, OffsetAndTimestamp
from kavka.client.consumer.positions import (
    EARLIEST,
    LAST_EPOCH,
    LAST_OFFSET,
    LATEST,
    Phase,
    Position,
    ResetPolicy,
)
from kavka.client.errors import ClientError
from kavka.client.kafka_error import RetriableError
from kavka.client.metadata_update import next_cluster
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

_MISSING: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})


class ConsumerOffsets:
    """The part of `Consumer` that is about offsets. Times without a limit of their own: `default.api.timeout.ms`."""

    _core: ConsumerCore

    # Where it reads

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Read on from this offset. With an OffsetAndMetadata's leader epoch it is checked that the log has it.

        Raises ValueError for a partition that is not assigned, or an offset or epoch that there cannot be.
        """
        core = self._core
        with core.in_use:
            core.check()
            number, epoch = (offset, None) if isinstance(offset, int) else (offset.offset, offset.leader_epoch)
            if not 0 <= number <= LAST_OFFSET:
                raise ValueError(f"there is no offset {number}")
            if epoch is not None and not 0 <= epoch <= LAST_EPOCH:
                raise ValueError(f"there is no leader epoch {epoch}")
            core.subscription.seek(partition, Position(number, epoch))

    def seek_to_beginning(self, partitions: Iterable[TopicPartition] = ()) -> None:
        """Read on from the first offset there is; looked up by the next poll. None: of all assigned partitions."""
        self._reset(partitions, ResetPolicy(EARLIEST))

    def seek_to_end(self, partitions: Iterable[TopicPartition] = ()) -> None:
        """Read on from the end (with `read_committed`: the last stable offset). None: of all assigned partitions."""
        self._reset(partitions, ResetPolicy(LATEST))

    def seek_to_time(
        self, times_ms: Mapping[TopicPartition, int], timeout_ms: float | None = None
    ) -> Mapping[TopicPartition, OffsetAndTimestamp | None]:
        """Read on from the first record at or after a time; where there is none, from the end. What was found."""
        with self._core.in_use:
            found = self.offsets_for_times(times_ms, timeout_ms)
            for partition, place in found.items():
                if place is None:
                    self._reset([partition], ResetPolicy(LATEST))
                else:
                    self.seek(partition, place.offset)
            return found

    def _reset(self, partitions: Iterable[TopicPartition], to: ResetPolicy) -> None:
        core = self._core
        with core.in_use:
            core.check()
            core.subscription.reset(list(partitions) or core.subscription.partitions, to)

    def position(self, partition: TopicPartition, timeout_ms: float | None = None) -> int:
        """The offset of the next record that `poll` gives out; found first, if there is none yet.

        Raises ValueError for a partition that is not assigned, InvalidOffsetError, KafkaTimeoutError.
        """
        core = self._core
        with core.in_use:
            core.check()
            deadline_ms = core.deadline_ms(timeout_ms)
            while True:
                with core.subscription.lock:
                    state = core.subscription.state(partition)
                    if state.has_position:
                        return state.position.offset
                    if state.phase is Phase.HELD:
                        # A listener that is being told of it asks: it would wait for itself.
                        core.subscription.release([partition])
                core.thread.start()
                core.raise_metadata_errors()
                core.buffer.raise_failure(partition)
                if core.now_ms() >= deadline_ms:
                    raise KafkaTimeoutError(f"the position of {partition} is not known in time")
                core.rest(deadline_ms)

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Give out no records of these; what is fetched of them is kept. Raises ValueError for one not assigned."""
        with self._core.in_use:
            self._core.check()
            self._core.subscription.pause(list(partitions), is_paused=True)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Undo `pause`. Raises ValueError for a partition that is not assigned."""
        with self._core.in_use:
            self._core.check()
            self._core.subscription.pause(list(partitions), is_paused=False)

    def paused(self) -> frozenset[TopicPartition]:
        """The partitions that were paused."""
        return self._core.subscription.paused()

    def current_lag(self, partition: TopicPartition) -> int | None:
        """How many offsets there are from the position to the end, as of the last fetch; None: not known yet.

        The end is the high watermark, or with `read_committed` the last stable offset. Raises ValueError.
        """
        core = self._core
        with core.in_use, core.subscription.lock:
            state = core.subscription.state(partition)
            is_committed = core.settings.isolation_level == "read_committed"
            end = state.stable_offset if is_committed else state.end_offset
            return None if end is None or not state.has_position else max(end - state.position.offset, 0)

    def current_lead(self, partition: TopicPartition) -> int | None:
        """How many offsets there are from the log's start to the position, as of the last fetch. Raises ValueError."""
        core = self._core
        with core.in_use, core.subscription.lock:
            state = core.subscription.state(partition)
            start = state.log_start_offset
            return None if start is None or not state.has_position else state.position.offset - start

    # Where partitions begin and end

    def offsets_for_times(
        self, times_ms: Mapping[TopicPartition, int], timeout_ms: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record of each partition at or after a time, in ms since 1970; None where there is none.

        The partitions need not be assigned. Raises ValueError for times that no record can have, KafkaTimeoutError.
        """
        for partition, time_ms in times_ms.items():
            if not 0 <= time_ms <= _LAST_MS:
                raise ValueError(f"there is no such time: {time_ms} for {partition}")
        return dict(self._looked_up(times_ms, timeout_ms))

    def beginning_offsets(
        self, partitions: Collection[TopicPartition], timeout_ms: float | None = None
    ) -> dict[TopicPartition, int]:
        """The first offset of each. Raises KafkaTimeoutError."""
        return self._ends(partitions, EARLIEST, timeout_ms)

    def end_offsets(
        self, partitions: Collection[TopicPartition], timeout_ms: float | None = None
    ) -> dict[TopicPartition, int]:
        """The offset after each one's last record (with `read_committed`: the last stable one). KafkaTimeoutError."""
        return self._ends(partitions, LATEST, timeout_ms)

    def _ends(
        self, partitions: Collection[TopicPartition], timestamp: int, timeout_ms: float | None
    ) -> dict[TopicPartition, int]:
        found = self._looked_up(dict.fromkeys(partitions, timestamp), timeout_ms)
        return {partition: place.offset for partition, place in found.items() if place is not None}

    def _looked_up(self, timestamps: Mapping[TopicPartition, int], timeout_ms: float | None) -> Found:
        core = self._core
        with core.in_use:
            core.check()
            if not timestamps:
                return {}
            deadline_ms = core.deadline_ms(timeout_ms)
            done: Future[Found] = Future()
            lookup = Lookup(timestamps, deadline_ms, done.set_result, done.set_exception)
            with core.metadata.wanting({partition.topic for partition in timestamps}):
                core.thread.submit(lambda: core.lookups.ask(lookup))
                try:
                    return core.result_of(done, deadline_ms + _GRACE_MS, "looking up offsets")
                finally:
                    if not done.done() and core.thread.failure is None:
                        core.thread.submit(lambda: lookup.fail(ClientError("nobody waits for these offsets any more")))

    # Topics

    def partitions_for(self, topic: str, timeout_ms: float | None = None) -> Mapping[int, PartitionInfo]:
        """The topic's partitions by their numbers; none if there is no such topic. Raises KafkaTimeoutError."""
        with self._core.in_use:
            known = self._core.metadata.cluster.topics.get(topic)
            if known is not None and not known.error_code and known.partitions:
                return known.partitions
            found = self._topics([MetadataRequestTopic(name=topic)], timeout_ms).get(topic)
            return found.partitions if found is not None else {}

    def list_topics(self, timeout_ms: float | None = None) -> dict[str, TopicInfo]:
        """All topics that the client may see. Raises KafkaTimeoutError."""
        with self._core.in_use:
            return dict(self._topics(None, timeout_ms))

    def _topics(self, topics: list[MetadataRequestTopic] | None, timeout_ms: float | None) -> Mapping[str, TopicInfo]:
        core = self._core
        core.check()
        deadline_ms = core.deadline_ms(timeout_ms)
        creates = core.settings.allow_auto_create_topics and topics is not None
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=creates)
        while True:
            answer: Any = core.ask(
                lambda done: core.questions.ask(request, done, deadline_ms),
                deadline_ms + _GRACE_MS,
                "asking for topics",
            )
            found = next_cluster(core.metadata.cluster, answer, 0, ()).cluster.topics
            again = _topics_error(found, raises=topics is not None)
            if again is None:
                return {name: topic for name, topic in found.items() if not topic.error_code}
            if core.now_ms() >= deadline_ms:
                raise KafkaTimeoutError("asking for topics: not done in time") from again
            core.rest(min(core.now_ms() + core.settings.retry_backoff_ms, deadline_ms))

    # What is committed

    def commit_sync(self, offsets: Offsets | None = None, timeout_ms: float | None = None) -> None:
        """Store offsets for the group: these, or the positions after all that `poll` gave out. Waits for it.

        Raises CommitFailedError when the group has given the partitions to others, InvalidGroupIdError without
        `group.id`, KafkaTimeoutError, WakeupError.
        """
        core = self._core
        with core.in_use:
            core.check()
            group = self._group()
            deadline_ms = core.deadline_ms(timeout_ms)
            what = self._consumed() if offsets is None else offsets
            began_ns = time.perf_counter_ns()
            done = group.commit(what, deadline_ms)
            try:
                core.result_of(done, deadline_ms + _GRACE_MS, "committing offsets")
            finally:
                core.metrics.commit_sync_ns += time.perf_counter_ns() - began_ns
                group.run_callbacks()
            self._committed(what)

    def commit_async(self, offsets: Offsets | None = None, callback: CommitCallback | None = None) -> None:
        """Store offsets for the group without waiting. `callback(offsets, error)` is called by a later call.

        It is called by `poll`, `commit_sync` or `close`, on the thread that calls these; in the order of the commits.
        """
        core = self._core
        with core.in_use:
            core.check()
            what = self._consumed() if offsets is None else offsets
            self._group().commit_async(what, self._told(callback))

    def committed(
        self, partitions: Collection[TopicPartition], timeout_ms: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What is stored for the group; None where nothing is. Raises InvalidGroupIdError, KafkaTimeoutError."""
        core = self._core
        with core.in_use:
            core.check()
            deadline_ms = core.deadline_ms(timeout_ms)
            began_ns = time.perf_counter_ns()
            done = self._group().offsets_of(partitions, deadline_ms)
            try:
                found = core.result_of(done, deadline_ms + _GRACE_MS, "looking up committed offsets")
            finally:
                core.metrics.committed_ns += time.perf_counter_ns() - began_ns
            return {partition: found.get(partition) for partition in partitions}

    def group_metadata(self) -> ConsumerGroupMetadata:
        """What `Producer.send_offsets_to_transaction` needs to know. Raises InvalidGroupIdError without a group."""
        return self._group().group_metadata()

    def _group(self) -> GroupPort:
        group = self._core.group
        if group is None:
            raise InvalidGroupIdError("group.id is not set: a consumer without a group can only be assigned to")
        return group

    def _consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """What a commit without offsets stores."""
        return self._core.subscription.consumed()

    def _committed(self, offsets: Offsets) -> None:
        """Something was committed: interceptors may want to know."""

    def _told(self, callback: CommitCallback | None) -> CommitCallback | None:
        return callback


_LAST_MS: Final = 2**63 - 1
_GRACE_MS: Final = 1_000.0
"""The client's thread keeps the deadline; this is for it to say so."""


def _topics_error(found: Mapping[str, TopicInfo], *, raises: bool) -> Exception | None:
    """What asking again may mend; what it will not is raised. A topic that is not there is no error."""
    again: Exception | None = None
    for name, topic in found.items():
        if not topic.error_code or topic.error_code in _MISSING:
            continue
        error: Any = error_of(topic.error_code, f"{name}: {error_of(topic.error_code)}")
        if isinstance(error, RetriableError):
            again = error
        elif raises:
            raise error
    return again
