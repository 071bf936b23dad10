"""The client's side of SASL's mechanisms: the first message, and the answer to each challenge. No I/O."""

import logging
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

from kavka.client.api_errors_cluster import SaslAuthenticationError
from kavka.protocol.sasl.oauthbearer import AFTER_ERROR, bearer_first
from kavka.protocol.sasl.plain import plain_message
from kavka.protocol.sasl.scram import ScramClient, ScramMechanism
from kavka.protocol.sasl.scram_messages import ScramError

_SHOWN_CHARACTERS: Final = 500
_NO_EXTENSIONS: Final[Mapping[str, str]] = MappingProxyType({})

log = logging.getLogger(__name__)


class Conversation(Protocol):
    """One exchange. Each call raises AuthenticationError."""

    def first(self) -> bytes:
        """What to begin with."""

    def answer(self, challenge: bytes) -> bytes | None:
        """What to say to the broker's challenge; None: nothing more, the exchange is over."""


class Mechanism(NamedTuple):
    """What a client says who it is by. `begin()` makes a conversation, and must not wait. Shows no secret."""

    name: str
    begin: Callable[[], Conversation]

    def __repr__(self) -> str:
        return f"Mechanism({self.name})"


class PlainConversation:
    """PLAIN (RFC 4616): name and password, as they are."""

    def __init__(self, user: str, password: str) -> None:
        self._message: Final = plain_message(user, password)

    def first(self) -> bytes:
        return self._message

    def answer(self, challenge: bytes) -> bytes | None:
        if challenge:
            raise SaslAuthenticationError("the broker asks for more, where PLAIN has said all")
        return None


class ScramConversation:
    """SCRAM (RFC 5802, KIP-84): both sides prove that they know the password, and neither says it."""

    def __init__(self, mechanism: ScramMechanism, user: str, password: str, extensions: Mapping[str, str]) -> None:
        self._client: Final = ScramClient(mechanism, user, password, extensions)
        self._has_proved = False

    def first(self) -> bytes:
        return self._client.first()

    def answer(self, challenge: bytes) -> bytes | None:
        try:
            if not self._has_proved:
                self._has_proved = True
                return self._client.final(challenge)
            self._client.verify(challenge)
        except ScramError as failure:
            raise SaslAuthenticationError(f"SCRAM with the broker failed: {failure}") from failure
        return None


class BearerConversation:
    """OAUTHBEARER (RFC 7628, KIP-255): a token, and extensions for those who read them (KIP-342)."""

    def __init__(self, token: str, extensions: Mapping[str, str] = _NO_EXTENSIONS) -> None:
        self._message: Final = bearer_first(token, extensions)
        self._has_failed = False

    def first(self) -> bytes:
        return self._message

    def answer(self, challenge: bytes) -> bytes | None:
        if not challenge and not self._has_failed:
            return None
        if self._has_failed:
            raise SaslAuthenticationError("the broker says more after it refused the token")
        # Why it is refused. It says so as an error once this is answered.
        self._has_failed = True
        log.debug("a token was refused answer=%r", challenge.decode(errors="replace")[:_SHOWN_CHARACTERS])
        return AFTER_ERROR
