"""Parsing of `listeners`, `advertised.listeners` and the map of security protocols; what Kafka refuses in them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from kavka.config.errors import ConfigError

SECURITY_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
SASL: Final = "SASL_"
"""With this begin those whose clients authenticate by SASL."""
_ENDPOINT: Final = re.compile(r"(.+)://(?:\[([0-9a-zA-Z%._:-]+)\]|([0-9a-zA-Z%._:-]*)):(-?[0-9]{1,10})", re.ASCII)
_PORT_MAX: Final = 65535


class Listener(NamedTuple):
    """One endpoint. `host` is "" for every interface and has no brackets; `port` 0 means any free port."""

    name: str
    host: str
    port: int
    security_protocol: str

    def __str__(self) -> str:
        return f"{self.name}://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


def parse_security_protocols(name: str, text: str) -> dict[str, str]:
    """Listener name -> security protocol. Raises ConfigError."""
    protocols: dict[str, str] = {}
    for entry in split_list(text):
        listener, colon, protocol = entry.rpartition(":")
        if not colon or not listener:
            raise ConfigError(name, text, f"{entry} must be of the form LISTENER_NAME:SECURITY_PROTOCOL")
        if protocol.upper() not in SECURITY_PROTOCOLS:
            raise ConfigError(name, text, f"{protocol} must be one of {', '.join(SECURITY_PROTOCOLS)}")
        protocols[listener.strip().upper()] = protocol.upper()
    return protocols


def parse_listeners(name: str, text: str, protocols: Mapping[str, str]) -> tuple[Listener, ...]:
    """The endpoints of a listeners setting; names are upper-cased. Raises ConfigError.

    Duplicates are the business of `check_distinct_names` and `check_distinct_ports`.
    """
    return tuple(_parse_listener(name, entry, protocols) for entry in split_list(text))


def check_distinct_names(name: str, text: str, listeners: tuple[Listener, ...]) -> None:
    """Raises ConfigError where two listeners share a name."""
    if len({listener.name for listener in listeners}) < len(listeners):
        raise ConfigError(name, text, f"Each listener must have a different name, {name}: {text}")


def check_distinct_ports(name: str, text: str, listeners: tuple[Listener, ...]) -> None:
    """Raises ConfigError where two listeners share a port, unless it is 0, or one is IPv4 and one IPv6 (KIP-797)."""
    by_port: dict[int, list[Listener]] = {}
    for listener in listeners:
        if listener.port:
            by_port.setdefault(listener.port, []).append(listener)
    for same in by_port.values():
        families = {_family(listener.host) for listener in same}
        if len(same) > 1 and not (len(same) == 2 and families == {4, 6}):
            raise ConfigError(
                name, text, "Each listener must have a different port, unless one is an IPv4 and one an IPv6 address"
            )


def parse_connection_limits(name: str, text: str) -> dict[str, int]:
    """Host -> limit, of `host:limit,...`; an IPv6 host may stand in brackets. Raises ConfigError."""
    limits: dict[str, int] = {}
    for entry in split_list(text):
        host, _, limit = entry.rpartition(":")
        if not host or not limit.strip().isdecimal():
            raise ConfigError(name, text, f"{entry} must be of the form HOST:LIMIT")
        limits[host.strip().strip("[]")] = int(limit)
    return limits


def split_list(text: str) -> list[str]:
    return [entry for part in text.split(",") if (entry := part.strip())]


def _parse_listener(setting: str, entry: str, protocols: Mapping[str, str]) -> Listener:
    match = _ENDPOINT.fullmatch(entry)
    if match is None:
        raise ConfigError(setting, entry, "must be of the form NAME://host:port, for example PLAINTEXT://:9092")
    name, ipv6, host, port = match[1].upper(), match[2], match[3], int(match[4])
    if not 0 <= port <= _PORT_MAX:
        raise ConfigError(setting, entry, f"the port must be between 0 and {_PORT_MAX}")
    if name not in protocols:
        raise ConfigError(setting, entry, f"No security protocol defined for listener {name}")
    return Listener(name, ipv6 if ipv6 is not None else host, port, protocols[name])


def _family(host: str) -> int | None:
    if ":" in host:
        return 6
    parts = host.split(".")
    return 4 if len(parts) == 4 and all(part.isdecimal() and int(part) < 256 for part in parts) else None
