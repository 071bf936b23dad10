"""The control plane (KIP-291): the controller's requests come in by a listener, a queue and threads of their own.

Clients that keep all others busy then hold up no change of leaders. With `control.plane.listener.name` alone.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from kavka.broker.socket_server import Plane, SocketServer

if TYPE_CHECKING:
    from kavka.broker.security.listener_transports import ListenerTransports
    from kavka.config.broker_config import BrokerConfig
    from kavka.config.listeners import Listener

QUEUED_REQUESTS: Final = 20


class ControlPlane(Plane):
    """The listener that is for the controller: one thread reads, one runs requests, as in Kafka."""

    prefix = "control-"

    def listeners(self, config: "BrokerConfig") -> "list[Listener]":
        """The one that `control.plane.listener.name` names."""
        name = (config.control_plane_listener_name or "").upper()
        return [each for each in config.listeners if each.name == name]

    def network_threads(self, config: "BrokerConfig") -> int:
        return 1

    def io_threads(self, config: "BrokerConfig") -> int:
        return 1

    def queued_requests(self, config: "BrokerConfig") -> int:
        return QUEUED_REQUESTS


class ControlSockets(SocketServer):
    """The control plane's side."""

    _plane = ControlPlane()


class TwoPlanes(SocketServer):
    """A SocketServer with a control plane beside it, which starts and stops with it.

    Its counts and its queue are those of the clients' side. Of what changes while it listens the control plane takes
    what its own listener has: certificates, limits, the address.
    """

    def __init__(self, config: "BrokerConfig", *parts: Any) -> None:
        """`parts`: what a SocketServer is given besides."""
        super().__init__(config, *parts)
        self._control = ControlSockets(config, *parts)

    def bind(self) -> None:
        """See SocketServer."""
        super().bind()
        try:
            self._control.bind()
        except OSError:
            super().stop_accepting()
            raise

    def start(self) -> None:
        """See SocketServer."""
        super().start()
        self._control.start()

    def listen(self) -> None:
        """See SocketServer."""
        super().listen()
        self._control.listen()

    def prepare(self, config: "BrokerConfig") -> None:
        """See SocketServer."""
        super().prepare(config)
        self._control.prepare(config)

    def keep_only(self, configs: "Sequence[BrokerConfig]") -> None:
        """See SocketServer."""
        try:
            super().keep_only(configs)
        finally:
            self._control.keep_only(configs)

    def reconfigure(self, config: "BrokerConfig", pending: "Sequence[BrokerConfig]" = ()) -> None:
        """See SocketServer."""
        try:
            super().reconfigure(config, pending)
        finally:
            self._control.reconfigure(config, pending)

    def stop_accepting(self) -> None:
        """See SocketServer."""
        super().stop_accepting()
        self._control.stop_accepting()

    def cut(self) -> None:
        """See SocketServer."""
        super().cut()
        self._control.cut()

    def stop_running(self) -> None:
        """See SocketServer."""
        super().stop_running()
        self._control.stop_running()

    def stop(self) -> None:
        """See SocketServer."""
        super().stop()
        self._control.stop()

    @property
    def transports(self) -> "list[ListenerTransports]":
        """See SocketServer."""
        return super().transports + self._control.transports

    def bound_port(self, listener_name: str) -> int:
        """See SocketServer."""
        if listener_name in self._control.listener_names:
            return self._control.bound_port(listener_name)
        return super().bound_port(listener_name)
