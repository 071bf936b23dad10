"""The consumer: what its user calls. `core.py` is what it is made of."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from kavka.client.client_metrics import Metrics
from kavka.client.consumer.columns import RecordColumns
from kavka.client.consumer.consumer_offsets import ConsumerOffsets
from kavka.client.consumer.core import ConsumerCore, Host
from kavka.client.consumer.group.port import (
    CommitCallback,
    GroupMembershipOperation,
    GroupPort,
    Offsets,
    RebalanceListener,
    SubscriptionPattern,
)
from kavka.client.consumer.iteration import Iteration
from kavka.client.consumer.records import ConsumerRecord, ConsumerRecords
from kavka.client.coordinators import Coordinators
from kavka.client.errors import UsedAfterForkError
from kavka.client.interceptors import interceptors_of
from kavka.client.opening import retry_backoff
from kavka.client.serialization import close_quietly
from kavka.client.topic_partition import TopicPartition
from kavka.config.clients.consumer import consumer_settings

CLOSE_TIMEOUT_MS: Final = 30_000.0
_ITERATION_MS: Final = 60_000.0

T = TypeVar("T")


class Consumer(ConsumerOffsets):
    """Reads records, of partitions that are assigned by hand or by a group.

        from kavka.client import Consumer

        settings = {"bootstrap.servers": "localhost:9092", "auto.offset.reset": "earliest"}
        with Consumer(settings, group_id="counting") as consumer:
            consumer.subscribe(["visits"])
            for record in consumer.poll(timeout_ms=30_000):
                print(record.partition, record.offset, record.key, record.value)

    It is made of a mapping of Kafka's setting names, of keyword arguments with underscores in place of dots, or both;
    ConfigError says what is wrong with them. Nothing is connected before the first call that needs it.

    Threads: one at a time uses a consumer, another one meanwhile gets ConcurrentUseError; `wakeup` and `metrics` are
    for any thread. A thread of the consumer's own fetches ahead and sends heartbeats; listeners, interceptors,
    deserializers and callbacks run on the user's thread, within the call that caused them. Used after fork it raises.
    """

    def __init__(self, settings: Mapping[str, Any] | None = None, /, **keywords: Any) -> None:
        """Raises ConfigError."""
        checked = consumer_settings(settings, **keywords)
        self._interceptors: Final = interceptors_of(checked.interceptor_classes, checked.given)
        self._core = ConsumerCore(checked, _group_of)
        if self._interceptors is not None and self._core.group is not None:
            self._core.group.on_auto_committed = self._interceptors.on_commit
        self._is_closed = False
        self._iteration: Iteration | None = None

    # What to read

    def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Read these partitions and no others; no group shares them out. Those that were assigned before go on.

        Each begins where its group has committed, if `group.id` is given, or else where `auto.offset.reset` says. Of
        none it is `unsubscribe`. Raises ValueError while topics are subscribed to.
        """
        core = self._core
        with core.in_use:
            core.check()
            chosen = [TopicPartition(*partition) for partition in partitions]
            group = core.group
            if group is not None and group.is_subscribed:
                raise ValueError("topics are subscribed to: unsubscribe before partitions are assigned by hand")
            if group is not None and core.settings.enable_auto_commit and (consumed := self._consumed()):
                group.commit_async(consumed)
            core.metadata.want_only({partition.topic for partition in chosen})
            core.subscription.assign(chosen)

    def subscribe(
        self,
        topics: Collection[str] | str | re.Pattern[str] | SubscriptionPattern,
        listener: RebalanceListener | None = None,
    ) -> None:
        """Join the group of `group.id` at the next poll, and read the partitions of these topics that it gives.

        `topics`: names, a compiled regular expression that whole names are matched with, or a SubscriptionPattern that
        the broker matches (`group.protocol=consumer`). Replaces what was subscribed to before. Raises
        InvalidGroupIdError without `group.id`, ValueError while partitions are assigned by hand.
        """
        core = self._core
        with core.in_use:
            core.check()
            group = self._group()
            if not group.is_subscribed and core.subscription.partitions:
                raise ValueError("partitions are assigned by hand: unsubscribe before topics are subscribed to")
            if isinstance(topics, re.Pattern | SubscriptionPattern):
                group.subscribe_pattern(topics, listener)
            else:
                names = {topics} if isinstance(topics, str) else set(topics)
                if not names:
                    self.unsubscribe()
                    return
                if any(not name.strip() for name in names):
                    raise ValueError("a topic has no name")
                group.subscribe(names, listener)

    def unsubscribe(self) -> None:
        """Read nothing any more: leave the group, or forget what was assigned by hand.

        Raises what a listener raises.
        """
        core = self._core
        with core.in_use:
            core.check()
            if core.group is not None and core.group.is_subscribed:
                deadline_ms = core.deadline_ms(None)
                try:
                    core.waited(core.group.unsubscribe(), deadline_ms)
                finally:
                    core.metadata.want_only(())
                    core.subscription.assign(())
            else:
                core.metadata.want_only(())
                core.subscription.assign(())

    def subscription(self) -> frozenset[str]:
        """The topics that are subscribed to, as far as a pattern has found some."""
        group = self._core.group
        return group.subscription if group is not None and group.is_subscribed else frozenset()

    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that are read."""
        return self._core.subscription.partitions

    # Reading

    def poll(self, timeout_ms: float = 0) -> ConsumerRecords:
        """Up to `max.poll.records` records, as soon as there are any; none after `timeout_ms` without.

        Within it the group's rebalances go on, listeners and callbacks are called. Has to be called every
        `max.poll.interval.ms`, or the group gives the partitions to others. Raises WakeupError, InvalidOffsetError,
        RecordDeserializationError, CorruptBatchReadError, AuthorizationError, AuthenticationError; ValueError when
        there is nothing to read.
        """
        core = self._core
        most = core.settings.max_poll_records
        pieces = self._polled(timeout_ms, lambda: core.buffer.take(most))
        records = ConsumerRecords(pieces)
        if self._interceptors is not None and len(records):
            records = self._interceptors.on_consume(records)
        return records

    def poll_columns(self, timeout_ms: float = 0, max_records: int = 65_536) -> list[RecordColumns]:
        """As `poll`, but columns of numpy arrays: many times quicker where single records are of no interest.

        Up to `max_records` records, whatever `max.poll.records` says. Deserializers and interceptors are not called.
        """
        return list(self._polled(timeout_ms, lambda: self._core.buffer.take_columns(max_records)))

    def _polled(self, timeout_ms: float, take: Callable[[], Sequence[T]]) -> Sequence[T]:
        core = self._core
        with core.in_use:
            now_ms = core.now_ms()
            deadline_ms = now_ms + timeout_ms
            core.metrics.poll_began(now_ms)
            core.thread.start()
            group = core.group
            core.raise_wakeup()
            if group is None or not group.is_subscribed:
                self._check_assigned()
            try:
                while True:
                    core.check()
                    if group is not None:
                        group.poll_began(core.now_ms())
                    core.raise_metadata_errors()
                    taken = take()
                    now_ms = core.now_ms()
                    if taken or now_ms >= deadline_ms:
                        break
                    core.rest(deadline_ms if group is None else min(deadline_ms, group.poll_waits()))
            finally:
                # Also after a wakeup: who does not poll again is to lose its partitions.
                core.metrics.poll_ended(now_ms)
                if group is not None:
                    group.poll_ended(core.now_ms())
            return taken

    def _check_assigned(self) -> None:
        if not self._core.subscription.partitions:
            raise ValueError("nothing to read: subscribe to topics, or assign partitions, before poll")

    def __iter__(self) -> Iterator[ConsumerRecord]:
        """Records one by one, without end: each batch of them by a `poll`. Ends when the consumer is closed.

        What the loop was not given yet does not count as read: commits without offsets leave it out, and after a
        loop that ends early, or `close`, it comes again. `position` is behind the whole batch meanwhile.
        """
        while not self._is_closed:
            self._iteration = iteration = Iteration(self.poll(_ITERATION_MS), self._core.subscription)
            self._core.subscription.left = iteration.left
            try:
                yield from iteration.rest
            finally:
                iteration.give_back()

    def wakeup(self) -> None:
        """Have the call that waits now, or the next one that would, raise WakeupError. Any thread."""
        self._core.wakeup()

    def enforce_rebalance(self, reason: str | None = None) -> None:
        """Have the group share out its partitions anew, from the next poll on. Raises InvalidGroupIdError."""
        with self._core.in_use:
            self._core.check()
            self._group().enforce_rebalance(reason)

    @property
    def metrics(self) -> Metrics:
        """Numbers by the names that Kafka's consumer has for them: `metrics["records-lag-max"]`. Any thread."""
        return self._core.opened.metrics

    # The end

    def close(
        self,
        timeout_ms: float = CLOSE_TIMEOUT_MS,
        operation: GroupMembershipOperation = GroupMembershipOperation.DEFAULT,
    ) -> None:
        """Commit what was read, if that is automatic, leave the group, and close all connections. Again is allowed.

        Takes `timeout_ms` at most. Raises what a listener or callback raises, once all is closed.
        """
        core = self._core
        with core.in_use:
            if self._is_closed:
                return
            self._is_closed = True
            deadline_ms = core.now_ms() + timeout_ms
            if self._iteration is not None:
                self._iteration.give_back()
            try:
                self._leave(operation, deadline_ms)
            finally:
                if self._interceptors is not None:
                    self._interceptors.close()
                close_quietly(core.key_deserializer)
                close_quietly(core.value_deserializer)

    def _leave(self, operation: GroupMembershipOperation, deadline_ms: float) -> None:
        core = self._core
        try:
            if core.group is not None and core.thread.failure is None:
                core.group.close(operation, deadline_ms)
        finally:
            core.thread.close(max(deadline_ms - core.now_ms(), 0.0))
            if core.group is not None and not isinstance(core.thread.failure, UsedAfterForkError):
                # Commits that were not answered in time have failed now: their callbacks hear that.
                core.group.run_callbacks()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _committed(self, offsets: Offsets) -> None:
        if self._interceptors is not None:
            self._interceptors.on_commit(offsets)

    def _told(self, callback: CommitCallback | None) -> CommitCallback | None:
        interceptors = self._interceptors
        if interceptors is None:
            return callback

        def told(offsets: Offsets, error: Exception | None) -> None:
            if error is None:
                interceptors.on_commit(offsets)
            if callback is not None:
                callback(offsets, error)

        return told


def _group_of(core: ConsumerCore, host: Host) -> GroupPort | None:
    """The group of `group.id`; None without one."""
    settings = core.settings
    if settings.group_id is None:
        return None
    from kavka.client.consumer.group.group import Group
    from kavka.client.consumer.group.group_settings import group_settings

    network, metadata, _ = core.opened
    coordinators = Coordinators(network, metadata, retry_backoff(settings))
    return Group(group_settings(settings), network, metadata, coordinators, core.member_metrics, host)
