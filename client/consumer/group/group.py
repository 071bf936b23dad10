"""A consumer's group, put together: what the facade's polling thread calls, and what the client's thread runs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from concurrent.futures import Future
from functools import partial
from re import Pattern
from typing import Final

from kavka.client.cluster import Cluster
from kavka.client.consumer.group.auto_commit import AutoCommit
from kavka.client.consumer.group.classic import ClassicMembership
from kavka.client.consumer.group.commits import Commit, Commits, checked, checked_partition, topic_ids, uncancellable
from kavka.client.consumer.group.consumer_member import ConsumerMembership
from kavka.client.consumer.group.coordinator import Coordinator
from kavka.client.consumer.group.group_metrics import GroupMetrics
from kavka.client.consumer.group.group_settings import GroupSettings
from kavka.client.consumer.group.leading import Leading
from kavka.client.consumer.group.membership import Membership
from kavka.client.consumer.group.poll_clock import PollClock
from kavka.client.consumer.group.port import (
    CommitCallback,
    ConsumerGroupMetadata,
    GroupHost,
    GroupMembershipOperation,
    OffsetAndMetadata,
    Offsets,
    RebalanceListener,
    SubscriptionPattern,
)
from kavka.client.consumer.group.rebalancing import Rebalancing
from kavka.client.consumer.group.stored_offsets import StoredOffsets
from kavka.client.consumer.group.subscription import Subscription
from kavka.client.coordinators import Coordinators
from kavka.client.metadata import Metadata
from kavka.client.network_port import NetworkPort
from kavka.client.topic_partition import TopicPartition
from kavka.config.errors import ConfigError


class Group:
    """See `GroupPort`."""

    def __init__(
        self,
        settings: GroupSettings,
        network: NetworkPort,
        metadata: Metadata,
        coordinators: Coordinators,
        metrics: GroupMetrics,
        host: GroupHost,
    ) -> None:
        """`coordinators` are the group's own: `work` lets them look."""
        self._settings: Final = settings
        self._metadata: Final = metadata
        self._host: Final = host
        self._clock: Final = PollClock(settings.max_poll_interval_ms)
        self._coordinator: Final = Coordinator(network, coordinators, settings.group_id, settings.retry_backoff_ms)
        self._membership: Final = self._new_membership(metadata, metrics)
        self._commits: Final = Commits(
            settings,
            self._coordinator,
            self._membership,
            metrics,
            metadata,
            owned_since=lambda: self._rebalancing.owned_since,
            now_ms=host.now_ms,
        )
        self._stored: Final = StoredOffsets(settings, self._coordinator, self._membership, now_ms=host.now_ms)
        self._subscription: Final = Subscription(metadata, excludes_internal=settings.exclude_internal_topics)
        self._auto_commit: Final = AutoCommit(
            settings,
            host.assignments,
            make=self._commit_of,
            add=lambda commit: self._add(commit, self._auto_committed),
            now_ms=host.now_ms(),
        )
        self._leading: Final = Leading(settings, metadata, self._subscription, host)
        self._rebalancing: Final = Rebalancing(
            settings, self._membership, self._subscription, self._auto_commit, metrics, self._leading, host
        )
        self.on_auto_committed: Callable[[Offsets], None] | None = None
        self._callbacks: Final[deque[tuple[Commit, CommitCallback | None]]] = deque()
        """Commits in their order, the front of which are called back for as they are done."""
        self._is_subscribed = False
        self._is_changed = False
        """What is subscribed to is not told to the membership yet: that, and so connecting, begins with a poll."""
        self._is_told = False
        metadata.listeners.append(self._metadata_changed)

    # What the facade calls for its user

    def subscribe(self, topics: Collection[str], listener: RebalanceListener | None = None) -> None:
        """See `GroupPort`."""
        if not topics:
            self.unsubscribe()
            return
        has_changed = not self._is_subscribed or self._subscription.topics != frozenset(topics)
        if has_changed or self._subscription.is_by_pattern:
            self._subscription.choose(topics)
            self._is_changed = True
        self._restrict()
        self._subscribe(listener)

    def subscribe_pattern(
        self, pattern: Pattern[str] | SubscriptionPattern, listener: RebalanceListener | None = None
    ) -> None:
        """See `GroupPort`. Raises ConfigError for a SubscriptionPattern in a classic group."""
        is_brokers = isinstance(pattern, SubscriptionPattern)
        if is_brokers and not self._settings.uses_consumer_protocol:
            raise ConfigError("group.protocol", "classic", "a SubscriptionPattern needs group.protocol=consumer")
        self._subscription.match(pattern)
        self._is_changed = True
        self._restrict()
        self._subscribe(listener)

    def unsubscribe(self) -> Future[None]:
        """See `GroupPort`."""
        done: Future[None] = uncancellable()
        if not self._is_subscribed:
            done.set_result(None)
            return done
        self._leave(GroupMembershipOperation.DEFAULT, done)
        self._raise_errors()
        return done

    @property
    def subscription(self) -> frozenset[str]:
        """See `GroupPort`."""
        return self._subscription.topics

    @property
    def is_subscribed(self) -> bool:
        """See `GroupPort`."""
        return self._is_subscribed

    def commit(self, offsets: Offsets, deadline_ms: float) -> Future[None]:
        """See `GroupPort`."""
        commit = self._commit_of(checked(offsets), deadline_ms)
        self._add(commit)
        return commit.done

    def commit_async(self, offsets: Offsets, callback: CommitCallback | None = None) -> None:
        """See `GroupPort`."""
        commit = self._commit_of(checked(offsets), None)
        self._add(commit, callback)

    def offsets_of(
        self, partitions: Collection[TopicPartition], deadline_ms: float
    ) -> Future[dict[TopicPartition, OffsetAndMetadata]]:
        """See `GroupPort`."""
        done: Future[dict[TopicPartition, OffsetAndMetadata]] = uncancellable()
        asked = tuple(map(checked_partition, partitions))
        self._host.submit(partial(self._stored.ask, asked, deadline_ms, done))
        return done

    def group_metadata(self) -> ConsumerGroupMetadata:
        """See `GroupPort`."""
        identity = self._rebalancing.told
        if self._settings.uses_consumer_protocol and identity.generation > 0:
            # Epochs go on while the assignment stays as it is.
            identity = self._membership.identity
        return ConsumerGroupMetadata(self._settings.group_id, *identity)

    def enforce_rebalance(self, reason: str | None = None) -> None:
        """See `GroupPort`."""
        if self._is_subscribed:
            self._host.submit(partial(self._membership.rejoin, reason or "the consumer enforces it"))

    def close(self, operation: GroupMembershipOperation, deadline_ms: float) -> None:
        """See `GroupPort`."""
        waiting = self._auto_commit.before_leaving(deadline_ms)
        if waiting is not None:
            self._host.wait(waiting, deadline_ms)
        if self._is_subscribed:
            if operation is GroupMembershipOperation.DEFAULT and not self._settings.leave_on_close:
                operation = GroupMembershipOperation.REMAIN_IN_GROUP
            done: Future[None] = uncancellable()
            self._leave(operation, done)
            self._host.wait(done, deadline_ms)
        for commit, _ in list(self._callbacks):
            self._host.wait(commit.done, deadline_ms)
        self.run_callbacks()
        self._raise_errors()

    # What the facade calls of itself

    def poll_began(self, now_ms: float) -> None:
        """See `GroupPort`."""
        self._clock.began(now_ms)
        if self._is_subscribed:
            membership = self._membership
            if self._subscription.look_up() or self._is_changed:
                self._restrict()
                self._tell_topics()
            if membership.awaits_poll and self._is_told:
                self._host.submit(membership.polled)
            if self._leading.has_changed():
                self.enforce_rebalance("the group's topics have changed")
            self._rebalancing.go_on()
        if self._auto_commit.is_enabled:
            self._auto_commit.poll(now_ms)
        if self._callbacks:
            self.run_callbacks()
        self._raise_errors()

    def poll_waits(self) -> float:
        """See `GroupPort`."""
        self._clock.waits()
        return self._auto_commit.due_ms

    def poll_ended(self, now_ms: float) -> None:
        """See `GroupPort`."""
        self._clock.ended(now_ms)

    def run_callbacks(self) -> None:
        """See `GroupPort`."""
        raised: Exception | None = None
        while self._callbacks and self._callbacks[0][0].done.done():
            commit, callback = self._callbacks.popleft()
            error = commit.done.exception()
            try:
                if callback is not None:
                    callback(commit.offsets, error if isinstance(error, Exception) else None)
            except Exception as failure:  # noqa: BLE001  # the user's, raised below
                raised = raised or failure
        if raised is not None:
            raise raised

    # What the client's thread calls

    def work(self, now_ms: float) -> float:
        """See `GroupPort`."""
        wait_ms = min(self._membership.work(now_ms), self._commits.work(now_ms), self._stored.work(now_ms))
        return max(min(wait_ms, self._coordinator.work(now_ms)), 0.0)

    def closed(self) -> None:
        """See `GroupPort`."""
        for part in (self._membership, self._commits, self._stored):
            part.closed()

    def _new_membership(self, metadata: Metadata, metrics: GroupMetrics) -> Membership:
        settings, host = self._settings, self._host
        if settings.uses_consumer_protocol:
            return ConsumerMembership(
                settings,
                self._coordinator,
                self._clock,
                metrics,
                metadata=metadata,
                now_ms=host.now_ms,
                on_news=host.on_news,
            )
        return ClassicMembership(
            settings, self._coordinator, self._clock, metrics, now_ms=host.now_ms, on_news=host.on_news
        )

    def _subscribe(self, listener: RebalanceListener | None) -> None:
        self._rebalancing.listener = listener if listener is not None else RebalanceListener()
        self._is_subscribed = True

    def _restrict(self) -> None:
        """What the broker matches, and what a pattern has not found yet, cannot be told from what is not wanted."""
        subscription = self._subscription
        is_known = subscription.is_known and subscription.broker_pattern is None
        self._host.assignments.restrict(subscription.topics if is_known else None)

    def _tell_topics(self) -> None:
        self._is_changed = False
        subscription = self._subscription
        if not subscription.is_known:
            # The thread has to run to get the metadata.
            self._host.submit(_nothing)
            return
        self._is_told = True
        self._host.submit(partial(self._membership.subscribe, subscription.topics, subscription.broker_pattern))

    def _leave(self, operation: GroupMembershipOperation, done: Future[None]) -> None:
        self._subscription.clear()
        self._is_subscribed = self._is_changed = False
        if not self._is_told:
            self._host.assignments.restrict(None)
            done.set_result(None)
            return
        self._is_told = False
        self._rebalancing.give_up()
        self._host.assignments.restrict(None)
        self._leading.stop()
        done.add_done_callback(self._news)
        self._host.submit(partial(self._membership.leave, operation, done))

    def _commit_of(self, offsets: Offsets, deadline_ms: float | None) -> Commit:
        owned = self._rebalancing.owned_since
        owned_since = {each: owned.get(each) for each in offsets} if self._is_subscribed else None
        return Commit(offsets, deadline_ms, owned_since, topic_ids(self._metadata.cluster, offsets))

    def _add(self, commit: Commit, callback: CommitCallback | None = None) -> None:
        commit.done.add_done_callback(self._news)
        # First of all: where that raises, nobody ever ends the commit, and later ones' callbacks would wait behind it.
        self._host.submit(partial(self._commits.add, commit))
        self._callbacks.append((commit, callback))

    def _auto_committed(self, offsets: Offsets, error: Exception | None) -> None:
        if error is None and self.on_auto_committed is not None:
            self.on_auto_committed(offsets)

    def _news(self, _done: Callable[..., object] | Future[None]) -> None:
        self._host.on_news()

    def _metadata_changed(self, _cluster: Cluster) -> None:
        self._membership.metadata_changed()
        self._host.on_news()

    def _raise_errors(self) -> None:
        errors = self._rebalancing.errors
        if errors:
            first, *_ = errors
            errors.clear()
            raise first
        membership = self._membership
        error = membership.error
        if error is not None and self._is_subscribed:
            if not membership.is_dead:
                membership.error = None
            raise error


def _nothing() -> None:
    """To be submitted where the thread just has to run."""
