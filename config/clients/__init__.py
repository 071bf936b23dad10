"""The settings of producers, consumers and administrators, as rows.

Each kind is loaded when it is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    # What type checkers see in place of `__getattr__`'s Any.
    from kavka.config.clients.admin import AdminSettings, admin_settings
    from kavka.config.clients.consumer import ConsumerSettings, consumer_settings
    from kavka.config.clients.every_client import CommonSettings
    from kavka.config.clients.producer import ProducerSettings, producer_settings

_LATER: Final = {
    "AdminSettings": "kavka.config.clients.admin",
    "CommonSettings": "kavka.config.clients.every_client",
    "ConsumerSettings": "kavka.config.clients.consumer",
    "ProducerSettings": "kavka.config.clients.producer",
    "admin_settings": "kavka.config.clients.admin",
    "consumer_settings": "kavka.config.clients.consumer",
    "producer_settings": "kavka.config.clients.producer",
}


def __getattr__(name: str) -> Any:
    """What is loaded only when somebody wants it."""
    place = _LATER.get(name)
    if place is None:
        raise AttributeError(f"module 'kavka.config.clients' has no attribute {name!r}")
    return getattr(import_module(place), name)


def __dir__() -> list[str]:
    """For those who look around: loaded or not."""
    return sorted({*globals(), *_LATER})


__all__ = [
    "AdminSettings",
    "CommonSettings",
    "ConsumerSettings",
    "ProducerSettings",
    "admin_settings",
    "consumer_settings",
    "producer_settings",
]
