"""What is known of a client while it is connected: who it is, and what its requests look like."""

from collections.abc import Iterable, Sized
from typing import TYPE_CHECKING

from kavka.broker.requests.prepared import Prepared, Small

if TYPE_CHECKING:
    from kavka.broker.security.acl import Authorizer, Rights


class Session:
    """One connection's. Threads: that which holds the connection's `running`; `end` by its network thread, any time."""

    __slots__ = ("authorizer", "prepared", "principal", "rights")

    def __init__(self, prepared: dict[int, Prepared], authorizer: "Authorizer | None" = None) -> None:
        """`prepared`: what it begins with; it may be shared, and is not changed."""
        self.principal = "User:ANONYMOUS"
        self.authorizer = authorizer
        self.rights: Rights | None = None
        """See `Context.rights`."""
        self.prepared = prepared
        """By API key. Replaced, never changed."""

    def prepare(self, api_key: int, prepared: Prepared | None) -> None:
        """Try this first for the requests to an API from now on; None: no longer what was tried."""
        others = {key: each for key, each in self.prepared.items() if key != api_key}
        self.prepared = others if prepared is None else {**others, api_key: prepared}

    def end(self) -> None:
        """Forget what its requests look like: the connection is closed."""
        # What was begun of a request that runs meanwhile stays known.
        for each in self.prepared.values():
            each.forget()


class Sessions:
    """Makes the sessions of new connections. Threads: any."""

    def __init__(
        self, small_api_keys: Iterable[int], moving: Sized = (), authorizer: "Authorizer | None" = None
    ) -> None:
        """`small_api_keys`: the APIs whose requests network threads may run, unless something is `moving` (logs)."""
        self._prepared: dict[int, Prepared] = dict.fromkeys(small_api_keys, Small(moving))
        self._authorizer = authorizer

    def new(self) -> Session:
        """The session of a client that is not known yet."""
        return Session(self._prepared, self._authorizer)
