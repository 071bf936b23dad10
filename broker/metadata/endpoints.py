"""Where this broker is reached: what it registers, and for which listeners it tells clients what they reached."""

import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kavka.cluster.features import ADVERTISED
from kavka.cluster.znodes.broker import BrokerInfo, Endpoint

if TYPE_CHECKING:
    from kavka.config.broker_config import BrokerConfig

WILDCARDS: Final = frozenset({"", "0.0.0.0", "::"})


def unadvertised_listeners(config: "BrokerConfig") -> frozenset[str]:
    """Listeners on every interface that nothing is advertised for: their clients are told the address they reached."""
    advertised = {listener.name for listener in config.advertised_listeners}
    return frozenset(
        listener.name for listener in config.listeners if listener.host in WILDCARDS and listener.name not in advertised
    )


def broker_info(broker_id: int, config: "BrokerConfig", bound_port: Callable[[str], int]) -> BrokerInfo:
    """The broker's registration. Port 0 becomes the port that was bound, no host this machine's name."""
    advertised = {listener.name: listener for listener in config.advertised_listeners}
    endpoints = []
    for listener in config.listeners:
        shown = advertised.get(listener.name, listener)
        host = shown.host if shown.host not in WILDCARDS else socket.gethostname()
        port = shown.port or bound_port(listener.name)
        endpoints.append(Endpoint(listener.name, host, port, listener.security_protocol))
    return BrokerInfo(broker_id, tuple(endpoints), rack=config.broker_rack, features=ADVERTISED)
