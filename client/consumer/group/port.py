"""How a consumer sees its group, and what the group needs of the consumer.

    polling thread                                   the client's thread
    Consumer --GroupPort--> Group  ==steps==>  memberships, commits: machines over NetworkPort and a clock
    subscription state <--Assignments-- Group

A group's rebalance goes in steps. The client's thread finds that one is due and calls `on_news`; the polling thread
does it in `poll_began` (and in `close`, `unsubscribe`): stops giving out records of partitions that go, commits, calls
the listener, changes the assignment. Nothing that a user gave runs anywhere else, and `poll_began` never waits: a
commit that is on its way is looked at the next time.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from re import Pattern
from typing import Any, NamedTuple, Protocol, TypeAlias

from kavka.client.topic_partition import TopicPartition


class OffsetAndMetadata(NamedTuple):
    """A position to be stored for a group: the offset of the next record to be read, and what goes with it.

    with Consumer(bootstrap_servers="localhost:9092", group_id="apart") as consumer:
        consumer.commit_sync({TopicPartition("visits", 0): OffsetAndMetadata(42, metadata="by hand")})
    """

    offset: int
    leader_epoch: int | None = None
    """The epoch of the last record that was read, if known: it tells a log that was cut (KIP-320)."""
    metadata: str = ""


Offsets: TypeAlias = Mapping[TopicPartition, OffsetAndMetadata]
CommitCallback: TypeAlias = Callable[[Offsets, Exception | None], None]
"""Takes what was to be committed, and why it was not. Called on the polling thread."""


class ConsumerGroupMetadata(NamedTuple):
    """What a transaction needs to know of the group whose offsets it commits (KIP-447). Immutable.

    with Consumer(bootstrap_servers="localhost:9092", group_id="counting") as consumer:
        print(consumer.group_metadata().generation_id)
    """

    group_id: str
    generation_id: int = -1
    """The member epoch, in a group of the new protocol."""
    member_id: str = ""
    group_instance_id: str | None = None


class SubscriptionPattern(NamedTuple):
    """A regular expression in RE2's syntax that the broker looks up topics by: for `group.protocol=consumer` only.

    with Consumer(bootstrap_servers="localhost:9092", group_id="all", group_protocol="consumer") as consumer:
        consumer.subscribe(SubscriptionPattern("visits.*"))
        print(len(consumer.poll(1_000)))
    """

    pattern: str


class GroupMembershipOperation(enum.Enum):
    """What `close` does about the membership (KIP-1092).

    consumer = Consumer(bootstrap_servers="localhost:9092", group_id="counting", group_instance_id="first")
    consumer.close(operation=GroupMembershipOperation.LEAVE_GROUP)
    """

    DEFAULT = "default"
    """Dynamic members leave, static ones stay until their session is over."""
    LEAVE_GROUP = "leave"
    REMAIN_IN_GROUP = "remain"


class RebalanceListener:
    """Is told of the partitions that come and go; derive from it, and override what is of interest.

        from kavka.client.consumer import Consumer, RebalanceListener

        class Printing(RebalanceListener):
            def on_assigned(self, partitions):
                print("from now on", *sorted(partitions))

        with Consumer(bootstrap_servers="localhost:9092", group_id="counting") as consumer:
            consumer.subscribe(["visits"], Printing())
            consumer.poll(1_000)

    Called on the thread that polls, within `poll`, `unsubscribe` or `close`, which raise what the listener raises,
    after the rebalance has gone on without it. In `on_revoked` the partitions can still be committed.
    """

    def on_assigned(self, partitions: Collection[TopicPartition]) -> None:
        """These are new, perhaps none: a rebalance is complete. They have no position yet; `seek` gives them one."""

    def on_revoked(self, partitions: Collection[TopicPartition]) -> None:
        """These are about to go to other members."""

    def on_lost(self, partitions: Collection[TopicPartition]) -> None:
        """These may belong to others already, as this member was away for too long; committing them would fail."""
        self.on_revoked(partitions)


class Assignments(Protocol):
    """What the facade's subscription state is to the group. All on the polling thread, but for `partitions`."""

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        """What is assigned, by the group or by `assign`. Any thread."""

    def withhold(self, partitions: Collection[TopicPartition]) -> None:
        """These are about to go: no record of them is given out from now on. They stay assigned, with positions."""

    def replace(self, partitions: Collection[TopicPartition]) -> None:
        """These are assigned now. What stays, keeps position, pause and what is fetched; what was withheld goes on.

        What is new has no position and is not fetched before `release`; records of what is gone are dropped.
        """

    def restrict(self, topics: Collection[str] | None) -> None:
        """Give out no record of any other topic, until it is called again: these are subscribed to. None: of all.

        What is assigned of other topics goes with the next rebalance, and keeps its positions until then.
        """

    def release(self, partitions: Collection[TopicPartition]) -> None:
        """The listener knows of these new ones: they may be fetched, from where it has put them or was committed."""

    def consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """The positions after the last records that were given out: what a commit without offsets stores.

        Partitions that have no position yet are left out; withheld ones are in.
        """


