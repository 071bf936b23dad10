"""Which names may be among the dynamic settings of a broker or of the whole cluster (KIP-226), in Kafka's words."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from kavka.config.errors import ConfigError
from kavka.config.listener_prefix import base_row, split_prefix
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
    known = {name: row for name in names if (row := _row(name, rows)) is not None}
    _refuse("Cannot update these configs dynamically", [n for n, row in known.items() if not row.is_dynamic])
    _refuse(
        "These security configs can be dynamically updated only per-listener using the listener prefix",
        [name for name in known if name in _ONLY_PER_LISTENER],
    )
    if not per_broker:
        _refuse(
            "Cannot update these configs at default cluster level, broker id must be specified",
            [name for name, row in known.items() if row.scope is PER_BROKER],
        )


def _row(name: str, rows: Mapping[str, Setting]) -> Setting | None:
    prefixed = split_prefix(name)
    return rows.get(name) if prefixed is None else base_row(prefixed[1], rows)


def _refuse(why: str, names: list[str]) -> None:
    if names:
        raise ConfigError(None, None, f"{why}: Set({', '.join(sorted(names))})")
