"""SCRAM-SHA-256 and -512: users with stored credentials, and delegation tokens (`tokenauth=true`, KIP-48).

For a user that does not exist the exchange goes on as for others and fails at the end, with a salt that is the same
each time: nobody learns by it who exists. (Kafka fails at once.)
"""

import hashlib
import hmac
import logging
import secrets
from typing import TYPE_CHECKING, Final

from kavka.broker.security.sasl.mechanisms import AuthenticationError, Identity, ToldError
from kavka.protocol.sasl.scram import (
    MIN_ITERATIONS,
    TOKEN_AUTH,
    ScramCredential,
    ScramMechanism,
    ScramServer,
    credential_of,
    text_of_salt,
)
from kavka.protocol.sasl.scram_messages import ClientFirst, ScramError

if TYPE_CHECKING:
    from kavka.broker.security.sasl.ports import Stores

_SALT_BITS: Final = 130
_OTHER_ID: Final = "Authentication failed: Client requested an authorization id that is different from username"

log = logging.getLogger(__name__)


class StandIns:
    """Credentials for users that do not exist: the same each time, and nobody has their passwords. Immutable."""

    def __init__(self, secret: bytes | None = None) -> None:
        """`secret`: the brokers' own, if they have one, so that all of them say the same, also after a restart."""
        self._secret = hashlib.sha256(b"stand-in" + secret).digest() if secret else secrets.token_bytes(32)

    def credential(self, mechanism: ScramMechanism, user: str) -> ScramCredential:
        """What stands in for the user's."""

        def drawn(what: str) -> bytes:
            return hmac.digest(self._secret, f"{what}\0{mechanism.value}\0{user}".encode(), "sha512")

        bits = int.from_bytes(drawn("salt")) & ((1 << _SALT_BITS) - 1)
        size_bytes = mechanism.key_size_bytes
        # Nobody finds what hashes to the first, so that no proof fits.
        return ScramCredential(
            text_of_salt(bits), drawn("stored key")[:size_bytes], drawn("server key")[:size_bytes], MIN_ITERATIONS
        )


class Scram:
    """One of the two mechanisms. Threads: any."""

    def __init__(self, mechanism: ScramMechanism, stores: "Stores", stand_ins: StandIns) -> None:
        self.mechanism: Final = mechanism
        self.stores: Final = stores
        self.stand_ins: Final = stand_ins

    def login(self) -> "ScramLogin":
        """Begin a client's login."""
        return ScramLogin(self)


class ScramLogin:
    """One client's. Threads: one at a time."""

    def __init__(self, kind: Scram) -> None:
        self._kind = kind
        self._server = ScramServer(kind.mechanism, self._find)
        self._shown: Identity | None = None
        self._is_other_id = False

    @property
    def identity(self) -> Identity | None:
        """Who the client is, once it has proved it."""
        return self._shown if self._server.is_complete else None

    def respond(self, token: bytes) -> bytes:
        """The server's next message. Raises AuthenticationError."""
        try:
            answer = self._server.respond(token)
        except ScramError as error:
            raise AuthenticationError(str(error)) from None
        if self._is_other_id:
            raise ToldError(_OTHER_ID)
        return answer

    def _find(self, first: ClientFirst) -> ScramCredential:
        kind, user = self._kind, first.user
        self._is_other_id = first.authorization_id not in ("", user)
        if first.extensions.get(TOKEN_AUTH, "").lower() == "true":
            tokens = kind.stores.tokens
            token = None if tokens is None else tokens.find(user)
            if token is not None:
                self._shown = Identity(token.owner, token.expiry_ms, is_by_token=True)
                # Here and not when tokens are loaded: thousands of them would take seconds.
                return credential_of(kind.mechanism, token.hmac_text)
            log.debug("no such delegation token")
        else:
            self._shown = Identity(f"User:{user}")
            users = kind.stores.scram_credentials
            credential = None if users is None else users.find(kind.mechanism, user)
            if credential is not None and credential.iterations >= MIN_ITERATIONS:
                return credential
            log.debug("no credential that can be used mechanism=%s user=%r", kind.mechanism.value, user)
        return kind.stand_ins.credential(kind.mechanism, user)