class GroupPort(Protocol):
    """A consumer's group, or what stands for it where `group.id` is given and partitions are assigned by hand.

    Threads: `work` and `closed` on the client's thread; `offsets_of` and `group_metadata` by any; all else by the
    thread that polls. What returns a Future does not wait: it is done by the client's thread, with the result or a
    KafkaError, by its deadline.
    """

    on_auto_committed: Callable[[Offsets], None] | None
    """Called on the polling thread for automatic commits that succeeded, as interceptors see these too."""

    # What the facade calls for its user

    def subscribe(self, topics: Collection[str], listener: RebalanceListener | None = None) -> None:
        """These topics from now on; the group is joined by the next `poll_began`. None is `unsubscribe`."""

    def subscribe_pattern(
        self, pattern: Pattern[str] | SubscriptionPattern, listener: RebalanceListener | None
    ) -> None:
        """All topics whose whole name matches, also those that come. A SubscriptionPattern is matched by the broker."""

    def unsubscribe(self) -> Future[None]:
        """Revoke (or lose) what is assigned, calling the listener, and leave. Raises what the listener raises."""

    @property
    def subscription(self) -> frozenset[str]:
        """The topics, as far as a pattern has found some."""

    @property
    def is_subscribed(self) -> bool:
        """Whether the group assigns the partitions: `assign` and `subscribe` exclude one another."""

    def commit(self, offsets: Offsets, deadline_ms: float) -> Future[None]:
        """Store offsets for the group, trying again until the deadline on the client's clock: `commit_sync`.

        While waiting for it, and after, the facade calls `run_callbacks`: those of older asynchronous commits come
        first, as the future is done only after theirs.
        """

    def commit_async(self, offsets: Offsets, callback: CommitCallback | None = None) -> None:
        """Store offsets, once; the callback runs in a later `run_callbacks`, in the order of the commits."""

    def offsets_of(
        self, partitions: Collection[TopicPartition], deadline_ms: float
    ) -> Future[dict[TopicPartition, OffsetAndMetadata]]:
        """What is committed, without those of which nothing is. Waits for open transactions (`require_stable`).

        `add_done_callback` runs on the client's thread, so the fetch machine uses it too.
        """

    def group_metadata(self) -> ConsumerGroupMetadata:
        """As of the assignment that the polling thread has been told of."""

    def enforce_rebalance(self, reason: str | None = None) -> None:
        """Have the group rebalance at the next poll. Nothing happens in a group of the new protocol, as in Java."""

    def close(self, operation: GroupMembershipOperation, deadline_ms: float) -> None:
        """Commit if that is automatic, revoke, leave, wait for commits, by `wait`. Raises what the listener raises."""

    # What the facade calls of itself

    def poll_began(self, now_ms: float) -> None:
        """First thing in `poll`, and again whenever `on_news` was called while it waits; `max.poll.interval.ms` begins.

        Commits by the interval, does the steps of a rebalance, runs callbacks. Raises what a listener or callback
        raised, or the fatal error of the group (each once); cheap when there is nothing to do.
        """

    def poll_waits(self) -> float:
        """`poll` waits for news, until the next `poll_began` or `poll_ended`: `max.poll.interval.ms` does not run.

        When it has to look again without news, on the client's clock: a commit by the interval is due then.
        """

    def poll_ended(self, now_ms: float) -> None:
        """`poll` returns: `max.poll.interval.ms` begins."""

    def run_callbacks(self) -> None:
        """Call back for asynchronous commits that are done. Raises the first callback's exception, after the others."""

    # What the client's thread calls

    def work(self, now_ms: float) -> float:
        """Do what can be done without waiting; how long until there is something to do without news."""

    def closed(self) -> None:
        """The thread ends: fail what waits."""


class GroupHost(Protocol):
    """What the group is given by the facade besides network, metadata and settings."""

    @property
    def assignments(self) -> Assignments:
        """What is assigned, and how far it is read."""

    def submit(self, call: Callable[[], Any]) -> None:
        """Run this on the client's thread, soon; starts that thread if need be."""

    def on_news(self) -> None:
        """There is a step or a callback for the polling thread: ends its wait. Any thread, often more than needed."""

    def wait(self, future: Future[Any], deadline_ms: float) -> bool:
        """Polling thread: wait for it; whether it is done. Used by `close` only, so a wakeup does not end it."""

    def now_ms(self) -> float:
        """The client's clock. Any thread."""
