"""A member of a group of the new protocol (KIP-848): the coordinator assigns, heartbeats carry all of it.

JOINING --answer--> STABLE --target--> (Reconcile, polling thread) --> heartbeat says so --> STABLE
   ^                   |
   \\-- next poll -- Lose <-- fenced, or max.poll.interval.ms
"""

from __future__ import annotations

import enum
import logging
import uuid
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final

from kavka.client.api_errors import InvalidRequestError, UnsupportedVersionError, error_of
from kavka.client.consumer.group.assigned_topics import AssignedTopics
from kavka.client.consumer.group.consumer_heartbeats import ConsumerHeartbeats
from kavka.client.consumer.group.coordinator import LANE, Coordinator
from kavka.client.consumer.group.errors import CommitFailedError
from kavka.client.consumer.group.group_metrics import GroupMetrics
from kavka.client.consumer.group.group_settings import GroupSettings
from kavka.client.consumer.group.identity import Identity
from kavka.client.consumer.group.membership import Departure, Timer
from kavka.client.consumer.group.poll_clock import PollClock
from kavka.client.consumer.group.port import GroupMembershipOperation, SubscriptionPattern
from kavka.client.consumer.group.retrying import Retrying
from kavka.client.consumer.group.steps import Lose, Reconcile, Step
from kavka.client.kafka_error import KafkaError, RetriableError
from kavka.client.metadata import Metadata
from kavka.client.node import Node
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.errors import ErrorCode

INFINITY: Final = float("inf")
LEAST_INTERVAL_MS: Final = 10.0
"""Between two heartbeats, whatever a coordinator says or does."""
LONGEST_INTERVAL_MS: Final = 60_000.0
"""The same: who is silent for weeks would not hear that it is a member no more."""
LEAVING: Final = -1
LEAVING_FOR_A_WHILE: Final = -2
"""A static member's place is kept for who comes with its instance id."""

log = logging.getLogger(__name__)


class State(enum.Enum):
    """How far the membership is."""

    UNJOINED = "unjoined"
    JOINING = "joining"
    """To send, or sent, the heartbeat with epoch 0."""
    STABLE = "stable"
    """Whether there is something to reconcile or not."""


_FENCED: Final = frozenset({ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID})


