"""Which names may be among the dynamic settings of a broker or of the whole cluster (KIP-226), in Kafka's words."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from kavka.config.errors import ConfigError
from kavka.config.listener_prefix import LIMITS_OF_LISTENER, split_prefix
from kavka.config.setting import Setting
from kavka.config.values import PER_BROKER

_ONLY_PER_LISTENER: Final = frozenset(
    f"ssl.{rest}"
    for rest in (
        "key.password",
        "keystore.certificate.chain",
        "keystore.key",
        "keystore.location",
        "keystore.password",
        "keystore.type",
        "truststore.certificates",
        "truststore.location",
        "truststore.password",
        "truststore.type",
    )
)


def check_dynamic_names(names: Collection[str], rows: Mapping[str, Setting], *, per_broker: bool) -> None:
    """Raises ConfigError if one of the names is read-only, or cannot be the cluster's default. Unknown names pass."""
    known = {name: rows[name] for name in names if name in rows}
    _refuse("Cannot update these configs dynamically", [n for n, row in known.items() if not row.is_dynamic])
    _refuse(
        "These security configs can be dynamically updated only per-listener using the listener prefix",
        [name for name in known if name in _ONLY_PER_LISTENER],
    )
    if not per_broker:
        _refuse(
            "Cannot update these configs at default cluster level, broker id must be specified",
            [name for name in names if _is_per_broker(name, rows)],
        )


def _is_per_broker(name: str, rows: Mapping[str, Setting]) -> bool:
    prefixed = split_prefix(name)
    if prefixed is not None:
        return prefixed[1] not in LIMITS_OF_LISTENER
    return name in rows and rows[name].scope is PER_BROKER


def _refuse(why: str, names: list[str]) -> None:
    if names:
        raise ConfigError(None, None, f"{why}: Set({', '.join(sorted(names))})")
