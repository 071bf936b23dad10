"""This broker's place in its cluster: its registration, its candidacy, and what the controller is told of its disks."""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kavka.broker.metrics.gauges import register_broker_state
from kavka.broker.partitions.disk_notices import DiskNotices
from kavka.broker.partitions.local_broker import LocalBroker
from kavka.broker.partitions.producer_ids import ProducerIds
from kavka.broker.partitions.refused_orders import RETRY_MS
from kavka.broker.registry_choice import registration_patience_s
from kavka.cluster.broker_registration import BrokerRegistration
from kavka.cluster.controller import Controller
from kavka.cluster.features import NOTHING_AGREED, FinalizedFeatures, check_supported, read_features
from kavka.cluster.ports import BrokerChannels, LocalChannels
from kavka.cluster.promise import Promise
from kavka.cluster.registry.base import RegistryError
from kavka.cluster.znodes.controller import CONTROLLER_PATH
from kavka.cluster.znodes.json_data import ZnodeError
from kavka.cluster.znodes.notifications import LogDirEvent
from kavka.config.topic_config import validate_topic_overrides
from kavka.protocol.errors import BrokerError

if TYPE_CHECKING:
    from kavka.broker.interbroker.cluster_links import ClusterLinks
    from kavka.broker.metadata.metadata_cache import MetadataSnapshot
    from kavka.broker.services import Services
    from kavka.broker.waiting.scheduler import Scheduler
    from kavka.cluster.config_notifications import ConfigNotificationListener
    from kavka.cluster.znodes.broker import BrokerInfo

LONG_ELECTION_S: Final = 30.0
OUT_OF_TOUCH_MS: Final = 3_000
STARTING, RUNNING, HANDING_OVER, STOPPING = 1, 3, 6, 7
"""As Kafka numbers a broker's states; what it has besides (recovering) is over before a broker has metrics."""

Undo = Callable[[Callable[[], None]], object]
TopicPartition = tuple[str, int]

log = logging.getLogger(__name__)


