"""What makes a broker safe, where its settings ask for it: nothing of it is imported elsewhere."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kavka.broker.services import Services
    from kavka.config.broker_config import BrokerConfig

Undo = Callable[[Callable[[], None]], None]


def start_security(
    config: "BrokerConfig", services: "Services", undo: Undo, on_death: Callable[[BaseException], None]
) -> None:
    """Fill in what decides who may do what, before anybody can connect. `undo(step)`: what a stop has to do.

    Raises RegistryError, ConfigError: what was asked for cannot be served.
    """
    if config.authorizer_class_name:
        from kavka.broker.security.authorizer.opening import open_authorizer

        authorizer = open_authorizer(config, services.registry, services.changed, services.now_ms, on_death)
        undo(authorizer.close)
        services.authorizer, services.acls = authorizer.decides, authorizer.acls
