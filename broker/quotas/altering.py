"""Changes of quotas as clients ask for them (KIP-546): what may be changed, and to which texts."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from kavka.broker.quotas.connections import address_of, numeric_address
from kavka.broker.quotas.describing import CLIENT_ID, IP, USER
from kavka.broker.quotas.keys import CLIENT_KEYS, CONNECTION_CREATION_RATE, IP_KEYS, LARGEST, double_text
from kavka.cluster.controller.requests import ConfigEntity
from kavka.cluster.znodes.config import DEFAULT_ENTITY, node_name
from kavka.config.errors import ConfigError
from kavka.protocol.errors import BrokerError, ErrorCode

EPSILON: Final = 1e-6
"""How far a number may be from a whole one."""


class QuotaChange(NamedTuple):
    """One quota's: a value of None takes it away."""

    key: str
    value: float | None


def entity_of(names: Sequence[tuple[str, str | None]]) -> ConfigEntity:
    """Where the quotas of an entity are stored: its names by type, None for a default.

    Raises BrokerError. May have to look up a host's name.
    """
    if not names:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "Invalid empty client quota entity")
    nodes: dict[str, str] = {}
    for kind, name in names:
        if kind not in (USER, CLIENT_ID, IP):
            raise BrokerError(ErrorCode.INVALID_REQUEST, f"Unhandled client quota entity type: {kind[:100]}")
        if name == "":
            raise BrokerError(ErrorCode.INVALID_REQUEST, f"Empty {kind} not supported")
        nodes[kind] = DEFAULT_ENTITY if name is None else node_name(name)
    if IP in nodes and len(nodes) > 1:
        reason = "Invalid quota entity combination, IP entity should not be used with user/client ID entity."
        raise BrokerError(ErrorCode.INVALID_REQUEST, reason)
    if IP in nodes:
        host = dict(names)[IP]
        if host is not None:
            _check_host(host)
        return ConfigEntity("ips", nodes[IP])
    if USER not in nodes:
        return ConfigEntity("clients", nodes[CLIENT_ID])
    below = f"/clients/{nodes[CLIENT_ID]}" if CLIENT_ID in nodes else ""
    return ConfigEntity("users", nodes[USER] + below)


def needs_lookup(names: Sequence[tuple[str, str | None]]) -> bool:
    """Whether `entity_of` would have to look up a host's name, for which a resolver may take tens of seconds."""
    return any([kind == IP and name and numeric_address(name) is None for kind, name in names])


def update_of(entity: ConfigEntity, changes: Sequence[QuotaChange]) -> Callable[[dict[str, str]], dict[str, str]]:
    """From what is stored to what shall be; what else is stored there stays. Raises BrokerError."""
    keys = IP_KEYS if entity.kind == "ips" else CLIENT_KEYS
    texts = {change.key: None if change.value is None else _text(change.key, change.value, keys) for change in changes}

    def update(stored: dict[str, str]) -> dict[str, str]:
        kept: Mapping[str, str] = {key: text for key, text in stored.items() if key not in texts}
        return {**kept, **{key: text for key, text in texts.items() if text is not None}}

    return update


def _text(key: str, value: float, keys: Sequence[str]) -> str:
    if key not in keys:
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"Invalid configuration key {key[:100]}")
    if not math.isfinite(value):
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"Configuration {key} must be a number")
    largest = LARGEST.get(key)
    if largest is None:
        return double_text(value)
    whole = max(-largest - 1, min(int(value + EPSILON), largest))
    if abs(float(whole) - value) > EPSILON:
        kind = "INT" if key == CONNECTION_CREATION_RATE else "LONG"
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"Configuration {key} must be a {kind} value")
    return str(whole)


def _check_host(host: str) -> None:
    try:
        address_of(host)
    except ConfigError as error:
        reason = f"{host[:260]} is not a valid IP or resolvable host."
        raise BrokerError(ErrorCode.INVALID_REQUEST, reason) from error
