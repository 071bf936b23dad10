"""`/brokers/ids/ID`: a live broker and where it is reached; ephemeral. The node's czxid is the broker's epoch.

Version 5 is written. Versions 1 (host and port only), 2 and 3 (endpoints), 4 (listener names) are read.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from kavka.cluster.znodes.json_data import INT64_MAX, Fields, ZnodeError, encode_json

BROKERS_PATH: Final = "/brokers/ids"
BROKER_SEQUENCE_PATH: Final = "/brokers/seqid"
SECURITY_PROTOCOL_IDS: Final = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}
MAX_TEXT_BYTES: Final = 32767
"""The longest string that a message can have."""
_ENDPOINT: Final = re.compile(r"([A-Za-z0-9_.\-]+)://(?:\[([0-9A-Za-z\-%._:]*)\]|([0-9A-Za-z\-%._]*)):([0-9]{1,5})")


class Endpoint(NamedTuple):
    """One advertised listener."""

    listener_name: str
    host: str
    port: int
    security_protocol: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.listener_name}://{host}:{self.port}"


class FeatureRange(NamedTuple):
    """The levels of a feature that a broker can do (KIP-584)."""

    name: str
    lowest: int
    highest: int


class BrokerInfo(NamedTuple):
    """A broker as registered. `epoch` is -1 until the node exists; it is not part of the data."""

    broker_id: int
    endpoints: tuple[Endpoint, ...]
    rack: str | None = None
    timestamp_ms: int = 0
    jmx_port: int = -1
    epoch: int = -1
    features: tuple[FeatureRange, ...] = ()

    @staticmethod
    def path(broker_id: int) -> str:
        return f"{BROKERS_PATH}/{broker_id}"

    def endpoint(self, listener_name: str | None) -> Endpoint:
        """The endpoint of that name, or else the first one."""
        return next((each for each in self.endpoints if each.listener_name == listener_name), self.endpoints[0])

    def encode(self) -> bytes:
        plain = next((each for each in self.endpoints if each.security_protocol == "PLAINTEXT"), None)
        fields: dict[str, object] = {
            "features": {
                each.name: {"min_version": each.lowest, "max_version": each.highest} for each in self.features
            },
            "listener_security_protocol_map": {each.listener_name: each.security_protocol for each in self.endpoints},
            "endpoints": [str(each) for each in self.endpoints],
            "jmx_port": self.jmx_port,
            "port": plain.port if plain else -1,
            "host": plain.host if plain else None,
            "version": 5,
            "timestamp": str(self.timestamp_ms),
        }
        if self.rack is not None:
            fields["rack"] = self.rack
        return encode_json(fields)

    @staticmethod
    def decode(broker_id: int, data: bytes, epoch: int) -> BrokerInfo:
        fields = Fields.parse(BrokerInfo.path(broker_id), data)
        version = fields.integer("version", low=1)
        if version == 1:
            port = fields.integer("port", high=65535)
            endpoints: tuple[Endpoint, ...] = (Endpoint("PLAINTEXT", fields.text("host"), port, "PLAINTEXT"),)
        else:
            protocols = fields.text_map("listener_security_protocol_map") if version >= 4 else {}
            endpoints = tuple(_endpoint(fields, text, protocols) for text in fields.texts("endpoints"))
        if not endpoints:
            raise ZnodeError(fields.path, "a broker without endpoints")
        rack = fields.optional_text("rack")
        for text in (rack or "", *(each.host for each in endpoints), *(each.listener_name for each in endpoints)):
            _check_sendable(fields.path, text)
        return BrokerInfo(
            broker_id=broker_id,
            endpoints=endpoints,
            rack=rack,
            timestamp_ms=fields.quoted_integer("timestamp", low=-1) if "timestamp" in fields else -1,
            jmx_port=fields.integer("jmx_port", low=-1, high=INT64_MAX, default=-1),
            epoch=epoch,
            features=_features(fields.object("features")) if "features" in fields else (),
        )


def _check_sendable(path: str, text: str) -> None:
    """Everybody is told of every broker: one that no message has a place for would keep all others from being known."""
    try:
        size_bytes = len(text.encode())
    except UnicodeEncodeError:
        raise ZnodeError(path, f"no text: {text[:40]!r}") from None
    if size_bytes > MAX_TEXT_BYTES:
        raise ZnodeError(path, f"a text of {size_bytes} bytes, which begins with {text[:40]!r}")


def _features(fields: Fields) -> tuple[FeatureRange, ...]:
    ranges = []
    for name in fields.names():
        levels = fields.object(name)
        lowest, highest = levels.integer("min_version"), levels.integer("max_version")
        ranges.append(FeatureRange(name, lowest, highest))
    return tuple(ranges)


def _endpoint(fields: Fields, text: str, protocols: dict[str, str]) -> Endpoint:
    match = _ENDPOINT.fullmatch(text)
    if match is None:
        raise ZnodeError(fields.path, f"no endpoint: {text[:80]!r}")
    name, bracketed, bare, port = match.groups()
    protocol = protocols.get(name, name)
    if protocol not in SECURITY_PROTOCOL_IDS:
        raise ZnodeError(fields.path, f"listener {name} has no known security protocol: {protocol[:40]!r}")
    if int(port) > 65535:
        raise ZnodeError(fields.path, f"no port: {port}")
    return Endpoint(name, bracketed if bracketed is not None else bare, int(port), protocol)
