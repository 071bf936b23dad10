"""What must hold between settings of a broker. The rules are those of Kafka in ZooKeeper mode."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kavka.config.checks import Release
from kavka.config.errors import ConfigError

if TYPE_CHECKING:
    from kavka.config.broker_values import BrokerValues

_MIB: Final = 1024 * 1024
OLDEST_RELEASE: Final = "2.8-IV1"
NEWEST_RELEASE: Final = "3.9-IV0"
MOST_THREADS: Final = 1_000
"""Of a kind that all start with the broker: it would not be up for minutes, and the machine out of threads."""


def check_together(config: BrokerValues) -> None:
    """Raises ConfigError for the first rule that does not hold."""
    _check_identity(config)
    _check_listeners(config)
    _check_release(config)
    _check_connections(config)
    _check_threads(config)
    _check_log(config)
    _check_replication(config)
    _check_groups(config)


def _check_identity(config: BrokerValues) -> None:
    broker_id, node_id = config.value("broker.id"), config.value("node.id")
    _require(broker_id == node_id, "node.id", node_id, f"must be the same as broker.id ({broker_id})")
    if "process.roles" in config.originals:
        # Settings made for KRaft: ids are set by hand and have no upper limit there.
        _require(broker_id >= -1, "node.id", broker_id, "must be at least 0")
    elif config.broker_id_generation_enable:
        expected = f"must be at least -1 and not greater than reserved.broker.max.id ({config.reserved_broker_max_id})"
        _require(-1 <= broker_id <= config.reserved_broker_max_id, "broker.id", broker_id, expected)
    else:
        _require(broker_id >= 0, "broker.id", broker_id, "must be at least 0 while broker.id.generation.enable=false")


def _check_listeners(config: BrokerValues) -> None:
    names = [listener.name for listener in config.listeners]
    advertised_text = config.value("advertised.listeners")
    for listener in config.advertised_listeners:
        expected = "advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. Use a routable IP address"
        routable = listener.host not in ("0.0.0.0", "::")
        _require(routable, "advertised.listeners", advertised_text, expected)
        _require(listener.host != "", "advertised.listeners", advertised_text, f"{listener.name} needs a host")
    advertised = [listener.name for listener in config.advertised_listeners] or names
    _require(
        set(advertised) <= set(names),
        "advertised.listeners",
        advertised_text,
        f"listener names must be equal to or a subset of the ones defined in listeners: {', '.join(names)}",
    )
    inter_broker, control = config.inter_broker_listener_name, config.control_plane_listener_name
    given = config.originals.keys()
    if "inter.broker.listener.name" in given and "security.inter.broker.protocol" in given:
        raise ConfigError(
            None, None, "Only one of inter.broker.listener.name and security.inter.broker.protocol should be set"
        )
    options = f"The valid options based on currently configured listeners are {','.join(advertised)}"
    if inter_broker not in advertised and _talks_to_brokers(config):
        name = "inter.broker.listener.name"
        _require(False, name, inter_broker, f"must be a listener name defined in advertised.listeners. {options}")
    if control is not None:
        name = "control.plane.listener.name"
        expected = f"must be a listener name defined in advertised.listeners. {options}"
        _require(control.upper() in advertised, name, control, expected)
        _require(control.upper() != inter_broker, name, control, "must differ from the inter-broker listener's name")
    protocol = config.listener_security_protocol_map.get(inter_broker, "PLAINTEXT")
    if protocol.startswith("SASL") and _talks_to_brokers(config):
        mechanism = config.sasl_mechanism_inter_broker_protocol
        expected = "must be included in sasl.enabled.mechanisms when SASL is used for inter-broker communication"
        enabled = config.listener_value(inter_broker, "sasl.enabled.mechanisms")
        _require(mechanism in enabled, "sasl.mechanism.inter.broker.protocol", mechanism, expected)


def _check_release(config: BrokerValues) -> None:
    """By which releases a cluster on ZooKeeper may talk: topic ids came with 2.8, ZooKeeper left after 3.9."""
    if config.zookeeper_connect:
        release = config.inter_broker_protocol_version
        is_spoken = Release.step(OLDEST_RELEASE) <= Release.step(release) <= Release.step(NEWEST_RELEASE)
        expected = f"must be from {OLDEST_RELEASE} to {NEWEST_RELEASE} in a cluster on ZooKeeper"
        _require(is_spoken, "inter.broker.protocol.version", release, expected)


def _talks_to_brokers(config: BrokerValues) -> bool:
    """A broker that keeps the cluster's state itself is alone: it needs no listener for others unless one was named."""
    return bool(config.zookeeper_connect) or "inter.broker.listener.name" in config.originals


