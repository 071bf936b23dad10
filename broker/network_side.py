"""A broker's network side put together: its handlers, its connections' sessions, its planes."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from kavka.broker.requests.handling import load_handlers, shown_versions
from kavka.broker.requests.request_log import RequestLog
from kavka.broker.requests.session import Sessions
from kavka.broker.socket_server import SocketServer

if TYPE_CHECKING:
    from kavka.broker.hooks import Hooks
    from kavka.broker.security.gates import Gates
    from kavka.broker.services import Services
    from kavka.config.broker_config import BrokerConfig


def network_side(
    config: "BrokerConfig",
    services: "Services",
    gates: "Gates",
    hooks: "Hooks",
    on_death: Callable[[BaseException], None],
) -> SocketServer:
    """The network side, nothing of it bound or started yet. Sets `services.served_versions`."""
    handlers = hooks.handlers(load_handlers(in_cluster=bool(config.zookeeper_connect), at_once=False))
    services.served_versions = shown_versions(handlers)
    small = [key for key, handler in handlers.items() if handler.is_small]
    sessions = Sessions(
        small, services.logs.moves.moving, services.authorizer, gate_of=gates.gate_of, kind=hooks.session_kind
    )
    sockets: type[SocketServer] = SocketServer
    if config.control_plane_listener_name is not None:
        from kavka.broker.control_plane import TwoPlanes

        sockets = TwoPlanes
    answered = RequestLog(services.metrics).answered
    return sockets(config, handlers, services, services.metrics, answered, on_death, sessions.new)
