"""What is known of a client while it is connected: who it is, and what its requests look like."""

from collections.abc import Callable, Iterable, Mapping, Sized
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol

from kavka.broker.requests.prepared import Prepared, Small

if TYPE_CHECKING:
    from kavka.broker.network.peer_certificate import PeerCertificate
    from kavka.broker.security.acl import Authorizer, Rights

ANONYMOUS: Final = "User:ANONYMOUS"
_NOTHING: Final[Mapping[int, Prepared]] = MappingProxyType({})


class Gate(Protocol):
    """Stands before all requests of a client until it is known who that is (broker/security/sasl/gate.py)."""

    def execute(self, context: Any, passage: Any, /) -> bool:
        """Run, refuse or let in one request: see `Dispatcher.execute`. The thread that holds `running`."""
        ...

    def longest_frame_bytes(self, usual_bytes: int, /) -> int:
        """How long a request may be at first, where others may be as long as `usual_bytes`. Called once, at first."""
        ...

    def may_begin_again(self) -> bool:
        """Whether the client may authenticate again: its session has a lifetime, and the last time is a second ago."""
        ...

    def begin_again(self, mechanism: str, context: Any, /) -> Any:
        """The client authenticates again (KIP-368): the answer to its SaslHandshake, or a promise of it.

        Where it may alone. From here on its requests are the gate's, until it has.
        """
        ...

    def rejected(self, listener_name: str, /) -> None:
        """The client sent what makes no sense in place of showing who it is, and is closed. Any thread."""

    def end(self) -> None:
        """The connection is closed. Its network thread."""
        ...


class Session:
    """One connection's. Threads: that which holds the connection's `running`; `end` by its network thread, any time.

    `shut` also by the timer's thread: it shuts the gate before it takes away what is prepared, and `prepare` looks at
    the gate after it has put something there, so that nothing is prepared behind a gate.
    """

    __slots__ = ("_first", "authorizer", "gate", "is_by_token", "prepared", "principal", "rights", "sasl")

    def __init__(
        self, prepared: Mapping[int, Prepared], authorizer: "Authorizer | None" = None, gate: Gate | None = None
    ) -> None:
        """`prepared`: what it begins with; it may be shared, and is not changed. `gate`: who lets the client in."""
        self.principal = ANONYMOUS
        self.is_by_token = False
        """Whether it is who it is by a delegation token: such a client gets no others (KIP-48)."""
        self.authorizer = authorizer
        self.rights: Rights | None = None
        """See `Context.rights`."""
        self.sasl = gate
        """What the client has authenticated by, and does so again (KIP-368); None where the listener has no SASL."""
        self.gate = gate
        """None: the client is known, or needs not be; else every request is this one's, and nothing is prepared."""
        self._first = prepared
        self.prepared: Mapping[int, Prepared] = _NOTHING if gate is not None else prepared
        """By API key. Replaced, never changed."""

    @property
    def is_authenticated(self) -> bool:
        """Whether the client is let in."""
        return self.gate is None

    def handshaken(self, peer: "PeerCertificate | None") -> None:
        """The client showed this certificate, or none, for TLS: it makes a principal where no SASL follows."""
        if peer is not None and self.sasl is None:
            self.principal = peer.principal

    def longest_frame_bytes(self, usual_bytes: int) -> int:
        """How long the client's first requests may be, where others may be as long as `usual_bytes`."""
        return usual_bytes if self.gate is None else self.gate.longest_frame_bytes(usual_bytes)

    def prepare(self, api_key: int, prepared: Prepared | None) -> None:
        """Try this first for the requests to an API from now on; None: no longer what was tried."""
        others = {key: each for key, each in self.prepared.items() if key != api_key}
        self.prepared = others if prepared is None else {**others, api_key: prepared}
        if self.gate is not None:
            self.prepared = _NOTHING

    def open(self, principal: str, is_by_token: bool = False) -> None:
        """The client is known: let its requests pass."""
        self.principal = principal
        self.is_by_token = is_by_token
        self.gate = None
        self.prepared = self._first

    def shut(self) -> None:
        """What the client was let in for has expired, or it authenticates again: the next request is the gate's."""
        self.gate = self.sasl
        self.prepared = _NOTHING

    def rejected(self, listener_name: str) -> None:
        """The client has sent what makes no sense, and is going to be closed for that. Any thread."""
        gate = self.gate
        if gate is not None:
            gate.rejected(listener_name)

    def end(self) -> None:
        """Forget what its requests look like: the connection is closed."""
        # What was begun of a request that runs meanwhile stays known.
        for each in self.prepared.values():
            each.forget()
        if self.sasl is not None:
            self.sasl.end()


class Sessions:
    """Makes the sessions of new connections. Threads: any."""

    def __init__(
        self,
        small_api_keys: Iterable[int],
        moving: Sized = (),
        authorizer: "Authorizer | None" = None,
        *,
        gate_of: Callable[[str], Gate | None] = lambda listener_name: None,
        kind: Callable[[Mapping[int, Prepared], "Authorizer | None", Gate | None], Session] = Session,
    ) -> None:
        """`small_api_keys`: the APIs whose requests network threads may run, unless something is `moving` (logs).

        `gate_of(listener_name)` makes what stands before a new connection, if anything; `kind` makes the session.
        """
        self._prepared: Mapping[int, Prepared] = dict.fromkeys(small_api_keys, Small(moving))
        self._authorizer = authorizer
        self._gate_of = gate_of
        self._kind = kind

    def new(self, listener_name: str) -> Session:
        """The session of a client that is not known yet."""
        return self._kind(self._prepared, self._authorizer, self._gate_of(listener_name))
