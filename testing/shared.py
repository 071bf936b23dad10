"""A broker that tests share, each with names of its own for topics and groups."""

import re
from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Final, NoReturn

from kavka.testing.served import Served

if TYPE_CHECKING:
    from kavka.client import Admin, Producer
    from kavka.testing.broker import Broker

LONGEST_NAME_CHARACTERS: Final = 100
_NOT_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_-]+")


def prefix_of(node_id: str) -> str:
    """What a test's topics and groups begin with: its name, and some digits that no other test has."""
    name = _NOT_IN_NAMES.sub("-", node_id.rpartition("::")[2]).strip("-")[:LONGEST_NAME_CHARACTERS]
    return f"{name}-{sha256(node_id.encode()).hexdigest()[:8]}."


class SharedBroker(Served):
    """A session's broker, as one test sees it: `named("orders")` is its own topic of that name, or its own group.

    The methods here take names with the prefix or without; what is tested is to be told the whole one, which
    `create_topic` gives back.

    Threads: any.
    """

    def __init__(self, broker: "Broker", prefix: str) -> None:
        super().__init__()
        self._broker: Final = broker
        self.prefix: Final = prefix
        self.clock = broker.clock

    def named(self, name: str) -> str:
        """The name with this test's prefix, once."""
        return name if name.startswith(self.prefix) else self.prefix + name

    @property
    def bootstrap_servers(self) -> str:
        return self._broker.bootstrap_servers

    def bootstrap_at(self, listener: str) -> str:
        return self._broker.bootstrap_at(listener)

    @property
    def listeners(self) -> Sequence[str]:
        return self._broker.listeners

    @property
    def plain_servers(self) -> str:
        return self._broker.plain_servers

    @property
    def admin(self) -> "Admin":
        """The session's; it sees the topics of all tests."""
        return self._broker.admin

    @property
    def producer(self) -> "Producer":
        """The session's; it takes whole names."""
        return self._broker.producer

    @property
    def faults(self) -> NoReturn:
        """Raises RuntimeError: other tests would meet them, too."""
        raise RuntimeError("nothing goes wrong with a shared broker: use kavka_broker")

    def check(self) -> None:
        self._broker.check()

    def travel(self, **_: float) -> NoReturn:
        """Raises RuntimeError: other tests' members and transactions would time out, too."""
        raise RuntimeError("the clock of a shared broker stays as it is: use kavka_broker")
