"""This broker's place in its cluster: its registration, its candidacy, and what the controller is told of its disks."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kavka.broker.partitions.disk_notices import DiskNotices
from kavka.broker.partitions.local_broker import LocalBroker
from kavka.broker.partitions.producer_ids import ProducerIds
from kavka.broker.partitions.refused_orders import RETRY_MS
from kavka.cluster.broker_registration import BrokerRegistration
from kavka.cluster.controller import Controller
from kavka.cluster.ports import LocalChannels
from kavka.cluster.znodes.notifications import LogDirEvent
from kavka.config.topic_config import validate_topic_overrides

if TYPE_CHECKING:
    from kavka.broker.services import Services
    from kavka.broker.waiting.scheduler import Scheduler
    from kavka.cluster.config_notifications import ConfigNotificationListener
    from kavka.cluster.znodes.broker import BrokerInfo

ELECTION_TIMEOUT_S: Final = 30

Undo = Callable[[Callable[[], None]], object]


class Membership:
    """From the registration to the end of the broker.

    Threads: `join` is called once, by the thread that starts the broker; afterwards any thread.
    """

    __slots__ = ("_disk_notices", "_now_ms", "_registration", "_scheduler", "_services")

    def __init__(self, services: "Services", scheduler: "Scheduler", now_ms: Callable[[], int]) -> None:
        self._services = services
        self._scheduler = scheduler
        self._now_ms = now_ms
        self._registration: BrokerRegistration | None = None

    _disk_notices: DiskNotices

    def join(self, info: "BrokerInfo", notifications: "ConfigNotificationListener", undo: Undo) -> None:
        """Register, and have the controller elected: afterwards this broker leads what it leads.

        `undo` is given what a stop has to take back, step by step. Raises RegistryError, BrokerError, TimeoutError.
        """
        services = self._services
        registration = self._registration = BrokerRegistration(services.registry, info, self._now_ms)
        registration.register()
        undo(registration.unregister)
        local_broker = services.local_broker = LocalBroker(services.replicas, services.metadata, lambda: self.epoch)
        controller = services.controller = Controller(
            services.registry,
            services.broker_id,
            LocalChannels(services.broker_id, local_broker),
            services.config,
            self._now_ms,
            check_topic_config=lambda overrides: validate_topic_overrides(overrides, services.config.current),
            config_notifications=notifications,
            reregister=registration.register,
        )
        services.producer_ids = ProducerIds(lambda: controller.allocate_producer_id_block(services.broker_id))
        started = controller.start()
        undo(controller.stop)
        started.result(ELECTION_TIMEOUT_S)
        self._disk_notices = DiskNotices(services.replicas, self._publish_disk_notice)
        self._scheduler.every("refused-orders", lambda: RETRY_MS, self._disk_notices.retry)
        self._scheduler.every("controller-term", lambda: RETRY_MS, controller.resume)

    @property
    def epoch(self) -> int:
        """The broker's epoch (KIP-380): that of its registration, another one when a session ended; -1 before."""
        return -1 if self._registration is None else self._registration.broker.epoch

    def update(self, info: "BrokerInfo") -> None:
        """Announce other endpoints: the controller hears of it by the registration, and tells all."""
        if self._registration is not None:
            self._registration.update(info)

    def directory_failed(self, path: Path) -> None:
        """A log directory is gone with its partitions: say so. Only after `join`."""
        self._services.replicas.directory_failed([path])
        self._disk_notices.tell()

    def _publish_disk_notice(self) -> None:
        services = self._services
        services.registry.create(LogDirEvent.PREFIX, LogDirEvent.encode(services.broker_id), sequential=True)
