"""One broker's part in the election of the controller, the thread that acts for it, and the terms that it wins.

Elected through the ephemeral `/controller`; every election counts up `/controller_epoch` in the same transaction, and
all writes of a term are conditional on it. When something fails half way (the registry's disk is full, say), memory may
have gone ahead of the tree: the term ends, and the next request, or `resume`, begins a new one that reads everything
again. A term that cannot even begin gives `/controller` back, and its broker stands aside for a while: another one may
have more luck.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeVar

from kavka.cluster.broker_registration import BrokerRegistration
from kavka.cluster.controller.agreed_features import AgreedFeatures
from kavka.cluster.controller.answers import UnforeseenError, answer_of
from kavka.cluster.controller.broker_changes import on_broker_change, on_isr_changes, on_log_dir_events
from kavka.cluster.controller.elect_leaders import balance_leaders, take_election_wishes
from kavka.cluster.controller.election import ControllerElection
from kavka.cluster.controller.event_queue import EventQueue
from kavka.cluster.controller.feature_levels import agree
from kavka.cluster.controller.looks import Look
from kavka.cluster.controller.own_registration import OwnRegistration
from kavka.cluster.controller.reassignment_requests import take_reassignments
from kavka.cluster.controller.requests import ControllerStats
from kavka.cluster.controller.store import ControllerMovedError, ControllerStore
from kavka.cluster.controller.term import Term
from kavka.cluster.controller.topic_nodes import TopicNodes
from kavka.cluster.features import FinalizedFeatures
from kavka.cluster.ports import BrokerChannels, ConfigHolder
from kavka.cluster.promise import Promise
from kavka.cluster.registry.base import (
    OutOfReachError,
    Registry,
    SessionEvent,
    Watch,
    WatchEvent,
)
from kavka.config.thread_names import thread_name
from kavka.protocol.errors import BrokerError, ErrorCode

MAX_PAUSE: Final = 6
"""How many calls of `resume` a broker stands aside at most that could not begin its terms."""

log = logging.getLogger(__name__)

_T = TypeVar("_T")


class Candidacy:
    """Runs events one by one, for the term that this broker has, if it has one.

    Threads: its own runs all events, and writes all that changes; any thread may read that and call the public methods.
    """

    def __init__(
        self,
        registry: Registry,
        broker_id: int,
        channels: BrokerChannels,
        settings: ConfigHolder,
        now_ms: Callable[[], int],
        *,
        take_deletion_wishes: Callable[[Term, Watch], None],
        configs_changed: Callable[[Sequence[str]], None],
        registration: BrokerRegistration | None,
        on_features: Callable[[FinalizedFeatures], object],
    ) -> None:
        """See `Controller`, which has these from its maker, or gives them."""
        self._registry = registry
        self._channels = channels
        self._settings = settings
        self._configs_changed = configs_changed
        self._registration = OwnRegistration(registry, registration)
        self._features = AgreedFeatures(registry, self._watch_features, on_features)
        self._election = ControllerElection(registry, broker_id, now_ms, self._registration.is_current)
        self._events = EventQueue()
        self._topic_nodes = TopicNodes(self._events, self.look_at)
        self._brokers = Look(self._events, self.look_at, on_broker_change)
        self._looks = tuple(
            Look(self._events, self.look_at, look)
            for look in (
                take_reassignments,
                take_deletion_wishes,
                take_election_wishes,
                on_isr_changes,
                on_log_dir_events,
            )
        )
        self._term: Term | None = None
        self._unclean_elections = 0
        """Of terms that are over."""
        self._is_balanced = False
        self._broker_id = broker_id
        self._controller_id = -1
        self._is_informed = False
        """Whether `_controller_id` is who it was at the last look, and the next change is heard."""
        self._failed_beginnings = self._pause = 0
        """How many calls of `resume` are to come before this broker stands for election again."""
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name=thread_name("kavka-controller"), daemon=True)

    def start(self) -> Promise[None]:
        """Join the election; see `Controller.start`."""
        self._registry.on_session_event(self._on_session_event)
        started = self._request(partial(self._attempt, self._join))
        self._events.notice(self._on_session)  # may have ended before there was a listener
        self._thread.start()
        return started

    def stop(self) -> None:
        """Resign if elected, fail what waits, join the thread."""
        self._is_stopping = True
        self._events.close()
        if self._thread.is_alive():
            self._thread.join()

    @property
    def is_active(self) -> bool:
        return self._controller_id == self._broker_id

    @property
    def controller_id(self) -> int:
        return self._controller_id

    def stats(self) -> ControllerStats:
        term = self._term
        if term is None:
            return ControllerStats(False, self._unclean_elections)
        context = term.context
        return ControllerStats(
            True,
            self._unclean_elections + context.unclean_election_count,
            queued_events=len(self._events),
            brokers=len(context.brokers),
            topics=context.topic_count,
            partitions=context.partition_count,
            offline_partitions=context.offline_partition_count,
            deleting_topics=len(context.deleting),
            waiting_deletions=len(context.failed_deletions),
            deleting_replicas=context.deleting_replica_count,
        )

    def resume(self) -> None:
        """See `Controller.resume`."""
        if self._term is None and (self.is_active or self._pause or not self._is_informed):
            self._events.notice(self._on_resume)
        elif self._term is not None and not self._is_balanced:
            self.balance_leaders()
        if not self._registration.is_current():
            self._events.notice(self._on_session)
        elif not self._features.is_heard:
            self._events.notice(self._on_other_features)

    def balance_leaders(self) -> None:
        """See `Controller.balance_leaders`."""
        if self._term is not None:
            self._events.notice(self._on_imbalance)

    def settings_changed(self) -> None:
        """See `Controller.settings_changed`."""
        term = self._term
        if term is not None and term.context.offline_partition_count:
            self._events.notice(self._on_leaderless)

    def replicas_arrived(self) -> None:
        """Partitions on the move may be complete now."""
        self._events.notice(self._on_replicas_arrived)

    # The queue

    def in_term(self, work: Callable[[Term], _T]) -> Promise[_T]:
        """What `work` gives, if this broker is the controller; else NOT_CONTROLLER."""
        return self._request(partial(self._attempt, lambda: work(self._required_term())))

    def submit(self, work: Callable[[], _T]) -> Promise[_T]:
        """What `work` gives, run on the controller's thread behind what waits there; it is none of a term's business,
        and no term ends with it.
        """
        return self._request(partial(self._answer, work))

    def _request(self, answer: Callable[[], _T]) -> Promise[_T]:
        promise: Promise[_T] = Promise()
        if not self._events.request(partial(promise.settle_by, answer)):
            error = (
                self._stopped()
                if self._is_stopping
                else BrokerError(ErrorCode.REQUEST_TIMED_OUT, "The controller has too much to do; try again.")
            )
            promise.fail(error)
        return promise

    def _run(self) -> None:
        while (event := self._events.next()) is not None:
            event()
        self._resign()
        self._channels.close()

    def _attempt(self, work: Callable[[], _T]) -> _T:
        """Do it; whatever fails comes out as a BrokerError, and a term that may be out of step ends."""
        try:
            return self._answer(work)
        except ControllerMovedError as error:
            log.info("another controller was elected: %s", error)
            self._drop_term()
            self._controller_id = -1
            self._events.notice(self._on_controller_change)
            raise BrokerError(ErrorCode.NOT_CONTROLLER, str(error)) from error
        except UnforeseenError:
            self._drop_term()
            raise

    def _answer(self, work: Callable[[], _T]) -> _T:
        if self._is_stopping:
            raise self._stopped()
        return answer_of(work)

    def look_at(self, handle: Callable[[Term], None]) -> None:
        """Serve a notice: nothing to do for who is not the controller."""
        try:
            self._attempt(lambda: handle(self._term) if self._term is not None else None)
        except BrokerError as error:
            log.warning("the controller could not act: %s", error)

    # Being elected

    def _required_term(self) -> Term:
        if self._term is None and (not self._is_informed or self._controller_id in (-1, self._broker_id)):
            self._take_part()
        if self._term is None:
            reason = f"broker {self._controller_id}" if self._controller_id >= 0 else "nobody yet"
            raise BrokerError(ErrorCode.NOT_CONTROLLER, f"The controller is {reason}.")
        return self._term

    def _take_part(self) -> None:
        """Find out who is the controller, and become it if nobody is, and this broker is registered."""
        self._is_informed = False
        store = self._election.take_part(
            self._watch_controller, has_term=self._term is not None, may_stand=not self._pause
        )
        self._controller_id = self._election.controller_id
        if not self.is_active or (store is not None and self._term is not None):
            self._drop_term()
        if store is not None:
            self._begin(store)
        self._is_informed = True

    def _begin(self, store: ControllerStore) -> None:
        """The term that was won; what fails leaves the next one to another broker."""
        try:
            self._begin_term(store)
        except (ControllerMovedError, OutOfReachError):
            # Deposed already, or the session that `/controller` belongs to is gone.
            raise
        except Exception:
            self._failed_beginnings += 1
            self._pause = min(self._failed_beginnings, MAX_PAUSE)
            log.warning("the term could not begin epoch=%d failures=%d", store.epoch, self._failed_beginnings)
            self._controller_id = -1
            self._election.resign()
            raise
        self._failed_beginnings = 0

    def _begin_term(self, store: ControllerStore) -> None:
        term = Term(store, self._channels, self._broker_id, self._settings, self._wake, self._configs_changed)
        context = term.context
        context.brokers = store.live_brokers(self._brokers.changed)
        term.channels.update_brokers(context.brokers.values())
        agree(term)
        self._topic_nodes.load(term)
        term.deletions.foresee(is_enabled=self._settings.current.delete_topic_enable)
        # Before any order: nobody follows a leader that it has not heard of. And of everything at once: a broker that
        # has just begun answers clients from the first that it is told, who would take topics for deleted.
        term.publish_all(context.brokers)
        term.start()
        self._forget_term()
        self._term = term
        self._is_balanced = False
        term.settle()
        for look in self._looks:
            look.look(term)
        log.info(
            "controller elected, epoch=%d brokers=%d topics=%d partitions=%d",
            store.epoch,
            len(context.brokers),
            context.topic_count,
            context.partition_count,
        )

    def _join(self) -> None:
        self._take_part()
        self._features.look()

    def _drop_term(self) -> None:
        """Stop acting; should `/controller` still be ours, the next request elects again."""
        self._forget_term()
        # What brokers were still to be told is void, and nobody says any more which of them are gone.
        self._channels.update_brokers(())

    def _forget_term(self) -> None:
        if self._term is not None:
            self._unclean_elections += self._term.context.unclean_election_count
        self._term = None

    def _resign(self) -> None:
        self._drop_term()
        self._controller_id = -1
        self._election.resign()

    def _stopped(self) -> BrokerError:
        return BrokerError(ErrorCode.NOT_CONTROLLER, "The controller stops.")

    # Notices: each looks at one thing and sets the watch anew

    def _on_controller_change(self) -> None:
        try:
            self._attempt(self._take_part)
        except BrokerError as error:
            log.warning("no part taken in the election: %s", error)

    def _on_resume(self) -> None:
        self._pause = max(self._pause - 1, 0)
        if self._term is None and not self._pause:
            self._on_controller_change()

    def _on_session(self) -> None:
        """The session was lost: the term is over, and the broker's epoch. With another one, appear and stand again."""
        if self._registration.is_current():
            return
        self._drop_term()
        self._controller_id = -1
        self._is_informed = self._features.is_heard = False
        if not self._registration.end():
            return

        def rejoin() -> None:
            self._registration.renew()
            self._join()

        try:
            self._attempt(rejoin)
        except BrokerError as error:
            # `resume` comes again.
            log.warning("the broker could not rejoin the cluster yet: %s", error)

    def _on_answers(self) -> None:
        self.look_at(lambda term: term.settle())

    def _on_leaderless(self) -> None:
        def retry(term: Term) -> None:
            term.partitions.retry_leaderless()
            term.settle()

        self.look_at(retry)

    def _on_imbalance(self) -> None:
        self._is_balanced = True
        settings = self._settings.current
        if settings.auto_leader_rebalance_enable:
            self.look_at(lambda term: balance_leaders(term, settings.leader_imbalance_per_broker_percentage))

    def _on_replicas_arrived(self) -> None:
        def finish(term: Term) -> None:
            term.reassignments.finish()
            term.settle()

        self.look_at(finish)

    def look_at_features(self) -> None:
        """On the controller's thread, as every broker does."""
        self._features.look()

    def _on_other_features(self) -> None:
        try:
            self._answer(self._features.look)
        except BrokerError as error:
            log.warning("what the cluster agrees on is not known: %s", error)

    # On the registry's thread, which they must not hold

    def _watch_controller(self, event: WatchEvent) -> None:
        self._events.notice(self._on_controller_change)

    def _watch_features(self, event: WatchEvent) -> None:
        self._events.notice(self._on_other_features)

    def _on_session_event(self, event: SessionEvent) -> None:
        self._registration.heard(event)
        self._events.notice(self._on_session)

    def _wake(self) -> None:
        """Answers came; on the controller's own thread whoever sent is about to look."""
        if threading.current_thread() is not self._thread:
            self._events.notice(self._on_answers)
