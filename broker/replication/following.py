"""What a broker in a cluster has for following, put together; a broker that stands alone does not load it."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from kavka.broker.replication.fetch_requests import FetchLimits
from kavka.broker.replication.fetcher import Fetcher
from kavka.broker.replication.fetcher_manager import FetcherManager
from kavka.broker.replication.followed_partitions import Followed
from kavka.broker.replication.gauges import REPLICATED_BYTES, register_following_gauges
from kavka.broker.replication.network_leader import NetworkLeader
from kavka.broker.replication.throttle import ReplicationThrottle
from kavka.client import ClientSettings, NetworkClient, Node
from kavka.client.security_port import Securing

if TYPE_CHECKING:
    from kavka.broker.core_services import CoreServices
    from kavka.broker.waiting.scheduler import Scheduler
    from kavka.config.broker_config import BrokerConfig

RECONNECT_MS: Final = 50
RECONNECT_MAX_MS: Final = 1000
RESIZE_MS: Final = 1000
"""How soon a change of `num.replica.fetchers` counts."""
ANSWER_HEADROOM_BYTES: Final = 100 << 20
"""For all that an answer has beside the records that were asked for; among them a first batch, whole however large."""


class Following:
    """The fetchers, and the throttles of both directions (KIP-73).

    Threads: any; `stop` once. `latest_epoch()` is what this broker's fetches name (KIP-903): the epoch
    of its registration, and of the last one where none stands. Without one a leader could not tell them from those of
    another run, which may have lost what this one has.
    """

    def __init__(
        self,
        services: "CoreServices",
        latest_epoch: Callable[[], int],
        on_death: Callable[[BaseException], None],
        security: Callable[[], Securing | None] = lambda: None,
    ) -> None:
        """`services` must have settings by now, and metadata before anybody is followed. `security()` is for a
        fetcher's connection."""
        config = services.config.current
        self._services: Final = services
        self._latest_epoch: Final = latest_epoch
        self._on_death: Final = on_death
        self._security: Final = security
        throttle = partial(
            ReplicationThrottle,
            services.broker_id,
            window_num=config.replication_quota_window_num,
            window_size_ms=config.replication_quota_window_size_seconds * 1000,
        )
        self.leader_throttle: Final = throttle(
            limit=lambda: services.config.current.leader_replication_throttled_rate,
            replicas=lambda config: config.leader_replication_throttled_replicas,
        )
        self._throttle: Final = throttle(
            limit=lambda: services.config.current.follower_replication_throttled_rate,
            replicas=lambda config: config.follower_replication_throttled_replicas,
        )
        self.fetchers: Final = FetcherManager(self._new_fetcher, config.num_replica_fetchers)

    def start(self, scheduler: "Scheduler") -> None:
        """Before the first order: have the leader's side throttled, and the number of fetchers follow its setting."""
        self._services.replicas.leader_throttle = self.leader_throttle
        register_following_gauges(self._services.metrics, self.fetchers)
        scheduler.every("fetchers", lambda: RESIZE_MS, self.resize)

    def resize(self) -> None:
        """`num.replica.fetchers` may be another one now."""
        self.fetchers.resize(self._services.config.current.num_replica_fetchers)

    def stop(self) -> None:
        """End the fetchers and wait for them."""
        self.fetchers.stop()

    def _new_fetcher(self, source: int, number: int, on_failed: Callable[[Followed], None]) -> Fetcher:
        services = self._services
        config = services.config.current
        leader = NetworkLeader(
            lambda: NetworkClient(_client_settings(config, services.broker_id, number), security=self._security()),
            partial(self._node, source),
            broker_id=services.broker_id,
            broker_epoch=self._latest_epoch,
            limits=_limits(config),
            timeout_ms=config.replica_socket_timeout_ms,
        )
        return Fetcher(
            f"ReplicaFetcherThread-{number}-{source}",
            leader,
            backoff_ms=lambda: services.config.current.replica_fetch_backoff_ms,
            throttle=self._throttle,
            on_bytes=partial(services.metrics.count, REPLICATED_BYTES),
            on_failed=on_failed,
            on_death=self._on_death,
        )

    def _node(self, broker_id: int) -> Node | None:
        services = self._services
        listener_name = services.config.current.inter_broker_listener_name
        endpoint = services.metadata.current.endpoint(broker_id, listener_name)
        return None if endpoint is None else Node(broker_id, endpoint.host, endpoint.port)


def _limits(config: "BrokerConfig") -> FetchLimits:
    return FetchLimits(
        max_wait_ms=config.replica_fetch_wait_max_ms,
        min_bytes=config.replica_fetch_min_bytes,
        max_bytes=config.replica_fetch_response_max_bytes,
        partition_max_bytes=config.replica_fetch_max_bytes,
    )


def _client_settings(config: "BrokerConfig", broker_id: int, number: int) -> ClientSettings:
    return ClientSettings(
        client_id=f"broker-{broker_id}-fetcher-{number}",
        max_in_flight=1,
        max_answer_bytes=config.replica_fetch_response_max_bytes + ANSWER_HEADROOM_BYTES,
        request_timeout_ms=config.replica_socket_timeout_ms,
        reconnect_backoff_ms=RECONNECT_MS,
        reconnect_backoff_max_ms=RECONNECT_MAX_MS,
        connection_setup_timeout_ms=config.socket_connection_setup_timeout_ms,
        connection_setup_timeout_max_ms=config.socket_connection_setup_timeout_max_ms,
        receive_buffer_bytes=config.replica_socket_receive_buffer_bytes,
    )
