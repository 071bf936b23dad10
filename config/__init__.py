"""Every setting as a row, and where its value comes from.

What is named here is loaded when it is first asked for: a client needs none of the broker's rows.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    # What type checkers see in place of `__getattr__`'s Any.
    from kavka.config.broker_config import BrokerConfig, changed_settings
    from kavka.config.errors import ConfigError
    from kavka.config.listeners import Listener
    from kavka.config.topic_config import TopicConfig, validate_topic_overrides

_LATER: Final = {
    "BrokerConfig": "kavka.config.broker_config",
    "ConfigError": "kavka.config.errors",
    "Listener": "kavka.config.listeners",
    "TopicConfig": "kavka.config.topic_config",
    "changed_settings": "kavka.config.broker_config",
    "validate_topic_overrides": "kavka.config.topic_config",
}


def __getattr__(name: str) -> Any:
    """What is loaded only when somebody wants it."""
    place = _LATER.get(name)
    if place is None:
        raise AttributeError(f"module 'kavka.config' has no attribute {name!r}")
    return getattr(import_module(place), name)


def __dir__() -> list[str]:
    """For those who look around: loaded or not."""
    return sorted({*globals(), *_LATER})


__all__ = ["BrokerConfig", "ConfigError", "Listener", "TopicConfig", "changed_settings", "validate_topic_overrides"]
