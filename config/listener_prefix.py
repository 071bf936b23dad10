"""Settings for one listener, as `listener.name.internal.ssl.keystore.location` (KIP-103).

Some may have a SASL mechanism in between: `listener.name.internal.plain.sasl.jaas.config` (KIP-86).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kavka.config.setting import Setting

SHARED_THREADS: Final = "network threads serve all listeners together"
BEFORE_MECHANISM: Final = "it is a listener's, and counts before a client has chosen a mechanism"
WITHOUT_MECHANISM: Final = "it counts behind a listener's and a mechanism's name, as listener.name.NAME.plain. alone"
PREFIX: Final = "listener.name."
LIMITS_OF_LISTENER: Final = ("max.connections", "max.connection.creation.rate", "num.network.threads")
_OWN: Final = (*LIMITS_OF_LISTENER, "connections.max.reauth.ms")
_JAAS: Final = "sasl.jaas.config"
_RECEIVE_SIZE: Final = "sasl.server.max.receive.size"
_OF_MECHANISM: Final = (_JAAS, "connections.max.reauth.ms", _RECEIVE_SIZE)
"""Of any mechanism, also of one that Kavka does not know."""
_OF_LISTENER: Final = (_RECEIVE_SIZE, "sasl.enabled.mechanisms", "sasl.mechanism.inter.broker.protocol")
"""Never of a mechanism; in Kafka they may be given for one, and do nothing."""
_MECHANISMS: Final = ("plain", "scram-sha-256", "scram-sha-512", "oauthbearer", "gssapi")


def split_prefix(name: str) -> tuple[str, str] | None:
    """(listener name in lower case, the rest), or None for a name without the prefix."""
    if not name.startswith(PREFIX):
        return None
    listener_name, dot, rest = name[len(PREFIX) :].partition(".")
    return (listener_name.lower(), rest) if dot and listener_name and rest else None


def base_row(rest: str, rows: Mapping[str, Setting]) -> Setting | None:
    """The row that rules what follows the prefix, by itself or behind a SASL mechanism's name."""
    if rest in rows and (rest in _OWN or rest.startswith(("ssl.", "sasl."))):
        return rows[rest]
    for name in _OF_MECHANISM:
        mechanism = rest.removesuffix("." + name)
        if mechanism != rest and "." not in mechanism:
            return rows.get(name)
    mechanism, _, name = rest.partition(".")
    return rows.get(name) if mechanism in _MECHANISMS and name.startswith("sasl.") else None


def row_of(name: str, rows: Mapping[str, Setting]) -> Setting | None:
    """The row of a setting, also behind a listener's prefix; None for an unknown one."""
    prefixed = split_prefix(name)
    return rows.get(name) if prefixed is None else base_row(prefixed[1], rows)


def without_effect(name: str, rows: Mapping[str, Setting]) -> str | None:
    """Why a setting changes nothing, also behind a listener's prefix; None for one that is followed, or is unknown."""
    prefixed = split_prefix(name)
    if prefixed is not None and prefixed[1] == "num.network.threads":
        return SHARED_THREADS
    row = row_of(name, rows)
    if prefixed is not None and row is not None and row.name != prefixed[1] and row.name in _OF_LISTENER:
        return BEFORE_MECHANISM
    if _JAAS in (name, prefixed[1] if prefixed is not None else None):
        return WITHOUT_MECHANISM
    return None if row is None else row.ignored
