"""The network and the metadata of a client, made of its settings."""

import time
from collections.abc import Callable
from typing import Final, NamedTuple

from kavka.client.backoff import ExponentialBackoff
from kavka.client.bootstrap import Bootstrap, bootstrap_nodes
from kavka.client.client_metrics import Metrics
from kavka.client.counts import ClientCounts
from kavka.client.lent_network import LentNetworkClient
from kavka.client.metadata import Metadata, MetadataSettings
from kavka.client.network_metrics import NetworkMetrics, add_times
from kavka.client.security_port import Securing
from kavka.client.selecting import TimedSelector
from kavka.client.settings import ClientSettings
from kavka.config.clients.every_client import CommonSettings

MAX_ANSWER_BYTES: Final = 104_857_600


class Opened(NamedTuple):
    """What a client's thread will own. Nothing is connected, and no thread runs yet."""

    network: LentNetworkClient
    metadata: Metadata
    metrics: Metrics
    """Of the connections so far; the client adds its own."""


def open_network(
    settings: CommonSettings,
    *,
    max_in_flight: int = 5,
    max_answer_bytes: int = MAX_ANSWER_BYTES,
    max_idle_topic_ms: float = float("inf"),
    allow_auto_create: bool = False,
    receive_buffer_bytes: int | None = None,
    now_ms: Callable[[], float] = lambda: time.monotonic() * 1000,
) -> Opened:
    """`receive_buffer_bytes` counts in place of the setting.

    Raises ConfigError for bootstrap servers that are none, and for TLS and SASL that cannot be; OSError when no
    descriptors are left; SaslAuthenticationError when there is no token to log in with, which is waited for.
    """
    nodes = bootstrap_nodes(settings.bootstrap_servers)

    def wake() -> None:
        network.wakeup()

    canonical = settings.client_dns_lookup == "resolve_canonical_bootstrap_servers_only"
    metadata = Metadata(
        Bootstrap(nodes, canonical=canonical, on_found=wake),
        MetadataSettings(
            max_age_ms=settings.metadata_max_age_ms,
            retry_backoff_ms=settings.retry_backoff_ms,
            retry_backoff_max_ms=settings.retry_backoff_max_ms,
            max_idle_ms=max_idle_topic_ms,
            allow_auto_create=allow_auto_create,
            rebootstrap=settings.metadata_recovery_strategy == "rebootstrap",
            rebootstrap_trigger_ms=settings.metadata_recovery_rebootstrap_trigger_ms,
        ),
        wake=wake,
        now_ms=now_ms,
    )
    counts = ClientCounts()
    metrics = _metrics(settings, metadata, now_ms)
    selector = TimedSelector()
    add_times(metrics, selector)
    security = _security(settings)
    try:
        network = LentNetworkClient(
            _client_settings(settings, max_in_flight, max_answer_bytes, receive_buffer_bytes),
            metadata=metadata,
            counts=counts,
            on_answer=NetworkMetrics(metrics, counts).answered,
            security=security,
            selector=selector,
            now_ms=now_ms,
        )
    except OSError:
        if security is not None:
            security.close()
        raise
    return Opened(network, metadata, metrics)


def _metrics(settings: CommonSettings, metadata: Metadata, now_ms: Callable[[], float]) -> Metrics:
    metrics = Metrics(
        settings.DOMAIN,
        settings.client_id,
        window_ms=settings.metrics_sample_window_ms,
        samples=settings.metrics_num_samples,
        now_ms=now_ms,
    )
    if settings.DOMAIN == "producer":
        # Kafka's other clients do not tell.
        metrics.gauge("metadata-age", metadata.age_s)
    return metrics


def _security(settings: CommonSettings) -> Securing | None:
    if settings.security_protocol == "PLAINTEXT":
        return None
    from kavka.client.security.opening import SecuredByThread, open_security  # cryptography, for those who want it

    security = open_security(settings, settings.client_id)
    return SecuredByThread(security, security.close)


def _client_settings(
    settings: CommonSettings, max_in_flight: int, max_answer_bytes: int, receive_buffer_bytes: int | None
) -> ClientSettings:
    idle_ms = settings.connections_max_idle_ms
    return ClientSettings(
        client_id=settings.client_id,
        max_in_flight=max_in_flight,
        max_answer_bytes=max_answer_bytes,
        request_timeout_ms=settings.request_timeout_ms,
        reconnect_backoff_ms=settings.reconnect_backoff_ms,
        reconnect_backoff_max_ms=settings.reconnect_backoff_max_ms,
        connection_setup_timeout_ms=settings.socket_connection_setup_timeout_ms,
        connection_setup_timeout_max_ms=settings.socket_connection_setup_timeout_max_ms,
        send_buffer_bytes=settings.send_buffer_bytes,
        receive_buffer_bytes=settings.receive_buffer_bytes if receive_buffer_bytes is None else receive_buffer_bytes,
        max_idle_ms=idle_ms if idle_ms >= 0 else float("inf"),
        honours_throttling=True,
    )


def retry_backoff(settings: CommonSettings) -> ExponentialBackoff:
    """How long to wait before a failed request is sent again."""
    return ExponentialBackoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms)