class Membership:
    """From the registration to the end of the broker.

    Threads: `prepare`, `join` and `hand_over` are called once each, in this order, by the thread that starts and stops
    the broker; the rest by any.
    """

    __slots__ = (
        "_announced",
        "_announcing",
        "_cluster_changed",
        "_controller",
        "_disk_notices",
        "_is_settled",
        "_links",
        "_now_ms",
        "_on_fatal",
        "_registration",
        "_scheduler",
        "_services",
        "_state",
    )

    def __init__(
        self,
        services: "Services",
        scheduler: "Scheduler",
        now_ms: Callable[[], int],
        on_fatal: Callable[[str], None],
    ) -> None:
        """`on_fatal(reason)` is called, by any thread, when the broker may not be in its cluster any more."""
        self._on_fatal = on_fatal
        self._services = services
        self._scheduler = scheduler
        self._now_ms = now_ms
        self._registration: BrokerRegistration | None = None
        self._links: ClusterLinks | None = None
        self._state = STARTING
        self._is_settled = False
        self._announced: BrokerInfo | None = None
        """Endpoints that the registration does not have yet."""
        self._announcing = threading.Lock()
        """One after the other, so that the last ones stay: held over the registry, by background threads alone."""
        self._cluster_changed = threading.Event()
        """Set by whoever brings other metadata; cleared by `hand_over`, which alone waits for it."""

    _controller: Controller
    _disk_notices: DiskNotices

    def prepare(
        self, info: "BrokerInfo", notifications: "ConfigNotificationListener", links: "ClusterLinks | None"
    ) -> None:
        """Make what requests need; `links` to the others of a cluster, None for a broker that stands alone.

        Raises BrokerError when the cluster has agreed on a feature that this broker lacks.
        """
        services = self._services
        services.features = self._agreed_features()
        check_supported(services.features)
        self._links = links
        register_broker_state(services.metrics, lambda: self._state)
        registration = self._registration = BrokerRegistration(services.registry, info, self._now_ms)
        local_broker = services.local_broker = LocalBroker(
            services.replicas,
            services.metadata,
            lambda: self.latest_epoch,
            None if links is None else partial(notifications.read_topics, on_unknown=services.config.topic_unknown),
            self._made_anew,
        )
        channels: BrokerChannels = (
            LocalChannels(services.broker_id, local_broker) if links is None else links.channels(local_broker)
        )
        controller = self._controller = services.controller = Controller(
            services.registry,
            services.broker_id,
            channels,
            services.config,
            self._now_ms,
            check_topic_config=lambda overrides: validate_topic_overrides(overrides, services.config.current),
            config_notifications=notifications,
            registration=registration,
            on_features=self._agreed,
            applies_configs=links is None,
        )
        if links is None:
            services.elected_controller = controller
            services.producer_ids = ProducerIds(lambda: controller.allocate_producer_id_block(services.broker_id))
        else:
            services.metadata.on_change(self.cluster_changed)
            services.elected_controller = links.connect(controller)
            services.producer_ids = ProducerIds(links.allocate_producer_id_block)
        self._disk_notices = DiskNotices(services.replicas, self._publish_disk_notice)

    def join(self, undo: Undo) -> None:
        """Register, and stand for election. A broker that stands alone leads afterwards what it leads; in a cluster,
        as in Kafka, nobody waits: there may be much to tell, another controller, or none for a while.

        `undo` is given what a stop has to take back, step by step. Raises RegistryError, BrokerError.
        """
        assert self._registration is not None
        if self._links is not None:
            self._links.start()
            undo(self._links.stop)
        self._registration.register(registration_patience_s(self._services.config.current))
        self._services.local_broker.registered()
        undo(self._registration.unregister)
        if self._links is not None:
            # Until now they could be raised without this broker, which nobody knew.
            check_supported(self._agreed_features())
        started = self._controller.start()
        undo(self._controller.stop)
        if self._links is None:
            _wait_for(started)
        else:
            started.watch(_tell_of_election)
        self._scheduler.every("refused-orders", lambda: RETRY_MS, self._disk_notices.retry)
        # Both only post to the controller's thread.
        upkeep = self._scheduler if self._links is None else self._links.upkeep
        upkeep.every("controller-term", lambda: RETRY_MS, self._controller.resume)
        if self._links is not None:
            self._scheduler.every("announcements", lambda: RETRY_MS, self._announce)
        upkeep.every("leader-balance", self._balance_interval_ms, self._controller.balance_leaders)
        self._services.config.on_topic_change(lambda topic, overrides: self._controller.settings_changed())
        self._services.config.on_broker_change(self._controller.settings_changed)
        self._state = RUNNING

    def hand_over(self) -> None:
        """Before the stop: have the controller move leaderships to others, while all that is led here is served.

        Gives up after `controlled.shutdown.max.retries` tries, and at once when nobody is left who could take over: all
        other replicas of what is led here are on brokers that are not alive. Kafka's last broker tries on. While the
        registry is out of reach, without which the controller elects nobody, one short try is made.
        """
        self._state = HANDING_OVER
        self._hand_over()
        self._state = STOPPING

    def _hand_over(self) -> None:
        config = self._services.config.current
        if self._links is None or not config.controlled_shutdown_enable:
            return
        for left in reversed(range(config.controlled_shutdown_max_retries)):
            led: list[TopicPartition] | None = None
            timeout_ms = config.controller_socket_timeout_ms
            is_in_touch = self._is_in_touch()
            if not is_in_touch:
                # Mostly the controller is not either, and waits for it; but it may be this broker alone.
                timeout_ms = min(timeout_ms, OUT_OF_TOUCH_MS)
            try:
                led = self._links.controller.controlled_shutdown(timeout_ms).result(timeout_ms / 1000 + 1)
            except (BrokerError, TimeoutError) as failure:
                log.warning("leaderships could not be handed over tries.left=%d error=%r", left, str(failure))
            else:
                if not led:
                    log.info("leaderships are handed over")
                    return
                log.warning("nobody else can lead partitions=%d first=%s-%d tries.left=%d", len(led), *led[0], left)
            if not is_in_touch:
                log.info("the registry is out of reach: nothing more is handed over")
                return
            if left and not self._wait_for_takers(led, config.controlled_shutdown_retry_backoff_ms / 1000):
                log.info("no other broker with a replica is alive: nothing more is handed over")
                return

    def _is_in_touch(self) -> bool:
        """Whether the registry answers. It is told by now that this broker stops, and waits for no connection."""
        try:
            self._services.registry.exists(CONTROLLER_PATH)
        except RegistryError:
            return False
        return True

    def _wait_for_takers(self, led: Iterable[TopicPartition] | None, pause_s: float) -> bool:
        """Let the pause before the next try go by; False as soon as no other broker lives that could lead one of these.

        None for `led`: nobody has said what they are, so that any other broker will do.
        """
        end_s = time.monotonic() + pause_s
        while True:
            self._cluster_changed.clear()
            if not self._has_takers(led):
                return False
            left_s = end_s - time.monotonic()
            if left_s <= 0 or not self._cluster_changed.wait(left_s):
                return True

    def _has_takers(self, led: Iterable[TopicPartition] | None) -> bool:
        known, own_id = self._services.metadata.current, self._services.broker_id
        others = known.brokers.keys() - {own_id}
        if led is None:
            return bool(others)
        found = (known.partition(topic, index) for topic, index in led)
        return any(not others.isdisjoint(each.replicas) for each in found if each is not None)

    def cluster_changed(self, old: "MetadataSnapshot", new: "MetadataSnapshot") -> None:
        """Listens to the metadata."""
        self._cluster_changed.set()

    def is_settled(self) -> bool:
        """Whether this broker has heard of the cluster, and leads or follows all that it is to; once it did, it did.

        Looks at all partitions of the cluster until then.
        """
        if not self._is_settled:
            broker_id, hosted = self._services.broker_id, self._services.replicas.partitions
            known = self._services.metadata.current
            self._is_settled = bool(known.brokers) and all(
                (topic.name, partition.partition_index) in hosted
                for topic in known.topics.values()
                for partition in topic
                if broker_id in partition.replicas
            )
        return self._is_settled

    @property
    def epoch(self) -> int:
        """The broker's epoch (KIP-380): that of its registration, another one when a session ended; -1 before."""
        return -1 if self._registration is None else self._registration.broker.epoch

    @property
    def latest_epoch(self) -> int:
        """See `BrokerRegistration.latest_epoch`."""
        return -1 if self._registration is None else self._registration.latest_epoch

    def update(self, info: "BrokerInfo") -> None:
        """Announce other endpoints: the controller hears of it by the registration, and tells all.

        In a cluster soon: whoever changes settings holds their lock, and the registry may be out of reach.
        """
        if self._links is None:
            if self._registration is not None:
                self._registration.update(info)
            return
        self._announced = info
        self._scheduler.soon(self._announce)

    def directory_failed(self, path: Path) -> None:
        """A log directory is gone with its partitions: say so. Only after `prepare`."""
        self._services.replicas.directory_failed([path])
        self._disk_notices.tell()

    def _made_anew(self, topic: str) -> None:
        """What is known of that name's settings was another topic's. Waits for nothing."""
        self._services.config.topic_made_anew(topic)
        self._services.logs.forget_topic_config(topic)

    def _announce(self) -> None:
        """What was to be announced last. What can't be now is in the next pass, or by the next registration."""
        with self._announcing:
            info, self._announced = self._announced, None
            if info is None or self._registration is None:
                return
            try:
                self._registration.update(info)
            except RegistryError as error:
                log.warning("other endpoints are not announced yet: %s", error)
                self._announced = self._announced or info

    def _agreed_features(self) -> FinalizedFeatures:
        """As they are now; nothing that cannot be read is agreed on, so that nobody uses what others may lack."""
        try:
            return read_features(self._services.registry)
        except ZnodeError as error:
            log.error("no features are used: %s", error)
            return NOTHING_AGREED

    def _agreed(self, features: FinalizedFeatures) -> None:
        try:
            check_supported(features)
        except BrokerError as failure:
            self._on_fatal(str(failure.message))
            return
        self._services.features = features

    def _balance_interval_ms(self) -> float:
        return 1000 * self._services.config.current.leader_imbalance_check_interval_seconds

    def _publish_disk_notice(self) -> None:
        services = self._services
        services.registry.create(LogDirEvent.PREFIX, LogDirEvent.encode(services.broker_id), sequential=True)


def _wait_for(started: Promise[None]) -> None:
    """Until all that this broker has is led, however long that takes."""
    while True:
        try:
            return started.result(LONG_ELECTION_S)
        except TimeoutError:
            log.warning("partitions are still being led for the first time")


def _tell_of_election(_: None, failure: BaseException | None) -> None:
    if failure is not None:
        log.warning("no part taken in the election yet: %s", failure)
