"""The steps of a rebalance on the polling thread: listener, assignors and what is assigned.

Each step is a generator that yields what it has to wait for, as a question; it goes on in the poll in which that is
answered by yes. So a poll never waits for a rebalance longer than its own time.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias

from kavka.client.consumer.group.assignors.assignor import Assignor, RebalanceProtocol
from kavka.client.consumer.group.assignors.loading import protocol_of
from kavka.client.consumer.group.auto_commit import AutoCommit
from kavka.client.consumer.group.blobs import assignment_from, subscription_blobs
from kavka.client.consumer.group.group_metrics import GroupMetrics
from kavka.client.consumer.group.group_settings import GroupSettings
from kavka.client.consumer.group.identity import Identity
from kavka.client.consumer.group.leading import Leading
from kavka.client.consumer.group.membership import Membership
from kavka.client.consumer.group.port import Assignments, ConsumerGroupMetadata, GroupHost, RebalanceListener
from kavka.client.consumer.group.steps import Complete, Completed, Lead, Lose, Prepare, Protocols, Reconcile, Step
from kavka.client.consumer.group.subscription import Subscription
from kavka.client.topic_partition import TopicPartition

log = logging.getLogger(__name__)

Waiting: TypeAlias = Generator[Callable[[], bool], None, object]
"""Yields questions; what it returns is the step's result."""

Partitions: TypeAlias = Collection[TopicPartition]


class _AbandonedError(Exception):
    """The listener ended the membership that the step belongs to."""