class ConsumerMembership:
    """See `Membership`. One heartbeat at a time; what is answered to one of a former attempt is not listened to."""

    def __init__(
        self,
        settings: GroupSettings,
        coordinator: Coordinator,
        clock: PollClock,
        metrics: GroupMetrics,
        *,
        metadata: Metadata,
        now_ms: Callable[[], float],
        on_news: Callable[[], None],
        member_id: str | None = None,
    ) -> None:
        """`member_id` is made up here, once for all attempts (KIP-1082)."""
        self._member_id: Final = member_id or str(uuid.uuid4())
        self.step: Step | None = None
        self.identity = Identity(-1, self._member_id, settings.group_instance_id)
        self.awaits_poll = True
        self.is_subscribed = False
        self.error: KafkaError | None = None
        self.is_dead = False
        self.departures = 0
        self.state = State.UNJOINED
        self._settings: Final = settings
        self._coordinator: Final = coordinator
        self._clock: Final = clock
        self._metrics: Final = metrics
        self._metadata: Final = metadata
        self._topics: Final = AssignedTopics(metadata)
        self._now_ms: Final = now_ms
        self._on_news: Final = on_news
        self._heartbeats: Final = ConsumerHeartbeats(settings)
        self._retrying: Final = Retrying(settings, now_ms)
        self._attempt = 0
        self._is_beating = False
        self._due: Final = Timer()
        self._interval_ms = float(settings.heartbeat_interval_ms)
        """As the coordinator says with each answer."""
        self._sent_ms = float("-inf")
        """When the last heartbeat went out."""
        self._target: dict[bytes, tuple[int, ...]] = {}
        self._current: frozenset[TopicPartition] = frozenset()
        """What the polling thread has taken."""
        self._departure: Departure | None = None

    # What the polling thread wants

    def subscribe(self, topics: frozenset[str], pattern: SubscriptionPattern | None) -> None:
        """See `Membership`."""
        self.is_subscribed = True
        self._heartbeats.topics = topics
        self._heartbeats.pattern = pattern
        if self.state is State.UNJOINED and self.step is None:
            self._join()
        elif self.state is not State.UNJOINED:
            self._due.set(0.0)

    def polled(self) -> None:
        """See `Membership`."""
        self.awaits_poll = False

    def rejoin(self, reason: str) -> None:
        """Nothing: the coordinator decides when to rebalance."""

    def step_done(self, step: Step, result: object) -> None:
        """See `Membership`."""
        if step is not self.step:
            return
        self.step = None
        if isinstance(step, Reconcile):
            assert isinstance(result, frozenset)
            self._current = result
            self._due.set(0.0)
            self._metrics.rebalance_ended(self._now_ms())
            self._reconcile()
        elif not self.is_dead:
            self._join()

    def commit_identity(self) -> Identity | KafkaError:
        """See `Membership`."""
        if self.is_dead and self.error is not None:
            return self.error
        return self.identity if self.identity.generation > 0 else CommitFailedError()

    def commit_failed(self, code: int, identity: Identity) -> KafkaError | None:
        """See `Membership`. One of an old epoch is tried again with the new one, or once that is here."""
        if code in (ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.ILLEGAL_GENERATION):
            return None if self.identity.generation > 0 else CommitFailedError()
        if code == ErrorCode.FENCED_INSTANCE_ID:
            return self._die(error_of(code)) if identity == self.identity else CommitFailedError()
        return CommitFailedError()

    def leave(self, operation: GroupMembershipOperation, done: Future[None]) -> None:
        """See `Membership`."""
        identity = self.identity
        is_static = identity.instance_id is not None
        keeps_place = is_static and operation is not GroupMembershipOperation.LEAVE_GROUP
        says_so = is_static or operation is not GroupMembershipOperation.REMAIN_IN_GROUP
        was_member = self.state is not State.UNJOINED and (identity.generation > 0 or self._is_beating)
        self.is_subscribed = False
        self._reset()
        self.step = None
        self.departures += 1
        if says_so and was_member:
            self._depart(LEAVING_FOR_A_WHILE if keeps_place else LEAVING, done)
        else:
            done.set_result(None)

    # What the client's thread does

    def metadata_changed(self) -> None:
        """Perhaps names of topics that are to be reconciled are known now."""
        self._reconcile()

    def work(self, now_ms: float) -> float:
        """See `Membership`."""
        if self._departure is not None and self._departure.go():
            self._departure = None
        if not self.is_subscribed or self.awaits_poll or self.is_dead:
            return INFINITY if self._departure is None else self._settings.retry_backoff_ms
        left_ms = self._clock.left_ms(now_ms)
        if left_ms <= 0 and self.identity.generation > 0:
            self._poll_is_late()
            return self._settings.retry_backoff_ms
        wait_ms = left_ms if left_ms > 0 else INFINITY
        failure = None if self._coordinator.is_known else self._coordinator.failure()
        if failure is not None:
            self._fail(failure)
            return wait_ms
        if self.state is State.UNJOINED or self._is_beating:
            return wait_ms
        due_ms = max(self._due.left_ms(now_ms), self._sent_ms + LEAST_INTERVAL_MS - now_ms)
        if due_ms > 0:
            return min(wait_ms, due_ms)
        node = self._coordinator.ready()
        if node is None:
            return min(wait_ms, self._coordinator.delay_ms())
        self._beat(node, now_ms)
        return wait_ms

    def closed(self) -> None:
        """See `Membership`."""
        if self._departure is not None:
            self._departure.end()

    def _join(self) -> None:
        """With epoch 0: as a new member, or one that was fenced."""
        if self.is_subscribed:
            self.state = State.JOINING
            self._heartbeats.forget()
            self._due.set(self._retrying.not_before_ms)
            self._metrics.rebalance_began(self._now_ms())

    def _beat(self, node: Node, now_ms: float) -> None:
        attempt = self._attempt
        self._is_beating = True
        joins = self.state is State.JOINING
        owned = () if joins else self._topics.by_id(self._current)
        epoch = 0 if joins else self.identity.generation
        request = self._heartbeats.request(self._member_id, epoch, owned)
        self._due.set(now_ms + self._interval_ms)
        self._sent_ms = now_ms

        def answered(answer: Any) -> None:
            if attempt == self._attempt:
                self._is_beating = False
                self._answered(answer, node, now_ms)

        self._coordinator.send(node, request, answered, versions=self._heartbeats.versions)

    def _answered(self, answer: Any, node: Node, sent_ms: float) -> None:
        now_ms = self._now_ms()
        if isinstance(answer, KafkaError):
            self._heartbeats.forget()
            self._unanswered(answer)
            return
        code = answer.error_code
        self._metrics.heartbeat(now_ms, now_ms - sent_ms)
        if code or answer.member_epoch <= 0:
            # No member has such an epoch: the next heartbeat would join, or say farewell, with it.
            self._heartbeats.forget()
            self._refused(code or ErrorCode.FENCED_MEMBER_EPOCH, answer.error_message, node)
            return
        self._retrying.succeeded()
        self._interval_ms = min(max(float(answer.heartbeat_interval_ms), LEAST_INTERVAL_MS), LONGEST_INTERVAL_MS)
        if self._due.left_ms(now_ms) > 0:
            self._due.set(sent_ms + self._interval_ms)
        # Otherwise there is something to be said at once, which came up while this one was on its way.
        self.identity = self.identity._replace(generation=answer.member_epoch)
        self.state = State.STABLE
        if answer.assignment is not None:
            self._target = {each.topic_id: tuple(each.partitions) for each in answer.assignment.topic_partitions}
        self._reconcile()

    def _again_later(self) -> None:
        self._retrying.failed()
        self._due.set(self._retrying.not_before_ms)

    def _unanswered(self, error: KafkaError) -> None:
        if isinstance(error, RetriableError):
            self._again_later()
            return
        if isinstance(error, UnsupportedVersionError):
            error = UnsupportedVersionError(
                "The broker does not serve groups of the new protocol, or not a subscription by its regular "
                f"expressions; with group.protocol=classic it may go. ({error})"
            )
        self._fail(error)

    def _refused(self, code: int, message: str | None, node: Node) -> None:
        error = error_of(code, message)
        if code in _FENCED:
            log.info("fenced group='%s' error=%r", self._settings.group_id, str(error))
            self._note_failure()
            self._retrying.stumbled()
            self._reset()
            self._post(Lose())
        elif (
            # After a while, though it has moved: until the cluster agrees on where to, it is found where it is not.
            self._coordinator.has_moved(code, node)
            or isinstance(error, RetriableError)
            or code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        ):
            self._again_later()
            if not isinstance(error, RetriableError):
                self.error = error
                self._on_news()
        elif code in (ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNRELEASED_INSTANCE_ID):
            self._note_failure()
            self._die(error)
        else:
            self._fail(error if code != ErrorCode.INVALID_REQUEST else InvalidRequestError(message))

    def _reconcile(self) -> None:
        """Have the polling thread take what is assigned now, as far as its topics' names are known."""
        if self.state is not State.STABLE or self.step is not None:
            return
        target, is_whole = self._topics.partitions(self._target, self._current)
        if not is_whole:
            self._metadata.request_update()
        if target != self._current:
            self._metrics.rebalance_began(self._now_ms())
            self._post(Reconcile(target))

    def _poll_is_late(self) -> None:
        """The consumer is stuck: others shall have its partitions, and it joins anew with the next poll."""
        log.warning("max.poll.interval.ms is over, leaving group='%s'", self._settings.group_id)
        is_static = self.identity.instance_id is not None
        self._reset()
        self._post(Lose())
        self.awaits_poll = True
        self._depart(LEAVING_FOR_A_WHILE if is_static else LEAVING, Future())

    def _reset(self) -> None:
        self._attempt += 1
        self._is_beating = False
        self.state = State.UNJOINED
        self.identity = self.identity._replace(generation=-1)
        self._target = {}
        self._current = frozenset()
        self._topics.forget()
        self._due.stop()
        self._heartbeats.forget()

    def _fail(self, error: KafkaError) -> None:
        """Poll raises it; the next one joins anew."""
        self._note_failure()
        self._retrying.failed()
        self._reset()
        self.error = error
        self.awaits_poll = True
        self._post(Lose())

    def _note_failure(self) -> None:
        """A heartbeat came to nothing: with it a rebalance that is under way. What is tried again does not count."""
        if self.state is State.JOINING or isinstance(self.step, Reconcile):
            self._metrics.rebalance_failed()

    def _die(self, error: KafkaError) -> KafkaError:
        self._reset()
        self.error = error
        self.is_dead = True
        self._post(Lose())
        return error

    def _post(self, step: Step) -> None:
        self.step = step
        self._on_news()

    def _depart(self, epoch: int, done: Future[None]) -> None:
        request = self._heartbeats.farewell(self._member_id, epoch)
        self._departure = Departure(self._coordinator, LANE, request, done)
