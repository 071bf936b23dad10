"""OAUTHBEARER: a token says who the client is. Whether the token is to be believed is for a `Validator` to say.

A token that is not believed is answered with an error as JSON (RFC 7628); the client's next message ends the exchange.
"""

from typing import NamedTuple, Protocol

from kavka.broker.security.sasl.mechanisms import AuthenticationError, Identity, ToldError
from kavka.protocol.sasl.oauthbearer import AFTER_ERROR, BearerError, bearer_error, read_bearer_first

INVALID_TOKEN = "invalid_token"
INSUFFICIENT_SCOPE = "insufficient_scope"


class TokenError(Exception):
    """A token is not believed. The text is for the log, and has nothing of the token but its names for things."""

    def __init__(self, reason: str, status: str = INVALID_TOKEN, scope: str | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.scope = scope


class BelievedToken(NamedTuple):
    """Who the token is of, and until when."""

    name: str
    expiry_ms: int


class Validator(Protocol):
    """Says whether a token is to be believed. Threads: any; never waits."""

    def validate(self, token: str) -> BelievedToken:
        """Raises TokenError."""
        ...


class OAuthBearer:
    """The mechanism. Threads: any."""

    def __init__(self, validator: Validator) -> None:
        self.validator = validator

    def login(self) -> "OAuthBearerLogin":
        """Begin a client's login."""
        return OAuthBearerLogin(self.validator)


class OAuthBearerLogin:
    """One client's. Threads: one at a time."""

    def __init__(self, validator: Validator) -> None:
        self._validator = validator
        self._error: tuple[str, str] | None = None
        """What the client was told, and why."""
        self.identity: Identity | None = None

    def respond(self, token: bytes) -> bytes:
        """Nothing, if the token is believed; else the error, which the client's next message ends with.

        Raises AuthenticationError.
        """
        if self._error is not None:
            told, reason = self._error
            if token == AFTER_ERROR:
                raise ToldError(told, reason)
            raise AuthenticationError(reason)
        try:
            first = read_bearer_first(token)
            believed = self._validator.validate(first.token)
        except BearerError as error:
            raise AuthenticationError(str(error)) from None
        except TokenError as error:
            told = bearer_error(error.status, error.scope)
            self._error = told, str(error)
            return told.encode()
        if first.authorization_id not in ("", believed.name):
            raise ToldError(
                f"Authentication failed: Client requested an authorization id ({first.authorization_id}) that is "
                f"different from the token's principal name ({believed.name})"
            )
        self.identity = Identity(f"User:{believed.name}", believed.expiry_ms)
        return b""
