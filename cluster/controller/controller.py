"""The controller as this broker's own parts and its requests see it: what may be asked of it.

What it does is told on one thread, one request after the other, see `candidacy`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from kavka.cluster.broker_registration import BrokerRegistration
from kavka.cluster.config_notifications import ConfigNotificationListener
from kavka.cluster.controller.answers import answer_of
from kavka.cluster.controller.broker_changes import shut_down
from kavka.cluster.controller.candidacy import Candidacy
from kavka.cluster.controller.context import TopicPartition
from kavka.cluster.controller.elect_leaders import elect_leaders
from kavka.cluster.controller.feature_levels import update_features
from kavka.cluster.controller.isr_changes import alter_partitions
from kavka.cluster.controller.producer_id_blocks import allocate_block
from kavka.cluster.controller.reassignment_requests import alter_reassignments, list_reassignments
from kavka.cluster.controller.requests import (
    ConfigEntity,
    ControllerStats,
    ElectionType,
    FeatureUpdate,
    NewPartitions,
    NewTopic,
    ProducerIdBlock,
    TopicResult,
)
from kavka.cluster.controller.term import Term
from kavka.cluster.controller.topics import CheckConfig, CountPartitions, TopicChanges
from kavka.cluster.entity_configs import ConfigUpdate, write_config
from kavka.cluster.features import FinalizedFeatures
from kavka.cluster.ports import BrokerChannels, ConfigHolder
from kavka.cluster.promise import Promise
from kavka.cluster.registry.base import InvalidNodeError, Registry
from kavka.cluster.znodes.json_data import ZnodeError
from kavka.cluster.znodes.topic import PartitionAssignment
from kavka.config.errors import ConfigError
from kavka.config.topic_config import validate_topic_overrides
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse

_T = TypeVar("_T")


class Controller:
    """Candidate for, and while elected the one, controller of the cluster.

    Every public method may be called by any thread but the registry's; work happens on the controller's own thread, and
    promises are settled there, or where this broker's orders or configurations are done, so that a watcher of one must
    be short, and take no lock that is held over a disk. While another broker is the controller,
    promises fail with BrokerError(NOT_CONTROLLER).
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
        registration: BrokerRegistration | None = None,
        on_features: Callable[[FinalizedFeatures], object] = lambda features: None,
        applies_configs: bool = True,
        placement_seed: int | None = None,
    ) -> None:
        """`channels` is LocalChannels(broker_id, port) for a broker that stands alone. `config_notifications` is made
        to catch up before `alter_configs` answers. `registration` is renewed when a session of the registry was lost.
        `on_features` is told what the cluster has agreed on when that is first read, and whenever it changes.
        `applies_configs`: on this controller's thread, which waits for the disks then. Else `config_notifications` does
        so on its own, which also writes them, and brokers read the configurations of topics that they hear of.
        """
        self._registry = registry
        self._channels = channels
        self._applies_configs = applies_configs
        self._config_notifications = config_notifications
        self._check_topic_config = check_topic_config
        self._topics = TopicChanges(check_topic_config, placement_seed)
        self._candidacy = Candidacy(
            registry,
            broker_id,
            channels,
            settings,
            now_ms,
            take_deletion_wishes=self._topics.take_deletion_wishes,
            configs_changed=self._configs_changed,
            registration=registration,
            on_features=on_features,
        )

    def start(self) -> Promise[None]:
        """Join the election. Done when it is decided and, if won, when all brokers were told what they lead."""
        return self._candidacy.start()

    def stop(self) -> None:
        """Resign if elected, fail what waits, join the thread."""
        self._candidacy.stop()

    @property
    def is_active(self) -> bool:
        """Whether this broker is the controller; after a failure it still is, and the next request starts over."""
        return self._candidacy.is_active

    @property
    def controller_id(self) -> int:
        """The broker that is the controller as far as is known here, or -1."""
        return self._candidacy.controller_id

    def stats(self) -> ControllerStats:
        """Counts for metrics; zeros while another broker is the controller, but for what this one has done before."""
        return self._candidacy.stats()

    def create_topics(
        self, topics: Sequence[NewTopic], validate_only: bool = False, count: CountPartitions | None = None
    ) -> Promise[list[TopicResult]]:
        """One result a topic, in order. Answers when the leaders here took over and the metadata is published.

        `count(partitions)` is called before a topic is made, on the controller's thread, and may raise BrokerError.
        """
        return self._once_told(
            self._candidacy.in_term(lambda term: self._topics.create(term, topics, validate_only, count))
        )

    def delete_topics(
        self, names: Sequence[str], count: CountPartitions | None = None
    ) -> Promise[dict[str, BrokerError | None]]:
        """Answers when the topics are gone from the metadata; replicas on dead brokers are deleted on their return.

        `count`: see `create_topics`.
        """
        return self._once_told(self._candidacy.in_term(lambda term: self._topics.delete(term, names, count)))

    def create_partitions(
        self, growths: Sequence[NewPartitions], validate_only: bool = False, count: CountPartitions | None = None
    ) -> Promise[dict[str, BrokerError | None]]:
        """Answers like `create_topics`."""
        return self._once_told(
            self._candidacy.in_term(lambda term: self._topics.grow(term, growths, validate_only, count))
        )

    def alter_configs(
        self, entity: ConfigEntity, update: Mapping[str, str] | ConfigUpdate, validate_only: bool = False
    ) -> Promise[None]:
        """Replace an entity's configuration, on any broker. Answers when this broker's listeners have applied it.

        A function given as `update` gets what is stored and gives what shall be; it runs again if another writer was
        faster. A topic's configuration is validated here (INVALID_CONFIG), a broker's is the caller's to validate.
        UNKNOWN_SERVER_ERROR: it is stored, but could not be applied here.
        """
        write = partial(self._write_config, entity, update, validate_only)
        notifications = self._config_notifications
        if notifications is None or self._applies_configs:
            return self._candidacy.submit(write)
        # `update` may wait for who applies settings, and he for a disk: the term is not to.
        written = notifications.write(partial(answer_of, write))
        return written if validate_only else written.then(lambda _: _check_applied(notifications, entity))

    def allocate_producer_id_block(self, broker_id: int, broker_epoch: int = -1) -> Promise[ProducerIdBlock]:
        """A thousand producer ids that nobody else gets.

        BROKER_ID_NOT_REGISTERED, STALE_BROKER_EPOCH: that broker is not alive, or not with that epoch (-1: any).
        """
        return self._candidacy.in_term(lambda term: allocate_block(self._registry, term, broker_id, broker_epoch))

    def alter_partition(self, request: AlterPartitionRequest) -> Promise[AlterPartitionResponse]:
        """A leader's wish for another ISR (KIP-497), see `isr_changes`."""
        return self._candidacy.in_term(lambda term: self._alter_partitions(term, request))

    def alter_reassignments(
        self, targets: Mapping[TopicPartition, Sequence[int] | None], *, allow_factor_change: bool = True
    ) -> Promise[dict[TopicPartition, BrokerError | None]]:
        """Begin to move partitions to these replicas, or with None end a move (KIP-455). Answers when it has begun."""
        return self._candidacy.in_term(
            lambda term: alter_reassignments(term, targets, allow_factor_change=allow_factor_change)
        )

    def list_reassignments(
        self, partitions: Sequence[TopicPartition] | None
    ) -> Promise[dict[TopicPartition, PartitionAssignment]]:
        """Those of `partitions`, or with None of all, that are on the move."""
        return self._candidacy.in_term(lambda term: list_reassignments(term, partitions))

    def update_features(self, updates: Sequence[FeatureUpdate], *, validate_only: bool = False) -> Promise[None]:
        """Change what the cluster agrees on, see `feature_levels`. Answers when this broker goes by it."""
        return self._candidacy.in_term(lambda term: self._update_features(term, updates, validate_only))

    def elect_leaders(
        self, election: ElectionType, partitions: Sequence[tuple[str, int]] | None
    ) -> Promise[dict[tuple[str, int], BrokerError | None]]:
        """For these partitions, or with None for all that need it."""
        return self._once_told(self._candidacy.in_term(lambda term: elect_leaders(term, election, partitions)))

    def controlled_shutdown(self, broker_id: int, broker_epoch: int) -> Promise[list[tuple[str, int]]]:
        """Move leadership away from a broker that stops; answers with the partitions that it still leads."""
        return self._candidacy.in_term(lambda term: shut_down(term, broker_id, broker_epoch))

    def resume(self) -> None:
        """Have a term that failed, or a registration, followed by another one; to be called now and then.

        Requests do so, too, but partitions without a leader and deletions wait for none. A term that began since has
        its leaders balanced. Returns at once.
        """
        self._candidacy.resume()

    def balance_leaders(self) -> None:
        """Give leadership back to preferred replicas; to be called every `leader.imbalance.check.interval.seconds`.

        Returns at once; nothing happens where `auto.leader.rebalance.enable` is off, or on other brokers.
        """
        self._candidacy.balance_leaders()

    def settings_changed(self) -> None:
        """A topic's settings, or the brokers', are others: perhaps a replica that is behind may lead now.

        Returns at once.
        """
        self._candidacy.settings_changed()

    def _once_told(self, outcome: Promise[_T]) -> Promise[_T]:
        """The same, but not before this broker has done what it was told for it, as Kafka's waits for its metadata."""
        return outcome.then(self._told)

    # On the controller's thread

    def _told(self, outcome: _T) -> _T | Promise[_T]:
        done = self._channels.done_so_far()
        return outcome if done is None else done.then(lambda _: outcome)

    def _alter_partitions(self, term: Term, request: AlterPartitionRequest) -> AlterPartitionResponse:
        response = alter_partitions(term, request)
        if term.reassignments.may_finish:
            # After the answer: what completes has another leader epoch, and the leader hears of that in its own time.
            self._candidacy.replicas_arrived()
        return response

    def _update_features(self, term: Term, updates: Sequence[FeatureUpdate], validate_only: bool) -> None:
        try:
            update_features(term, updates, validate_only=validate_only)
        except ZnodeError as error:
            raise BrokerError(ErrorCode.FEATURE_UPDATE_FAILED, str(error)) from None
        self._candidacy.look_at_features()

    def _configs_changed(self, topics: Sequence[str]) -> None:
        if self._applies_configs and self._config_notifications is not None and topics:
            self._config_notifications.refresh([f"topics/{topic}" for topic in topics])

    def _write_config(
        self, entity: ConfigEntity, update: Mapping[str, str] | ConfigUpdate, validate_only: bool
    ) -> None:
        """On that of `config_notifications`, unless this controller applies configurations."""

        def checked(stored: dict[str, str]) -> dict[str, str]:
            config = update(stored) if callable(update) else dict(update)
            if entity.kind == "topics":
                try:
                    self._check_topic_config(config)
                except ConfigError as error:
                    raise BrokerError(ErrorCode.INVALID_CONFIG, str(error)) from None
            return config

        try:
            write_config(self._registry, entity.path, checked, validate_only=validate_only)
        except InvalidNodeError as error:
            raise BrokerError(ErrorCode.INVALID_REQUEST, str(error)) from None
        except ZnodeError as error:
            raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from None
        if self._applies_configs and self._config_notifications is not None and not validate_only:
            self._config_notifications.catch_up()
            _check_applied(self._config_notifications, entity)


def _check_applied(notifications: ConfigNotificationListener, entity: ConfigEntity) -> None:
    """Raises BrokerError where what is stored is not what holds here."""
    if (failure := notifications.failure_of(entity.path)) is not None:
        raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, f"The change is stored, but not applied: {failure}")
