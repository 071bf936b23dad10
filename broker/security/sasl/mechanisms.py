"""What a SASL mechanism is to the exchange that runs it: the server's side of one login, without sockets."""

from typing import NamedTuple, Protocol


class Identity(NamedTuple):
    """Who a client has shown to be."""

    principal: str
    """As `User:NAME`."""
    expiry_ms: int | None = None
    """When what it has shown expires (Unix time); None: never."""
    is_by_token: bool = False
    """Whether it was a delegation token."""


class AuthenticationError(Exception):
    """The client has not shown who it is. The text is for the broker's log; it has no secret.

    A client is told no more than that its credentials are invalid, lest it learns who exists.
    """


class ToldError(AuthenticationError):
    """The same, with a text that the client may read: `told`."""

    def __init__(self, told: str, reason: str = "") -> None:
        """`reason`: what the log is to say, if it is more."""
        super().__init__(reason or told)
        self.told = told


class Login(Protocol):
    """One client's login by one mechanism. Threads: one at a time."""

    def respond(self, token: bytes, /) -> bytes | None:
        """What to answer to the client's next token; None: nothing at all, where tokens come raw.

        Raises AuthenticationError; the login has failed then.
        """
        ...

    @property
    def identity(self) -> Identity | None:
        """Who the client is, once it has shown that."""
        ...


class Mechanism(Protocol):
    """One mechanism on one listener. Threads: any."""

    def login(self) -> Login:
        """Begin a client's login."""
        ...
