"""How connections to other brokers are secured, by the listeners that are called; loads nothing where they are not."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kavka.client.node import Node
from kavka.client.security_port import Channel, Exchange, SecuredChannel, Securing

if TYPE_CHECKING:
    from kavka.broker.interbroker.listener_security import ListenerSecurity
    from kavka.config.broker_config import BrokerConfig


class LinkSecurity:
    """Threads: any; each network client has a `Securing` of its own. `close` once."""

    def __init__(
        self, config: "Callable[[], BrokerConfig]", control_listener: str, lanes_of_others: frozenset[str]
    ) -> None:
        """`lanes_of_others`: those that go to the inter-broker listener where the controller has one of its own.

        Raises ConfigError, also when no token comes to log in with: that is waited for.
        """
        others = config().inter_broker_listener_name
        self._lanes_of_others: Final = lanes_of_others
        self._others: Final = _opened(config, others)
        self._control: Final = self._others if control_listener == others else _opened(config, control_listener)

    def of_links(self) -> Securing | None:
        """For the `inter-broker` thread."""
        if self._control is self._others:
            return self.of_fetcher()
        return _ByLane(_by_thread(self._control), _by_thread(self._others), self._lanes_of_others)

    def of_fetcher(self) -> Securing | None:
        """For the connection of a thread that follows."""
        return _by_thread(self._others)

    def close(self) -> None:
        """End the logins' threads."""
        for each in (self._others, self._control):
            if each is not None:
                each.close()


class _ByLane:
    def __init__(self, control: Securing | None, others: Securing | None, lanes_of_others: frozenset[str]) -> None:
        self._control: Final = control
        self._others: Final = others
        self._lanes_of_others: Final = lanes_of_others

    def secured(self, channel: Channel, node: Node) -> SecuredChannel | None:
        ways = self._of(node)
        return None if ways is None else ways.secured(channel, node)

    def authentication(self, node: Node) -> Exchange | None:
        ways = self._of(node)
        return None if ways is None else ways.authentication(node)

    def close(self) -> None:
        """Who made the ways closes them."""

    def _of(self, node: Node) -> Securing | None:
        return self._others if node.lane in self._lanes_of_others else self._control


def _opened(config: "Callable[[], BrokerConfig]", listener_name: str) -> "ListenerSecurity | None":
    if config().listener_security_protocol_map.get(listener_name, "PLAINTEXT") == "PLAINTEXT":
        return None
    from kavka.broker.interbroker.listener_security import ListenerSecurity

    return ListenerSecurity(config, listener_name)


def _by_thread(security: "ListenerSecurity | None") -> Securing | None:
    if security is None:
        return None
    from kavka.client.security.opening import SecuredByThread

    return SecuredByThread(security)
