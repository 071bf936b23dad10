"""Settings that cost speed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kavka.config.defaults import KAVKA_DEFAULTS

if TYPE_CHECKING:
    from kavka.config.broker_values import BrokerValues

_THREADS: Final = ("num.network.threads", "num.io.threads")


def costly_settings(config: BrokerValues) -> list[str]:
    """What the start log says of settings that cost speed: adopted files bring thread counts made for the JVM."""
    return [
        f"{name}={config.value(name)} costs speed: {value} is the default, {reason}"
        for name in _THREADS
        for value, reason in (KAVKA_DEFAULTS[name],)
        if isinstance(value, int) and config.value(name) > value
    ]
