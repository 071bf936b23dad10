"""SCRAM-SHA-256 and -512: users with stored credentials, and delegation tokens (`tokenauth=true`, KIP-48).

For a user that does not exist the exchange goes on as for others and fails at the end, with a salt that is the same
each time and looks like those of the users that there are, as the number of iterations does: nobody learns by it who
exists. (Kafka fails at once.)
"""

import hashlib
import hmac
import logging
import secrets
from collections.abc import Sequence
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
    from kavka.cluster.znodes.scram_credential import Look

MOST_REMEMBERED: Final = 1_000
_SALT_BITS: Final = 130
_OTHER_ID: Final = "Authentication failed: Client requested an authorization id that is different from username"

log = logging.getLogger(__name__)


class StandIns:
    """Credentials for users that do not exist: the same each time, and nobody has their passwords. Immutable."""

    def __init__(self, secret: bytes | None = None) -> None:
        """`secret`: the brokers' own, if they have one, so that all of them say the same, also after a restart."""
        self._secret = hashlib.sha256(b"stand-in" + secret).digest() if secret else secrets.token_bytes(32)

    def credential(self, mechanism: ScramMechanism, user: str, looks: "Sequence[Look]" = ()) -> ScramCredential:
        """What stands in for the user's. It looks like one of `looks`, each as often as there are such."""
        size_bytes = mechanism.key_size_bytes
        # The same one as long as the shares stay, so that it does not change with each user that comes or goes.
        place = int.from_bytes(self._drawn("look", mechanism, user)[:8]) * len(looks) >> 64
        look = looks[place] if looks else None
        # Nobody finds what hashes to the first key, so that no proof fits.
        return ScramCredential(
            self.salt(mechanism, user, look),
            self._drawn("stored key", mechanism, user)[:size_bytes],
            self._drawn("server key", mechanism, user)[:size_bytes],
            MIN_ITERATIONS if look is None else look.iterations,
        )

    def salt(self, mechanism: ScramMechanism, user: str, look: "Look | None" = None) -> bytes:
        """The salt of that name, as Kafka makes them unless it is to look otherwise."""
        drawn = self._drawn("salt", mechanism, user)
        if look is None or look.is_kafkas:
            return text_of_salt(int.from_bytes(drawn) & ((1 << _SALT_BITS) - 1))
        return hashlib.shake_256(drawn).digest(look.salt_bytes)

    def _drawn(self, what: str, mechanism: ScramMechanism, user: str) -> bytes:
        return hmac.digest(self._secret, f"{what}\0{mechanism.value}\0{user}".encode(), "sha512")


class Scram:
    """One of the two mechanisms. Threads: any; `_of_tokens` is a memory of equal values."""

    def __init__(self, mechanism: ScramMechanism, stores: "Stores", stand_ins: StandIns) -> None:
        self.mechanism: Final = mechanism
        self.stores: Final = stores
        self.stand_ins: Final = stand_ins
        self._of_tokens: dict[str, ScramCredential] = {}

    def login(self) -> "ScramLogin":
        """Begin a client's login."""
        return ScramLogin(self)

    def of_token(self, token_id: str, hmac_text: str) -> ScramCredential:
        """A token's credential: derived at its first login, 4 ms, not when tokens are loaded, which may be thousands.

        It is remembered, or whoever knows a token's id, which is no secret, could have it derived again and again. Its
        salt is what the token would have if there were none: another one would tell that there is.
        """
        credential = self._of_tokens.get(hmac_text)
        if credential is None:
            salt = self.stand_ins.salt(self.mechanism, token_id)
            credential = credential_of(self.mechanism, hmac_text, salt=salt)
            if len(self._of_tokens) >= MOST_REMEMBERED:
                self._of_tokens = {}
            self._of_tokens[hmac_text] = credential
        return credential


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
                return kind.of_token(user, token.hmac_text)
            log.debug("no such delegation token")
            return kind.stand_ins.credential(kind.mechanism, user)
        self._shown = Identity(f"User:{user}")
        users = kind.stores.scram_credentials
        if users is None:
            return kind.stand_ins.credential(kind.mechanism, user)
        credential = users.find(kind.mechanism, user)
        if credential is not None and credential.iterations >= MIN_ITERATIONS:
            return credential
        log.debug("no credential that can be used mechanism=%s user=%r", kind.mechanism.value, user)
        return kind.stand_ins.credential(kind.mechanism, user, users.looks(kind.mechanism))
