"""Values that several settings decide together, worked out once when a snapshot is made.

log_retention_ms         log.retention.ms, else .minutes, else .hours; negative is -1
log_roll_ms, ..jitter_ms ms, else hours
log_flush_interval_ms    log.flush.interval.ms, else log.flush.scheduler.interval.ms
log_dirs                 log.dirs, else log.dir
log_message_timestamp_before_max_ms, .._after_max_ms: else log.message.timestamp.difference.max.ms
listeners                parsed, without those named in controller.listener.names
advertised_listeners     parsed; () where nothing is advertised: each client gets the address it reached
inter_broker_listener_name, zookeeper_connection_timeout_ms, num_replica_alter_log_dirs_threads
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from kavka.config.errors import ConfigError
from kavka.config.listeners import (
    check_distinct_names,
    check_distinct_ports,
    parse_connection_limits,
    parse_listeners,
    parse_security_protocols,
    split_list,
)
from kavka.config.values import LONG_MAX

_MINUTE_MS: Final = 60_000
_HOUR_MS: Final = 60 * _MINUTE_MS


def resolve(values: Mapping[str, Any]) -> dict[str, Any]:
    """Attribute -> value, from the parsed values by setting name. Raises ConfigError."""
    log_dirs = _log_dirs(values)
    session_timeout_ms = values["zookeeper.session.timeout.ms"]
    protocols = parse_security_protocols(
        "listener.security.protocol.map", values["listener.security.protocol.map"] or ""
    )
    return {
        "log_retention_ms": _retention_ms(values),
        "log_roll_ms": _first(values["log.roll.ms"], values["log.roll.hours"] * _HOUR_MS),
        "log_roll_jitter_ms": _first(values["log.roll.jitter.ms"], values["log.roll.jitter.hours"] * _HOUR_MS),
        "log_flush_interval_ms": _first(values["log.flush.interval.ms"], values["log.flush.scheduler.interval.ms"]),
        "log_dirs": log_dirs,
        "log_message_timestamp_before_max_ms": _timestamp_bound_ms(values, "log.message.timestamp.before.max.ms"),
        "log_message_timestamp_after_max_ms": _timestamp_bound_ms(values, "log.message.timestamp.after.max.ms"),
        "log_cleanup_policy": frozenset(values["log.cleanup.policy"]),
        "num_replica_alter_log_dirs_threads": _first(values["num.replica.alter.log.dirs.threads"], len(log_dirs)),
        "zookeeper_connection_timeout_ms": _first(values["zookeeper.connection.timeout.ms"], session_timeout_ms),
        "max_connections_per_ip_overrides": MappingProxyType(
            parse_connection_limits("max.connections.per.ip.overrides", values["max.connections.per.ip.overrides"])
        ),
        **_listeners(values, protocols),
    }


def _listeners(values: Mapping[str, Any], protocols: dict[str, str]) -> dict[str, Any]:
    controller_names = tuple(name.upper() for name in split_list(values["controller.listener.names"] or ""))
    for name in controller_names:
        protocols.setdefault(name, "PLAINTEXT")
    text, advertised_text = values["listeners"], values["advertised.listeners"] or ""
    listeners = parse_listeners("listeners", text, protocols)
    check_distinct_names("listeners", text, listeners)
    check_distinct_ports("listeners", text, listeners)
    advertised = parse_listeners("advertised.listeners", advertised_text, protocols)
    check_distinct_names("advertised.listeners", advertised_text, advertised)
    listeners = tuple(listener for listener in listeners if listener.name not in controller_names)
    if not listeners:
        raise ConfigError("listeners", text, "must name at least one listener for clients")
    return {
        "listeners": listeners,
        "advertised_listeners": tuple(listener for listener in advertised if listener.name not in controller_names),
        "listener_security_protocol_map": MappingProxyType(protocols),
        "controller_listener_names": controller_names,
        "inter_broker_listener_name": (
            values["inter.broker.listener.name"] or values["security.inter.broker.protocol"]
        ).upper(),
    }


def _retention_ms(values: Mapping[str, Any]) -> int:
    minutes = values["log.retention.minutes"]
    hours_ms: int = values["log.retention.hours"] * _HOUR_MS
    retention_ms = _first(values["log.retention.ms"], hours_ms if minutes is None else minutes * _MINUTE_MS)
    if retention_ms == 0:
        name = next(n for n in ("log.retention.ms", "log.retention.minutes", "log.retention.hours") if values[n] == 0)
        raise ConfigError(name, 0, "must be unlimited (-1) or at least 1")
    return max(retention_ms, -1)


def _timestamp_bound_ms(values: Mapping[str, Any], name: str) -> int:
    """A bound that is not set itself is log.message.timestamp.difference.max.ms (KIP-937)."""
    own_ms: int = values[name]
    difference_ms: int = values["log.message.timestamp.difference.max.ms"]
    return difference_ms if own_ms == LONG_MAX else own_ms


def _log_dirs(values: Mapping[str, Any]) -> tuple[Path, ...]:
    name = "log.dir" if values["log.dirs"] is None else "log.dirs"
    directories = tuple(Path(entry) for entry in split_list(values[name] or ""))
    if not directories:
        raise ConfigError(name, values[name], "at least one log directory must be given by log.dirs or log.dir")
    if len(set(directories)) < len(directories):
        raise ConfigError(name, values[name], "each log directory must be given once")
    return directories


def _first(value: int | None, otherwise: int) -> int:
    return otherwise if value is None else value
