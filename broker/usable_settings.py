"""What can be used of the dynamic settings that are stored, where not all can.

Another version wrote them, or they no longer fit the static settings. One that is wrong must not take others along,
which may need one another: so the settings are looked at together, and the one that is wrong is taken out, until the
rest can be used. A limit of connections is never taken out: the broker would be more open than its operator said.
"""

import logging
from collections.abc import Iterator, Mapping
from typing import Final

from kavka.config.broker_config import BrokerConfig
from kavka.config.errors import ConfigError
from kavka.config.listener_prefix import split_prefix
from kavka.config.promises import check_promises

LIMITS: Final = frozenset(
    {
        "max.connections",
        "max.connections.per.ip",
        "max.connections.per.ip.overrides",
        "max.connection.creation.rate",
    }
)

log = logging.getLogger(__name__)


def snapshot(old: BrokerConfig, cluster_defaults: Mapping[str, str], per_broker: Mapping[str, str]) -> BrokerConfig:
    """The snapshot with these dynamic settings in place of the present ones.

    Raises ConfigError for what cannot be changed so, is wrong, does not fit together, or promises a safety that would
    not be given.
    """
    new = old.with_dynamic(cluster_defaults, per_broker)
    check_promises(new)
    return new


def usable_snapshot(
    old: BrokerConfig, cluster_defaults: Mapping[str, str], per_broker: Mapping[str, str]
) -> BrokerConfig:
    """The snapshot that the stored settings make, without those that cannot be used; each of these is logged.

    Raises ConfigError where a limit of connections is among them.
    """
    defaults, own = dict(cluster_defaults), dict(per_broker)
    while True:
        try:
            return snapshot(old, defaults, own)
        except ConfigError as error:
            layer, name = _offender(old, defaults, own, error)
            if _is_limit(name):
                raise ConfigError(
                    None,
                    None,
                    f"{name} was changed while the broker ran, and cannot be used now: {error} "
                    f"(kavka storage settings --delete {name} takes it back)",
                ) from error
            log.warning("stored dynamic setting is not used name=%s reason=%s", name, error)
            del layer[name]


def _offender(
    old: BrokerConfig, defaults: dict[str, str], own: dict[str, str], error: ConfigError
) -> tuple[dict[str, str], str]:
    """The layer and the name of a setting that has to go. `error` is what all together fail with.

    It is the one that is named, else one without which all is well, else one without which something else is wrong.
    """
    for layer in (own, defaults):
        if error.name in layer:
            return layer, error.name
    candidates = list(_each(own, defaults))
    changed: list[tuple[dict[str, str], str]] = []
    for layer, name in candidates:
        text = layer.pop(name)
        try:
            snapshot(old, defaults, own)
        except ConfigError as other:
            if str(other) != str(error):
                changed.append((layer, name))
        else:
            return layer, name
        finally:
            layer[name] = text
    return (changed or candidates)[0]


def _each(own: dict[str, str], defaults: dict[str, str]) -> Iterator[tuple[dict[str, str], str]]:
    """Every setting with its layer, those last that should rather stay."""
    for limits in (False, True):
        for layer in (own, defaults):
            yield from ((layer, name) for name in list(layer) if _is_limit(name) is limits)


def _is_limit(name: str) -> bool:
    prefixed = split_prefix(name)
    return (name if prefixed is None else prefixed[1]) in LIMITS