class Rebalancing:
    """Does a membership's steps. Threads: the polling one's, but for `told`, which is swapped whole."""

    def __init__(
        self,
        settings: GroupSettings,
        membership: Membership,
        subscription: Subscription,
        auto_commit: AutoCommit,
        metrics: GroupMetrics,
        leading: Leading,
        host: GroupHost,
    ) -> None:
        self.listener = RebalanceListener()
        self.errors: Final[list[Exception]] = []
        """What the listener, or an assignor, has raised since it was looked at last."""
        self.told = Identity(instance_id=settings.group_instance_id)
        """Who this consumer was in the generation of its assignment."""
        self._settings: Final = settings
        self._membership: Final = membership
        self._subscription: Final = subscription
        self._auto_commit: Final = auto_commit
        self._metrics: Final = metrics
        self._leading: Final = leading
        self._host: Final = host
        self._assignments: Final[Assignments] = host.assignments
        self._assignors: Final[Sequence[Assignor]] = settings.assignors
        self._is_eager: Final = bool(settings.assignors) and protocol_of(settings.assignors) is RebalanceProtocol.EAGER
        self.owned_since: Mapping[TopicPartition, int] = {}
        """By which change each partition came. Swapped whole, so any thread may read it."""
        self._changes = 0
        self._departures = 0
        self._step: Step | None = None
        self._running: Waiting | None = None
        self._question: Callable[[], bool] | None = None
        self._is_in_step = False
        """A step is being done, further up on the stack."""

    def go_on(self) -> None:
        """Do what can be done of the step there is."""
        if self._is_in_step or self._membership.departures != self._departures:
            # A listener polls, which is told of the rest when it returns; or what is wanted is of the membership that
            # this thread has ended.
            return
        step = self._membership.step
        if step is not self._step:
            self.abandon()
            self._step = step
            self._running = self._begin(step) if step is not None else None
        while (running := self._running) is not None:
            if self._question is not None and not self._question():
                return
            self._is_in_step = True
            try:
                question = next(running)
            except StopIteration as end:
                if self._running is running:
                    self._running = self._question = None
                    assert step is not None
                    self._host.submit(partial(self._membership.step_done, step, end.value))
                return
            except _AbandonedError:
                return
            except BaseException:
                # A user's assignor, or Ctrl-C in a listener: poll raises it, and the next one does the step anew.
                if self._running is running:
                    self._running = self._question = self._step = None
                raise
            finally:
                self._is_in_step = False
            if self._running is running:
                self._question = question

    def abandon(self) -> None:
        """Another step has come, or the membership is over."""
        if self._running is not None:
            running, self._running = self._running, None
            if not self._is_in_step:
                running.close()
            # Otherwise a listener ends its own membership, and the step ends when it returns.
        self._step = self._question = None

    def give_up(self) -> None:
        """Tell the listener that all goes, as this consumer leaves: `leave` has to follow."""
        self.abandon()
        self._departures += 1
        mine = self._assignments.partitions
        self._assignments.withhold(mine)
        if mine:
            self._tell("lost" if self._membership.identity.generation < 0 else "revoked", mine)
        self._replace(())
        self.told = Identity(instance_id=self._settings.group_instance_id)

    def _begin(self, step: Step) -> Waiting:
        if isinstance(step, Prepare):
            return self._prepare()
        if isinstance(step, Lose):
            return self._lose()
        if isinstance(step, Lead):
            return self._leading.lead(step)
        if isinstance(step, Complete):
            return self._complete(step)
        return self._reconcile(step)

    def _prepare(self) -> Waiting:
        mine = self._assignments.partitions
        if self._membership.identity.generation < 0:
            yield from self._lose()
        elif self._is_eager:
            yield from self._revoke(mine, keeps=frozenset(), always=True)
        else:
            unwanted = frozenset(each for each in mine if each.topic not in self._subscription.topics)
            yield from self._revoke(unwanted, keeps=mine - unwanted)
        self._leading.stop()
        return Protocols(
            subscription_blobs(
                self._assignors,
                self._subscription.topics,
                self._assignments.partitions,
                self.told.generation,
                self._settings.client_rack,
            )
        )

    def _lose(self) -> Waiting:
        yield from ()
        mine = self._assignments.partitions
        if mine:
            self._assignments.withhold(mine)
            self._tell_in_step("lost", mine)
            self._replace(())
        self.told = Identity(instance_id=self._settings.group_instance_id)
        return None

    def _complete(self, step: Complete) -> Waiting:
        assignor = next((each for each in self._assignors if each.name == step.protocol), None)
        assignment = assignment_from(step.assignment)
        if assignor is None or assignment is None:
            self.errors.append(ValueError(f"the group's assignment by {step.protocol!r} cannot be read"))
            return Completed("the assignment cannot be read", is_unusable=True)
        target = frozenset(assignment.partitions)
        topics = self._subscription.topics
        if any(partition.topic not in topics for partition in target):
            return Completed("the subscription has changed meanwhile", is_unusable=True)
        mine = self._assignments.partitions
        gone = mine - target
        if gone:
            yield from self._revoke(gone, keeps=mine - gone)
        self.told = step.identity
        try:
            assignor.on_assignment(assignment, self._group_metadata(step.identity))
        except Exception as error:  # noqa: BLE001  # the user's, raised by poll
            self.errors.append(error)
        self._assign(target)
        return Completed("partitions were given up for others" if gone and not self._is_eager else None)

    def _reconcile(self, step: Reconcile) -> Waiting:
        mine = self._assignments.partitions
        gone = mine - step.target
        yield from self._revoke(gone, keeps=mine - gone)
        self.told = self._membership.identity
        self._assign(step.target)
        return step.target

    def _revoke(
        self, gone: frozenset[TopicPartition], keeps: frozenset[TopicPartition], *, always: bool = False
    ) -> Waiting:
        """Give out no more of these, commit, tell the listener, and have them no more."""
        if not gone and not always:
            return None
        self._assignments.withhold(gone)
        limit_ms = min(self._settings.max_poll_interval_ms, self._settings.default_api_timeout_ms)
        commit = self._auto_commit.before_leaving(self._host.now_ms() + limit_ms)
        if commit is not None:
            yield commit.done
        self._tell_in_step("revoked", gone)
        self._replace(keeps)
        return None

    def _assign(self, target: frozenset[TopicPartition]) -> None:
        new = target - self._assignments.partitions
        self._replace(target)
        self._auto_commit.assigned(self._host.now_ms())
        try:
            self._tell_in_step("assigned", new)
        finally:
            self._assignments.release(new)

    def _replace(self, partitions: Partitions) -> None:
        self._changes += 1
        former = self.owned_since
        self.owned_since = {partition: former.get(partition, self._changes) for partition in partitions}
        self._assignments.replace(partitions)

    def _tell_in_step(self, what: str, partitions: Partitions) -> None:
        self._tell(what, partitions)
        if self._running is None:
            raise _AbandonedError

    def _tell(self, what: str, partitions: Partitions) -> None:
        """Call the listener; what it raises is kept for poll, and the rebalance goes on."""
        log.info("partitions %s group='%s' %s", what, self._settings.group_id, sorted(map(str, partitions)))
        began = time.perf_counter()
        try:
            getattr(self.listener, f"on_{what}")(frozenset(partitions))
        except Exception as error:  # noqa: BLE001  # the user's, raised by poll
            self.errors.append(error)
        self._metrics.told(what, (time.perf_counter() - began) * 1000)

    def _group_metadata(self, identity: Identity) -> ConsumerGroupMetadata:
        return ConsumerGroupMetadata(self._settings.group_id, *identity)
