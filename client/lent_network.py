"""A network client whose work may be done by others while its owner sleeps."""

import threading

from kavka.client.network_client import NetworkClient
from kavka.client.node import Node
from kavka.client.selecting import TimedSelector


class LentNetworkClient(NetworkClient):
    """As `NetworkClient`, for a `ClientThread` whose place may be taken (`step_in`).

    Threads: the owner's; who has the turn while the owner waits may call what is here, and `send`.
    """

    def lend(self, turn: threading.Lock) -> None:
        """The owner has the turn now, and gives it away for as long as it waits in `poll`."""
        assert isinstance(self._selector, TimedSelector)
        self._selector.turn = turn

    def is_ready(self, node: Node) -> bool:
        """Whether a request may be sent to `node` now; begins nothing."""
        link = self._links.get(node.key)
        return (
            link is not None
            and link.takes_another
            and (link.node.host, link.node.port) == (node.host, node.port)
            and (self._fetching is None or not self._fetching.goes_before(node))
        )

    @property
    def has_news(self) -> bool:
        """Whether somebody is to be called back by the next `poll`."""
        return bool(self._results)
