"""What connects this broker with the others of its cluster, put together; only a broker in a cluster loads it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from kavka.broker.interbroker.controller_channel import ControllerChannel
from kavka.broker.interbroker.elected_controller import ElectedController
from kavka.broker.interbroker.gauges import register_inter_broker_gauges
from kavka.broker.interbroker.inter_broker import InterBroker
from kavka.broker.interbroker.link_security import LinkSecurity
from kavka.broker.interbroker.network_channels import NetworkChannels
from kavka.broker.interbroker.own_orders import OwnOrders
from kavka.broker.interbroker.settings import inter_broker_settings
from kavka.broker.interbroker.transaction_requests import LANES, TransactionRequests
from kavka.broker.partitions.alter_partition_manager import AlterPartitionManager
from kavka.broker.partitions.replication import Replication, monotonic_ms
from kavka.broker.replication.following import Following
from kavka.broker.waiting.scheduler import Scheduler
from kavka.client import Node
from kavka.cluster.controller.producer_id_blocks import take_block
from kavka.cluster.interbroker_protocol import InterBrokerProtocol
from kavka.cluster.promise import Promise

if TYPE_CHECKING:
    from kavka.broker.services import Services
    from kavka.broker.waiting.timer import Timer
    from kavka.cluster.controller import Controller
    from kavka.cluster.controller.requests import ProducerIdBlock
    from kavka.cluster.ports import BrokerPort
    from kavka.config.broker_config import BrokerConfig
    from kavka.protocol.errors import BrokerError
    from kavka.protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse


UPKEEP_THREADS: Final = 4
"""More than one, for a partition's lock may be held over a slow disk."""


class OwnEpochs(Protocol):
    """Of this broker's registrations. Any thread may read them."""

    @property
    def epoch(self) -> int:
        """-1 while none stands."""

    @property
    def latest_epoch(self) -> int:
        """That of the last one where none stands; -1 before the first."""