def _check_connections(config: BrokerValues) -> None:
    idle_ms, delay_ms = config.connections_max_idle_ms, config.connection_failed_authentication_delay_ms
    _require(
        idle_ms < 0 or delay_ms < idle_ms,
        "connection.failed.authentication.delay.ms",
        delay_ms,
        f"should always be less than connections.max.idle.ms ({idle_ms})",
    )
    request_bytes, limit_bytes = config.queued_max_request_bytes, config.socket_request_max_bytes
    _require(
        request_bytes <= 0 or request_bytes >= limit_bytes,
        "queued.max.request.bytes",
        request_bytes,
        f"must be larger or equal to socket.request.max.bytes ({limit_bytes})",
    )
    _require(
        config.max_connections_per_ip > 0 or bool(config.max_connections_per_ip_overrides),
        "max.connections.per.ip",
        config.max_connections_per_ip,
        "can be set to zero only if max.connections.per.ip.overrides property is set",
    )


def _check_threads(config: BrokerValues) -> None:
    for name in ("num.network.threads", "num.io.threads", "log.cleaner.threads"):
        _require(config.value(name) <= MOST_THREADS, name, config.value(name), f"must be no more than {MOST_THREADS}")


def _check_log(config: BrokerValues) -> None:
    _require(config.log_roll_ms >= 1, "log.roll.ms", config.log_roll_ms, "must be at least 1")
    _require(config.log_roll_jitter_ms >= 0, "log.roll.jitter.ms", config.log_roll_jitter_ms, "must be at least 0")
    if config.log_cleaner_enable:
        per_thread = config.log_cleaner_dedupe_buffer_size // max(1, config.log_cleaner_threads)
        expected = "must be at least 1MB per cleaner thread"
        size = config.log_cleaner_dedupe_buffer_size
        _require(per_thread > _MIB, "log.cleaner.dedupe.buffer.size", size, expected)
    low, high = config.log_cleaner_min_compaction_lag_ms, config.log_cleaner_max_compaction_lag_ms
    expected = f"must not be greater than log.cleaner.max.compaction.lag.ms ({high})"
    _require(low <= high, "log.cleaner.min.compaction.lag.ms", low, expected)


def _check_replication(config: BrokerValues) -> None:
    wait_ms = config.replica_fetch_wait_max_ms
    socket_ms, lag_ms = config.replica_socket_timeout_ms, config.replica_lag_time_max_ms
    expected = f"must not be greater than replica.socket.timeout.ms ({socket_ms}), else fetches time out in vain"
    _require(wait_ms <= socket_ms, "replica.fetch.wait.max.ms", wait_ms, expected)
    expected = f"must not be greater than replica.lag.time.max.ms ({lag_ms}), else in-sync replicas flap"
    _require(wait_ms <= lag_ms, "replica.fetch.wait.max.ms", wait_ms, expected)


def _check_groups(config: BrokerValues) -> None:
    acks, replicas = config.offsets_commit_required_acks, config.offsets_topic_replication_factor
    expected = f"must be at least -1 and not greater than offsets.topic.replication.factor ({replicas})"
    _require(-1 <= acks <= replicas, "offsets.commit.required.acks", acks, expected)
    for setting in ("heartbeat.interval.ms", "session.timeout.ms"):
        low = config.value(f"group.consumer.min.{setting}")
        high = config.value(f"group.consumer.max.{setting}")
        name = f"group.consumer.{setting}"
        value = config.value(name)
        _require(low <= high, f"group.consumer.max.{setting}", high, f"must be at least {low}, the minimum")
        _require(low <= value <= high, name, value, f"must lie between {low} and {high}, the minimum and the maximum")
    low, high = config.group_min_session_timeout_ms, config.group_max_session_timeout_ms
    expected = f"must be at least group.min.session.timeout.ms ({low})"
    _require(high >= low, "group.max.session.timeout.ms", high, expected)
    protocols = config.group_coordinator_rebalance_protocols
    expected = "must contain classic, and knows consumer beside it"
    _require("classic" in protocols, "group.coordinator.rebalance.protocols", ",".join(protocols), expected)
    heartbeat, session = config.group_consumer_heartbeat_interval_ms, config.group_consumer_session_timeout_ms
    expected = f"must be less than group.consumer.session.timeout.ms ({session})"
    _require(heartbeat < session, "group.consumer.heartbeat.interval.ms", heartbeat, expected)


def _require(holds: bool, name: str, value: object, expected: str) -> None:
    if not holds:
        raise ConfigError(name, value, expected)
