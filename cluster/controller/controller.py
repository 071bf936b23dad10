"""The elected controller: one thread draining a bounded queue of events.

Elected through the ephemeral `/controller`; every election counts up `/controller_epoch` in the same transaction, and
all writes of a term are conditional on it. When something fails half way (the registry's disk is full, say), memory may
have gone ahead of the tree: the term ends, and the next request, or `resume`, begins a new one that reads everything
again.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from kavka.cluster.config_notifications import ConfigNotificationListener
from kavka.cluster.controller.broker_changes import on_broker_change, on_isr_changes, on_log_dir_events, shut_down
from kavka.cluster.controller.candidacy import Candidacy
from kavka.cluster.controller.elect_leaders import elect_leaders
from kavka.cluster.controller.event_queue import EventQueue
from kavka.cluster.controller.isr_changes import alter_partitions
from kavka.cluster.controller.producer_id_blocks import allocate_block
from kavka.cluster.controller.requests import (
    ConfigEntity,
    ControllerStats,
    ElectionType,
    NewPartitions,
    NewTopic,
    ProducerIdBlock,
    TopicResult,
)
from kavka.cluster.controller.store import ControllerMovedError
from kavka.cluster.controller.term import Term
from kavka.cluster.controller.topics import CheckConfig, TopicChanges
from kavka.cluster.entity_configs import ConfigUpdate, write_config
from kavka.cluster.ports import BrokerChannels, ConfigHolder
from kavka.cluster.promise import Promise
from kavka.cluster.registry.base import Registry, RegistryError, SessionEvent, WatchEvent
from kavka.config.errors import ConfigError
from kavka.config.topic_config import validate_topic_overrides
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse

log = logging.getLogger(__name__)

_T = TypeVar("_T")


class Controller:
    """Candidate for, and while elected the one, controller of the cluster.

    Every public method may be called by any thread but the registry's; work happens on the controller's own thread, and
    promises are settled there, so that a watcher of one must be short. While another broker is the controller,
    promises fail with BrokerError(NOT_CONTROLLER).

    Threads: `_term` and `_controller_id` are written by the controller's thread, and read by any.
    """

    def __init__(
        self,
        registry: Registry,
        broker_id: int,
        channels: BrokerChannels,
        settings: ConfigHolder,
        now_ms: Callable[[], int],
        *,
        config_notifications: ConfigNotificationListener | None = None,
        check_topic_config: CheckConfig = validate_topic_overrides,
        reregister: Callable[[], object] | None = None,
        placement_seed: int | None = None,
    ) -> None:
        """`channels` is LocalChannels(broker_id, port) for a broker that stands alone. `config_notifications` is made
        to catch up before `alter_configs` answers. `reregister` runs when a new session of the registry stands.
        """
        self._registry = registry
        self._channels = channels
        self._settings = settings
        self._config_notifications = config_notifications
        self._check_topic_config = check_topic_config
        self._reregister = reregister
        self._candidacy = Candidacy(registry, broker_id, now_ms)
        self._topics = TopicChanges(check_topic_config, placement_seed)
        self._events = EventQueue()
        self._term: Term | None = None
        self._broker_id = broker_id
        self._controller_id = -1
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name="kavka-controller", daemon=True)

    def start(self) -> Promise[None]:
        """Join the election. Done when it is decided and, if won, when all brokers were told what they lead."""
        self._registry.on_session_event(self._on_session_event)
        started = self._submit(self._take_part)
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
        """Whether this broker is the controller; after a failure it still is, and the next request starts over."""
        return self._controller_id == self._broker_id

    @property
    def controller_id(self) -> int:
        """The broker that is the controller as far as is known here, or -1."""
        return self._controller_id

    def stats(self) -> ControllerStats:
        """Counts for metrics; zeros while another broker is the controller."""
        term = self._term
        if term is None:
            return ControllerStats(False, 0, 0, 0, 0)
        context = term.context
        return ControllerStats(
            True,
            context.topic_count,
            context.partition_count,
            context.offline_partition_count,
            context.unclean_election_count,
        )

    def create_topics(self, topics: Sequence[NewTopic], validate_only: bool = False) -> Promise[list[TopicResult]]:
        """One result a topic, in order. Answers when the leaders here took over and the metadata is published."""
        return self._in_term(lambda term: self._topics.create(term, topics, validate_only))

    def delete_topics(self, names: Sequence[str]) -> Promise[dict[str, BrokerError | None]]:
        """Answers when the topics are gone from the metadata; replicas on dead brokers are deleted on their return."""
        return self._in_term(lambda term: self._topics.delete(term, names))

    def create_partitions(
        self, growths: Sequence[NewPartitions], validate_only: bool = False
    ) -> Promise[dict[str, BrokerError | None]]:
        """Answers like `create_topics`."""
        return self._in_term(lambda term: self._topics.grow(term, growths, validate_only))

    def alter_configs(
        self, entity: ConfigEntity, update: Mapping[str, str] | ConfigUpdate, validate_only: bool = False
    ) -> Promise[None]:
        """Replace an entity's configuration, on any broker. Answers when this broker's listeners have applied it.

        A function given as `update` gets what is stored and gives what shall be; it runs again if another writer was
        faster. A topic's configuration is validated here (INVALID_CONFIG), a broker's is the caller's to validate.
        UNKNOWN_SERVER_ERROR: it is stored, but could not be applied here.
        """
        return self._submit(lambda: self._alter_configs(entity, update, validate_only))

    def allocate_producer_id_block(self, broker_id: int) -> Promise[ProducerIdBlock]:
        """A thousand producer ids that nobody else gets."""
        return self._in_term(lambda term: allocate_block(self._registry, term.store, broker_id))

    def alter_partition(self, request: AlterPartitionRequest) -> Promise[AlterPartitionResponse]:
        """A leader's wish for another ISR (KIP-497), see `isr_changes`."""
        return self._in_term(lambda term: alter_partitions(term, request))

    def elect_leaders(
        self, election: ElectionType, partitions: Sequence[tuple[str, int]] | None
    ) -> Promise[dict[tuple[str, int], BrokerError | None]]:
        """For these partitions, or with None for all that need it."""
        return self._in_term(lambda term: elect_leaders(term, election, partitions))

    def controlled_shutdown(self, broker_id: int, broker_epoch: int) -> Promise[list[tuple[str, int]]]:
        """Move leadership away from a broker that stops; answers with the partitions that it still leads."""
        return self._in_term(lambda term: shut_down(term, broker_id, broker_epoch))

    def resume(self) -> None:
        """Have a term that failed followed by another one, should it be this broker's part; to be called now and then.

        Requests do so, too, but partitions without a leader and deletions wait for none. Returns at once.
        """
        if self._term is None and self.is_active:
            self._events.notice(self._on_lost_term)

    # The queue

    def _in_term(self, work: Callable[[Term], _T]) -> Promise[_T]:
        return self._submit(lambda: work(self._required_term()))

    def _submit(self, work: Callable[[], _T]) -> Promise[_T]:
        promise: Promise[_T] = Promise()
        if not self._events.request(partial(promise.settle_by, partial(self._attempt, work))):
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
            if self._is_stopping:
                raise self._stopped()
            return work()
        except BrokerError:
            raise
        except ControllerMovedError as error:
            log.info("another controller was elected: %s", error)
            self._drop_term()
            self._controller_id = -1
            self._events.notice(self._on_controller_change)
            raise BrokerError(ErrorCode.NOT_CONTROLLER, str(error)) from error
        except RegistryError as error:
            log.error("the controller cannot go on: %s", error)
            self._drop_term()
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        except Exception as error:
            # The thread has to outlive any mistake.
            log.exception("the controller failed")
            self._drop_term()
            raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, repr(error)) from error

    def _look_at(self, handle: Callable[[Term], None]) -> None:
        """Serve a notice: nothing to do for who is not the controller."""
        try:
            self._attempt(lambda: handle(self._term) if self._term is not None else None)
        except BrokerError as error:
            log.warning("the controller could not act: %s", error)

    # Being elected

    def _required_term(self) -> Term:
        if self._term is None and self._controller_id in (-1, self._broker_id):
            self._take_part()
        if self._term is None:
            raise BrokerError(ErrorCode.NOT_CONTROLLER, f"The controller is broker {self._controller_id}.")
        return self._term

    def _take_part(self) -> None:
        """Find out who is the controller, and become it if nobody is."""
        store = self._candidacy.take_part(self._watch_controller, has_term=self._term is not None)
        self._controller_id = self._candidacy.controller_id
        if not self.is_active:
            self._drop_term()
        if store is None:
            return
        term = Term(store, self._channels, self._broker_id, self._settings, self._wake, self._configs_changed)
        context = term.context
        context.brokers = store.live_brokers(self._watch_brokers)
        term.channels.update_brokers(context.brokers.values())
        term.load_topics(store.topic_names(self._watch_topics))
        term.batch.publish(())
        term.replicas.start()
        term.partitions.start()
        self._term = term
        term.settle()
        self._look_at_deletions(term)
        on_isr_changes(term, self._watch_isr_changes)
        on_log_dir_events(term, self._watch_log_dirs)
        log.info(
            "controller elected, epoch=%d brokers=%d topics=%d partitions=%d",
            store.epoch,
            len(context.brokers),
            context.topic_count,
            context.partition_count,
        )

    def _drop_term(self) -> None:
        """Stop acting; should `/controller` still be ours, the next request elects again."""
        self._term = None

    def _resign(self) -> None:
        self._drop_term()
        if self.is_active:
            self._controller_id = -1
            self._candidacy.resign()

    def _stopped(self) -> BrokerError:
        return BrokerError(ErrorCode.NOT_CONTROLLER, "The controller stops.")

    # Notices: each looks at one thing and sets the watch anew

    def _on_controller_change(self) -> None:
        try:
            self._attempt(self._take_part)
        except BrokerError as error:
            log.warning("no part taken in the election: %s", error)

    def _on_lost_term(self) -> None:
        if self._term is None and self.is_active:
            self._on_controller_change()

    def _on_expired(self) -> None:
        self._drop_term()
        self._controller_id = -1

    def _on_established(self) -> None:
        def rejoin() -> None:
            if self._reregister is not None:
                self._reregister()
            self._take_part()

        self._drop_term()
        try:
            self._attempt(rejoin)
        except BrokerError as error:
            log.error("the broker could not rejoin the cluster: %s", error)

    def _on_brokers(self) -> None:
        self._look_at(lambda term: on_broker_change(term, self._watch_brokers))

    def _on_topics(self) -> None:
        self._look_at(lambda term: self._topics.look_for_changes(term, self._watch_topics))

    def _on_deletions(self) -> None:
        self._look_at(self._look_at_deletions)

    def _on_isr_changes(self) -> None:
        self._look_at(lambda term: on_isr_changes(term, self._watch_isr_changes))

    def _on_log_dirs(self) -> None:
        self._look_at(lambda term: on_log_dir_events(term, self._watch_log_dirs))

    def _on_answers(self) -> None:
        self._look_at(lambda term: term.settle())

    def _look_at_deletions(self, term: Term) -> None:
        self._topics.take_deletion_wishes(term, self._watch_deletions)

    # Watches: on the registry's thread, which they must not hold

    def _watch_controller(self, event: WatchEvent) -> None:
        self._events.notice(self._on_controller_change)

    def _watch_brokers(self, event: WatchEvent) -> None:
        self._events.notice(self._on_brokers)

    def _watch_topics(self, event: WatchEvent) -> None:
        self._events.notice(self._on_topics)

    def _watch_deletions(self, event: WatchEvent) -> None:
        self._events.notice(self._on_deletions)

    def _watch_isr_changes(self, event: WatchEvent) -> None:
        self._events.notice(self._on_isr_changes)

    def _watch_log_dirs(self, event: WatchEvent) -> None:
        self._events.notice(self._on_log_dirs)

    def _on_session_event(self, event: SessionEvent) -> None:
        self._events.notice(self._on_expired if event is SessionEvent.EXPIRED else self._on_established)

    def _wake(self) -> None:
        """Answers came; on the controller's own thread whoever sent is about to look."""
        if threading.current_thread() is not self._thread:
            self._events.notice(self._on_answers)

    def _configs_changed(self, topics: Sequence[str]) -> None:
        if self._config_notifications is not None and topics:
            self._config_notifications.refresh([f"topics/{topic}" for topic in topics])

    def _alter_configs(
        self, entity: ConfigEntity, update: Mapping[str, str] | ConfigUpdate, validate_only: bool
    ) -> None:
        def checked(stored: dict[str, str]) -> dict[str, str]:
            config = update(stored) if callable(update) else dict(update)
            if entity.kind == "topics":
                try:
                    self._check_topic_config(config)
                except ConfigError as error:
                    raise BrokerError(ErrorCode.INVALID_CONFIG, str(error)) from None
            return config

        write_config(self._registry, entity.path, checked, validate_only=validate_only)
        if self._config_notifications is None or validate_only:
            return
        self._config_notifications.catch_up()
        if (failure := self._config_notifications.failure_of(entity.path)) is not None:
            raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, f"The change is stored, but not applied: {failure}")
