"""A member of a classic group: JoinGroup, SyncGroup, Heartbeat, LeaveGroup; `classic_states` has its states."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, Final

from kavka.client.api_errors import RebalanceInProgressError, error_of
from kavka.client.consumer.group.classic_requests import ClassicRequests
from kavka.client.consumer.group.classic_states import ASKING, BEATING, COMMITTING, State
from kavka.client.consumer.group.coordinator import LANE, LEAVE_LANE, Coordinator
from kavka.client.consumer.group.errors import CommitFailedError
from kavka.client.consumer.group.group_metrics import GroupMetrics
from kavka.client.consumer.group.group_settings import GroupSettings
from kavka.client.consumer.group.identity import Identity
from kavka.client.consumer.group.membership import Departure, Timer
from kavka.client.consumer.group.poll_clock import PollClock
from kavka.client.consumer.group.port import GroupMembershipOperation, SubscriptionPattern
from kavka.client.consumer.group.retrying import Retrying
from kavka.client.consumer.group.steps import Complete, Completed, Lead, LedMember, Lose, Prepare, Protocols, Step
from kavka.client.kafka_error import KafkaError, RetriableError
from kavka.client.node import Node
from kavka.protocol.errors import ErrorCode

INFINITY: Final = float("inf")

log = logging.getLogger(__name__)


class ClassicMembership:
    """See `Membership`. What the coordinator answers to a request of a former attempt is not listened to."""

    def __init__(
        self,
        settings: GroupSettings,
        coordinator: Coordinator,
        clock: PollClock,
        metrics: GroupMetrics,
        *,
        now_ms: Callable[[], float],
        on_news: Callable[[], None],
    ) -> None:
        self.step: Step | None = None
        self.identity = Identity(instance_id=settings.group_instance_id)
        self.awaits_poll = True
        self.is_subscribed = False
        self.error: KafkaError | None = None
        self.is_dead = False
        self.departures = 0
        self.state = State.UNJOINED
        self._settings: Final = settings
        self._coordinator: Final = coordinator
        self._requests: Final = ClassicRequests(settings)
        self._clock: Final = clock
        self._metrics: Final = metrics
        self._now_ms: Final = now_ms
        self._on_news: Final = on_news
        self._retrying: Final = Retrying(settings, now_ms)
        self._attempt = 0
        """Counts attempts to be a member, and generations: what was asked in a former one is answered to nobody."""
        self._asked_ms = 0.0
        self._is_asking = False
        """JoinGroup or SyncGroup is unanswered."""
        self._rejoin_reason: str | None = None
        """Why to join (again); None for no need to."""
        self._protocols: Protocols | None = None
        self._protocol = ""
        self._assignments: Mapping[str, bytes] = {}
        self._heartbeat: Final = Timer()
        self._session: Final = Timer()
        self._is_beating = False
        self._departure: Departure | None = None

    # What the polling thread wants

    def subscribe(self, topics: frozenset[str], pattern: SubscriptionPattern | None) -> None:
        """See `Membership`."""
        self.is_subscribed = True
        self.rejoin("the subscription has changed")

    def polled(self) -> None:
        """See `Membership`."""
        self.awaits_poll = False

    def rejoin(self, reason: str) -> None:
        """See `Membership`."""
        self._rejoin_reason = reason
        log.info("rejoining group='%s' reason=%r", self._settings.group_id, reason)

    def metadata_changed(self) -> None:
        """Nothing: the polling thread looks at the snapshot itself."""

    def step_done(self, step: Step, result: object) -> None:
        """See `Membership`."""
        if step is not self.step:
            return
        self.step = None
        if isinstance(step, Prepare):
            assert isinstance(result, Protocols)
            self._protocols = result
            self.state = State.JOINING
        elif isinstance(step, Lead):
            self._led(result)
        elif isinstance(step, Complete):
            assert isinstance(result, Completed)
            self._retrying.noted(is_success=not result.is_unusable)
            if result.rejoin_reason is not None:
                self.rejoin(result.rejoin_reason)

    def commit_identity(self) -> Identity | KafkaError:
        """See `Membership`."""
        if self.is_dead and self.error is not None:
            return self.error
        if self.identity.generation >= 0 and self.state in COMMITTING:
            return self.identity
        if self.state in (State.JOINING, State.LEADING, State.SYNCING):
            return RebalanceInProgressError(
                "The group is rebalancing. Poll to complete that, then commit what is still assigned."
            )
        return CommitFailedError()

    def commit_failed(self, code: int, identity: Identity) -> KafkaError | None:
        """See `Membership`."""
        is_current = identity == self.identity
        if code == ErrorCode.REBALANCE_IN_PROGRESS:
            if is_current:
                self.rejoin("a commit met a rebalance")
            return RebalanceInProgressError()
        if not is_current:
            return RebalanceInProgressError() if self.state is not State.UNJOINED else CommitFailedError()
        if code == ErrorCode.FENCED_INSTANCE_ID:
            return self._die(error_of(code))
        self._reset(error_of(code).args[0], keeps_id=code == ErrorCode.ILLEGAL_GENERATION)
        return CommitFailedError()

    def leave(self, operation: GroupMembershipOperation, done: Future[None]) -> None:
        """See `Membership`."""
        identity = self.identity
        was_waiting = self._is_asking
        says_so = operation is GroupMembershipOperation.LEAVE_GROUP or (
            operation is GroupMembershipOperation.DEFAULT and identity.instance_id is None
        )
        self.is_subscribed = False
        self._reset("the consumer leaves")
        self.step = None
        self.departures += 1
        self._rejoin_reason = None
        if not says_so or not identity.member_id:
            done.set_result(None)
            return
        # The connection on which the coordinator lets JoinGroup wait is of no use for a while.
        self._depart(identity, "the consumer unsubscribed or was closed", LEAVE_LANE if was_waiting else LANE, done)

    # What the client's thread does

    def work(self, now_ms: float) -> float:
        """See `Membership`."""
        if self._departure is not None and self._departure.go():
            self._departure = None
        if not self.is_subscribed or self.awaits_poll or self.is_dead:
            return INFINITY if self._departure is None else self._settings.retry_backoff_ms
        left_ms = self._clock.left_ms(now_ms)
        if left_ms <= 0 and self.identity.member_id and self.state is not State.UNJOINED:
            self._poll_is_late()
            return INFINITY
        wait_ms = left_ms if left_ms > 0 else INFINITY
        if self.step is None and self._rejoin_reason is not None and self.state in (State.UNJOINED, State.STABLE):
            self._begin(now_ms)
        if self.state in BEATING and self._session.left_ms(now_ms) <= 0:
            log.warning("no answer for session.timeout.ms group='%s'", self._settings.group_id)
            self._session.set(now_ms + self._settings.session_timeout_ms)
            self._coordinator.give_up()
        if not self._coordinator.is_known and (failure := self._coordinator.failure()) is not None:
            self._fail(failure)
            return wait_ms
        return min(wait_ms, self._talk(now_ms))

    def closed(self) -> None:
        """See `Membership`."""
        if self._departure is not None:
            self._departure.end()

    def _talk(self, now_ms: float) -> float:
        """Ask and beat, if it is time to and the coordinator is there."""
        asks = self.state in ASKING and not self._is_asking
        beats = self.state in BEATING and self.identity.generation >= 0 and not self._is_beating
        wait_ms = min(
            max(self._retrying.not_before_ms - now_ms, 0.0) if asks else INFINITY,
            self._heartbeat.left_ms(now_ms) if beats else INFINITY,
        )
        if wait_ms > 0:
            return min(wait_ms, self._session_left_ms(now_ms))
        node = self._coordinator.ready()
        if node is None:
            return self._coordinator.delay_ms()
        if asks and now_ms >= self._retrying.not_before_ms:
            self._ask(node)
        elif beats:
            self._beat(node, now_ms)
        return self._session_left_ms(now_ms)

    def _session_left_ms(self, now_ms: float) -> float:
        return self._session.left_ms(now_ms) if self.state in BEATING else INFINITY

    def _begin(self, now_ms: float) -> None:
        """A rebalance: the polling thread gives up first what is to be given up."""
        self._rejoin_reason, reason = None, self._rejoin_reason
        self._requests.reason = reason or ""
        self._metrics.rebalance_began(now_ms)
        self.state = State.PREPARING
        self._post(Prepare())

    def _post(self, step: Step) -> None:
        self.step = step
        self._on_news()

    def _ask(self, node: Node) -> None:
        attempt = self._attempt
        self._is_asking = True
        self._asked_ms = self._now_ms()
        if self.state is State.JOINING:
            assert self._protocols is not None
            request: Any = self._requests.join(self.identity, self._protocols.protocols)
            answered, timeout_ms = self._joined, self._settings.join_timeout_ms
        else:
            request = self._requests.sync(self.identity, self._protocol, self._assignments)
            answered, timeout_ms = self._synced, self._settings.request_timeout_ms

        def current(answer: Any) -> None:
            if attempt != self._attempt:
                return
            self._is_asking = False
            if isinstance(answer, KafkaError):
                self._metrics.rebalance_failed()
                self._again(answer)
            else:
                answered(answer, node)

        self._coordinator.send(node, request, current, timeout_ms=timeout_ms)

    def _joined(self, answer: Any, node: Node) -> None:
        code = answer.error_code
        if code == ErrorCode.MEMBER_ID_REQUIRED:
            if self.identity.member_id or not answer.member_id:
                self._retrying.stumbled()
            self.identity = self.identity._replace(generation=-1, member_id=answer.member_id)
            return
        if not code and (answer.generation_id < 0 or not answer.member_id):
            code = ErrorCode.UNKNOWN_SERVER_ERROR  # it would send no heartbeats, and never hear that it is no member
        if code or answer.protocol_type not in (None, "consumer"):
            self._refused(code or ErrorCode.INCONSISTENT_GROUP_PROTOCOL, node)
            return
        now_ms = self._now_ms()
        self._metrics.joined(now_ms - self._asked_ms)
        self.identity = self.identity._replace(generation=answer.generation_id, member_id=answer.member_id)
        self._protocol = answer.protocol_name or ""
        self._assignments, self._is_beating = {}, False
        self._attempt += 1
        self._heard(now_ms)
        log.info("joined group='%s' generation=%d", self._settings.group_id, answer.generation_id)
        if answer.leader == answer.member_id:
            members = [LedMember(each.member_id, each.group_instance_id, each.metadata) for each in answer.members]
            self.state = State.LEADING
            self._post(Lead(self._protocol, members, is_done=answer.skip_assignment))
        else:
            self.state = State.SYNCING

    def _led(self, result: object) -> None:
        if isinstance(result, KafkaError):
            self._fail(result)
            return
        assert isinstance(result, dict)
        self._assignments = result
        self.state = State.SYNCING

    def _synced(self, answer: Any, node: Node) -> None:
        code = answer.error_code
        if not code and (
            answer.protocol_type not in (None, "consumer") or answer.protocol_name not in (None, self._protocol)
        ):
            code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if code:
            self._refused(code, node)
            return
        now_ms = self._now_ms()
        self._metrics.synced(now_ms - self._asked_ms)
        self._metrics.rebalance_ended(now_ms)
        self.state = State.STABLE
        self._heard(now_ms)
        self._post(Complete(self._protocol, answer.assignment, self.identity))

    def _refused(self, code: int, node: Node) -> None:
        """JoinGroup or SyncGroup had an error."""
        error = error_of(code)
        self._metrics.rebalance_failed()
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            self._retrying.stumbled()
            self._reset(error.args[0], keeps_id=code == ErrorCode.ILLEGAL_GENERATION)
        elif code == ErrorCode.REBALANCE_IN_PROGRESS:
            self._retrying.stumbled()
            self.state = State.JOINING
        elif code == ErrorCode.FENCED_INSTANCE_ID:
            self._die(error)
        elif isinstance(error, RetriableError):
            self._coordinator.has_moved(code, node)
            self._again(error)
        else:
            self._fail(error)

    def _again(self, error: KafkaError) -> None:
        """What was asked had no answer, or one that passes: from JoinGroup on, after a while."""
        if not isinstance(error, RetriableError):
            self._fail(error)
            return
        self._retrying.failed()
        self.state = State.JOINING

    def _beat(self, node: Node, now_ms: float) -> None:
        attempt = self._attempt
        self._is_beating = True
        self._heartbeat.set(now_ms + self._settings.heartbeat_interval_ms)

        def answered(answer: Any) -> None:
            if attempt == self._attempt:
                self._is_beating = False
                self._heartbeat_answered(answer, node, now_ms)

        self._coordinator.send(node, self._requests.heartbeat(self.identity), answered)

    def _heartbeat_answered(self, answer: Any, node: Node, sent_ms: float) -> None:
        now_ms = self._now_ms()
        if isinstance(answer, KafkaError):
            self._heartbeat.set(now_ms + self._settings.retry_backoff_ms)
            return
        code = answer.error_code
        self._metrics.heartbeat(now_ms, now_ms - sent_ms)
        if not code:
            self._session.set(now_ms + self._settings.session_timeout_ms)
        elif code == ErrorCode.REBALANCE_IN_PROGRESS:
            self._session.set(now_ms + self._settings.session_timeout_ms)
            if self.state is State.STABLE and self._rejoin_reason is None:
                self.rejoin("the group is rebalancing")
        elif code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            self._reset(error_of(code).args[0], keeps_id=code == ErrorCode.ILLEGAL_GENERATION)
        elif code == ErrorCode.FENCED_INSTANCE_ID:
            self._die(error_of(code))
        elif self._coordinator.has_moved(code, node) or isinstance(error_of(code), RetriableError):
            self._heartbeat.set(now_ms + self._settings.retry_backoff_ms)
        else:
            self._fail(error_of(code))

    def _heard(self, now_ms: float) -> None:
        self._heartbeat.set(now_ms + self._settings.heartbeat_interval_ms)
        self._session.set(now_ms + self._settings.session_timeout_ms)

    def _poll_is_late(self) -> None:
        """The consumer is stuck: others shall have its partitions, and it joins anew with the next poll."""
        identity, was_waiting = self.identity, self._is_asking
        log.warning("max.poll.interval.ms is over, leaving group='%s'", self._settings.group_id)
        self._reset("max.poll.interval.ms was over")
        self.awaits_poll = True
        if identity.instance_id is None:
            lane = LEAVE_LANE if was_waiting else LANE
            self._depart(identity, "consumer poll timeout has expired.", lane, Future())

    def _reset(self, reason: str, *, keeps_id: bool = False) -> None:
        """No member any more: what is assigned is lost, which the listener hears before this one joins again."""
        self._attempt += 1
        self._is_asking = self._is_beating = False
        self._heartbeat.stop()
        self._session.stop()
        self._assignments = {}
        member_id = self.identity.member_id if keeps_id else ""
        self.identity = Identity(-1, member_id, self._settings.group_instance_id)
        self.state = State.UNJOINED
        self.rejoin(reason)
        self._post(Lose())

    def _fail(self, error: KafkaError) -> None:
        """Poll raises it, and tries again after."""
        self._retrying.failed()
        if self.state is not State.STABLE:
            self.state = State.UNJOINED
            self.rejoin("the last attempt failed")
            self.awaits_poll = True
        self.error = error
        self._on_news()

    def _die(self, error: KafkaError) -> KafkaError:
        """Another one has taken this member's place: each poll raises it."""
        self._reset(error.args[0])
        self.error = error
        self.is_dead = True
        return error

    def _depart(self, identity: Identity, reason: str, lane: str, done: Future[None]) -> None:
        self._departure = Departure(self._coordinator, lane, self._requests.leave(identity, reason), done)
