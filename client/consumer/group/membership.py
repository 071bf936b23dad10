"""What both kinds of membership are to the polling thread and to commits."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Final, Protocol

from kavka.client.call import Sendable
from kavka.client.consumer.group.coordinator import Coordinator
from kavka.client.consumer.group.identity import Identity
from kavka.client.consumer.group.port import GroupMembershipOperation, SubscriptionPattern
from kavka.client.consumer.group.steps import Step
from kavka.client.kafka_error import KafkaError


class Membership(Protocol):
    """A machine on the client's thread, over NetworkPort and a clock.

    Threads: the attributes are single values that any thread reads, and `error` is taken by the one that polls; all
    calls are on the client's thread.
    """

    step: Step | None
    """What the polling thread is to do now."""
    identity: Identity
    awaits_poll: bool
    """Nothing goes on before the next poll: `polled` is to be called then."""
    is_subscribed: bool
    error: KafkaError | None
    """To be raised by poll, which takes it away, unless `is_dead`."""
    departures: int
    """How often `leave` was called: counted when nothing of before is left in `step`."""
    is_dead: bool
    """The error is for good: each poll raises it."""

    def subscribe(self, topics: frozenset[str], pattern: SubscriptionPattern | None) -> None:
        """These topics from now on, or what the broker finds by the pattern."""

    def polled(self) -> None:
        """The consumer polls: join, or join again."""

    def rejoin(self, reason: str) -> None:
        """Have the group rebalance, where its members can."""

    def step_done(self, step: Step, result: object) -> None:
        """The polling thread has done it. Ignored for a step that was replaced meanwhile."""

    def commit_identity(self) -> Identity | KafkaError:
        """Whom a commit comes from, or why there can be none now."""

    def commit_failed(self, code: int, identity: Identity) -> KafkaError | None:
        """A commit of that identity had this error of the membership's: why it failed, or None to try again."""

    def leave(self, operation: GroupMembershipOperation, done: Future[None]) -> None:
        """Be no member any more; `done` when the coordinator knows, or will not be told."""

    def metadata_changed(self) -> None:
        """There is a new snapshot of the cluster."""

    def work(self, now_ms: float) -> float:
        """Do what can be done now; how long until there is something to do without news."""

    def closed(self) -> None:
        """The thread ends."""


class Timer:
    """A moment on the client's clock; never, until it is set."""

    __slots__ = ("_at_ms",)

    def __init__(self) -> None:
        self._at_ms = float("inf")

    def set(self, at_ms: float) -> None:
        """Then."""
        self._at_ms = at_ms

    def stop(self) -> None:
        """Never."""
        self._at_ms = float("inf")

    def left_ms(self, now_ms: float) -> float:
        """How long until then; 0 when it is over."""
        return max(self._at_ms - now_ms, 0.0)


class Departure:
    """A member's farewell: sent once if the coordinator is there to hear it, waited for, never tried again."""

    __slots__ = ("_coordinator", "_done", "_lane", "_request")

    def __init__(self, coordinator: Coordinator, lane: str, request: Sendable, done: Future[None]) -> None:
        self._coordinator: Final = coordinator
        self._lane: Final = lane
        self._request: Final = request
        self._done: Final = done

    def go(self) -> bool:
        """Whether it is on its way, or over."""
        if not self._coordinator.is_known:
            self.end()
            return True
        node = self._coordinator.ready(self._lane)
        if node is not None:
            self._coordinator.send(node, self._request, lambda _answer: self.end())
        return node is not None

    def end(self) -> None:
        """The coordinator has heard it, or never will."""
        if not self._done.done():
            self._done.set_result(None)