class ClusterLinks:
    """The `inter-broker` thread, and who has it send what.

    Threads: `start` and `stop` once each by whoever starts and stops the broker, `connect` before both; the rest any.
    """

    def __init__(
        self,
        services: "Services",
        epochs: OwnEpochs,
        scheduler: "Scheduler",
        timer: "Timer",
        on_death: Callable[[BaseException], None],
    ) -> None:
        """`services` must have settings by now, metadata before `start`. Raises OSError: no descriptors are left;
        ConfigError: connections to others cannot be as secure as they have to be."""
        config = services.config.current
        self._services: Final = services
        self._own_epoch: Final[Callable[[], int]] = lambda: epochs.epoch
        self._scheduler: Final = scheduler
        self.upkeep: Final = Scheduler(timer, UPKEEP_THREADS, on_death, "replication")
        """What keeps ISRs, and this broker's place in its cluster, up to date, and waits for no disk but by the lock of
        a partition: one that hangs soon has all of the background's threads."""
        self._on_death: Final = on_death
        self._protocol: Final = InterBrokerProtocol(config.inter_broker_protocol_version)
        self._control_listener: Final = control_listener(config)
        self._security: Final = LinkSecurity(lambda: services.config.current, self._control_listener, LANES)
        self._inter_broker: Final = InterBroker(
            inter_broker_settings(config, services.broker_id), on_death, security=self._security.of_links()
        )
        self._isr_changes: Final = AlterPartitionManager(
            services.broker_id,
            self._own_epoch,
            self._alter_partition,
            lambda delay_ms, job: timer.schedule(lambda: self.upkeep.soon(job), delay_ms),
        )
        self.replication: Final = Replication(
            monotonic_ms=monotonic_ms,
            lag_time_max_ms=config.replica_lag_time_max_ms,
            # UpdateMetadata has no epochs of brokers: the controller, which has them, looks at these once more.
            is_eligible=lambda broker_id, broker_epoch: broker_id in services.metadata.current.brokers,
            propose=self._isr_changes.propose,
            count=services.metrics.count,
        )
        self.following: Final = Following(services, lambda: epochs.latest_epoch, on_death, self._security.of_fetcher)
        self.transactions: Final = TransactionRequests(
            self._inter_broker, self.broker_node, scheduler.soon, timeout_ms=config.request_timeout_ms
        )

    controller: ElectedController
    _own_orders: OwnOrders

    def _alter_partition(
        self, request: "AlterPartitionRequest", on_answer: "Callable[[AlterPartitionResponse | BrokerError], None]"
    ) -> None:
        # A partition's lock may be held over a slow disk. For that neither the controller waits, nor who talks to all
        # other brokers: theirs are the threads that the answer comes on.
        self.controller.alter_partition(request, lambda answer: self.upkeep.soon(lambda: on_answer(answer)))

    def channels(self, own: "BrokerPort") -> NetworkChannels:
        """The ways from this broker's controller to all brokers; `own` is this broker. Called once, before `start`."""
        self._own_orders = OwnOrders(self._services.broker_id, own, self._on_death)
        versions = self._protocol.control_versions()
        channels = NetworkChannels(
            self._inter_broker,
            listener_name=self._control_listener,
            versions=lambda: versions,
            timeout_ms=self._services.config.current.controller_socket_timeout_ms,
            own=(self._services.broker_id, self._own_orders),
        )
        register_inter_broker_gauges(self._services.metrics, self._inter_broker, channels)
        return channels

    def connect(self, own: "Controller") -> ElectedController:
        """The controller of the cluster as this broker asks it; `own` is this broker's candidate."""
        config = self._services.config.current
        self.controller = ElectedController(
            own,
            self._services.broker_id,
            self._own_epoch,
            self._protocol,
            lambda lane: ControllerChannel(
                self._inter_broker,
                self.controller_node,
                lane=lane,
                timeout_ms=config.request_timeout_ms,
            ),
            timeout_ms=config.request_timeout_ms,
        )
        return self.controller

    def allocate_producer_id_block(self) -> "Promise[ProducerIdBlock]":
        """A thousand producer ids: from the controller, or where controllers hand out none, from the registry."""
        services = self._services
        promise: Promise[ProducerIdBlock] = Promise()
        if self._protocol.allocates_producer_ids:
            # Those who waited for ids append to coordinators' logs: as in `_alter_partition`.
            self.controller.allocate_producer_id_block().watch(
                lambda block, error: self._scheduler.soon(lambda: promise.settle(block, error))
            )
            return promise
        # The registry may be slow, and who asks is an I/O thread.
        self._scheduler.soon(lambda: promise.settle_by(lambda: take_block(services.registry, services.broker_id)))
        return promise

    def start(self) -> None:
        """Talk to others from now on; `connect` was called before."""
        self._inter_broker.start()
        self._own_orders.start()
        self.following.start(self._scheduler)
        interval_ms = max(self.replication.lag_time_max_ms / 2, 1)
        self.upkeep.every("isr-expiration", lambda: interval_ms, self._services.replicas.shrink_isrs)

    def stop(self) -> None:
        """Answer what waits, close all connections. Waits a while for what this broker's controller had it begin."""
        self._own_orders.join()
        self.following.stop()
        self._isr_changes.close()
        self.transactions.close()
        self.controller.close()
        self._inter_broker.stop()
        self.upkeep.stop()
        self._security.close()

    def controller_node(self) -> Node | None:
        """Where the controller is asked, as far as this broker knows."""
        return self._node(self._services.metadata.current.controller_id, self._control_listener)

    def broker_node(self, broker_id: int) -> Node | None:
        """Where a broker is reached by the others, as far as this one knows."""
        return self._node(broker_id, self._services.config.current.inter_broker_listener_name)

    def _node(self, broker_id: int, listener_name: str) -> Node | None:
        endpoint = self._services.metadata.current.endpoint(broker_id, listener_name)
        return None if endpoint is None else Node(broker_id, endpoint.host, endpoint.port)


def control_listener(config: "BrokerConfig") -> str:
    """The listener at which brokers hear their controller, and the controller its brokers."""
    name = config.control_plane_listener_name
    return config.inter_broker_listener_name if name is None else name.upper()
