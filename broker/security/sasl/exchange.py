"""One authentication of one connection, as a table of Kafka's states: requests in, verdicts out. No socket.

    INITIAL_REQUEST                 ApiVersions or SaslHandshake; anything else comes from no client of this listener
    HANDSHAKE_OR_VERSIONS_REQUEST   the same, after a request that could be read
    HANDSHAKE_REQUEST               the versions are told: SaslHandshake
    AUTHENTICATE                    the mechanism is chosen: its tokens, in SaslAuthenticate after SaslHandshake v1,
                                    as frames of their own after v0
    COMPLETE, FAILED                nothing more is taken
    REAUTH_PROCESS_HANDSHAKE        SaslHandshake of a client that was authenticated before (KIP-368)
    REAUTH_BAD_MECHANISM            which named another mechanism: it is told so at its next request

What a state does not take closes the connection, unread: nothing else is decoded of a client that nobody knows. Only
ApiVersions and SaslHandshake that come in the midst of tokens are told ILLEGAL_SASL_STATE before.
"""

import logging
from collections.abc import Mapping
from enum import Enum
from typing import Final, NamedTuple, Protocol

from kavka.broker.security.sasl.mechanisms import AuthenticationError, Identity, Login, Mechanism, ToldError
from kavka.protocol.api import ApiKey
from kavka.protocol.codec import decoder, encode
from kavka.protocol.errors import DecodeError, ErrorCode
from kavka.protocol.framing import SIZE
from kavka.protocol.headers import RequestHeader, ResponseHead, decode_request_header
from kavka.protocol.messages.api_versions import ApiVersionsResponse
from kavka.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kavka.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kavka.protocol.schema import Response

API_VERSIONS_VERSIONS: Final = (0, 4)
HANDSHAKE_VERSIONS: Final = (0, 1)
AUTHENTICATE_VERSIONS: Final = (0, 2)

log = logging.getLogger(__name__)


class State(Enum):
    """See the top."""

    INITIAL_REQUEST = "initial request"
    HANDSHAKE_OR_VERSIONS_REQUEST = "handshake or versions request"
    HANDSHAKE_REQUEST = "handshake request"
    AUTHENTICATE = "authenticate"
    COMPLETE = "complete"
    FAILED = "failed"
    REAUTH_PROCESS_HANDSHAKE = "re-authentication: handshake"
    REAUTH_BAD_MECHANISM = "re-authentication: bad mechanism"


TAKES: Final[Mapping[State, frozenset[ApiKey]]] = {
    State.INITIAL_REQUEST: frozenset({ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE}),
    State.HANDSHAKE_OR_VERSIONS_REQUEST: frozenset({ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE}),
    State.HANDSHAKE_REQUEST: frozenset({ApiKey.SASL_HANDSHAKE}),
    State.AUTHENTICATE: frozenset({ApiKey.SASL_AUTHENTICATE}),
    State.COMPLETE: frozenset(),
    State.FAILED: frozenset(),
    State.REAUTH_PROCESS_HANDSHAKE: frozenset({ApiKey.SASL_HANDSHAKE}),
    State.REAUTH_BAD_MECHANISM: frozenset({ApiKey.SASL_AUTHENTICATE}),
}
"""What each state takes; all else closes the connection."""

VERSIONS: Final[Mapping[ApiKey, tuple[int, int]]] = {
    ApiKey.API_VERSIONS: API_VERSIONS_VERSIONS,
    ApiKey.SASL_HANDSHAKE: HANDSHAKE_VERSIONS,
    ApiKey.SASL_AUTHENTICATE: AUTHENTICATE_VERSIONS,
}
TOLD_LATE: Final = frozenset({ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE})
"""What a client is told that comes too late, as it is known already that it speaks Kafka's protocol."""
NO_CLIENT: Final = (
    "Invalid request, potential reasons: kafka client configured with the wrong security protocol, "
    "it does not support KIP-43 or it is not a kafka client."
)


class Verdict(Enum):
    """What becomes of a request."""

    LET_THROUGH = "the ordinary way answers it"
    ANSWERED = "it is answered, and more is to come"
    KNOWN = "it is answered, and the client is known from here on"
    FAILED = "it is answered, and the connection closed, both after a while"
    REFUSED = "the connection is closed"


class Step(NamedTuple):
    """`answer` is whole, with its size; `reason` is for the log."""

    verdict: Verdict
    answer: bytes = b""
    reason: str = ""


class Lifetimes(Protocol):
    """How long sessions last."""

    def of(self, mechanism: str, identity: Identity, /) -> int | None:
        """The lifetime (ms) of a session that begins now; None: as long as its connection."""
        ...


class Exchange:
    """Threads: one at a time."""

    def __init__(
        self,
        mechanisms: Mapping[str, Mechanism],
        lifetimes: "Lifetimes",
        before: "Authenticated | None" = None,
    ) -> None:
        """`mechanisms` are the enabled ones; `before`: what the client was, if it authenticates again."""
        self._mechanisms = mechanisms
        self._lifetimes = lifetimes
        self._before = before
        self.state = State.INITIAL_REQUEST if before is None else State.REAUTH_PROCESS_HANDSHAKE
        self.header: RequestHeader | None = None
        """Of the last request, if it had one."""
        self.mechanism = ""
        self.authenticated: Authenticated | None = None
        self._login: Login | None = None
        self._has_headers = False
        self._knows_lifetimes = False

    @property
    def is_repeated(self) -> bool:
        """Whether the client was known before."""
        return self._before is not None

    def take(self, frame: memoryview) -> Step:
        """The next request, or token."""
        self.header = None
        if self.state is State.AUTHENTICATE and not self._has_headers:
            return self._take_raw(bytes(frame))
        try:
            header = self.header = decode_request_header(frame)
            return self._take_request(header, frame)
        except DecodeError as failure:
            reason = NO_CLIENT if self.state is State.INITIAL_REQUEST else str(failure)
            self.state = State.FAILED
            return Step(Verdict.REFUSED, reason=reason)

    def versions_told(self, is_told: bool) -> None:
        """ApiVersions has been answered: with the versions, or else with an error, so that the client asks again."""
        if is_told:
            self.state = State.HANDSHAKE_REQUEST

    def _take_request(self, header: RequestHeader, frame: memoryview) -> Step:
        """Raises DecodeError for what cannot be read."""
        key, version = header.api_key, header.api_version
        if key not in TAKES[self.state]:
            if self.state is State.AUTHENTICATE and key in TOLD_LATE:
                return self._refuse_late(header)
            during = "authentication" if self.state is State.AUTHENTICATE else "handshake"
            raise DecodeError(f"Unexpected Kafka request of type {_name_of(key)} during SASL {during}.")
        if key == ApiKey.API_VERSIONS:
            self.state = State.HANDSHAKE_OR_VERSIONS_REQUEST
            return Step(Verdict.LET_THROUGH)
        lowest, highest = VERSIONS[ApiKey(key)]
        if not lowest <= version <= highest:
            raise DecodeError(f"Version {version} is not supported for apiKey {_name_of(key)}")
        if key == ApiKey.SASL_HANDSHAKE:
            request = decoder(SaslHandshakeRequest, version)(frame, header.body_offset)
            response, reason = self.shake_hands(request.mechanism, version)
            return Step(Verdict.FAILED if reason else Verdict.ANSWERED, _framed(header, response), reason)
        token = decoder(SaslAuthenticateRequest, version)(frame, header.body_offset).auth_bytes
        self._knows_lifetimes |= version > 0
        return self._take_token(bytes(token), header)

    def _refuse_late(self, header: RequestHeader) -> Step:
        """It comes where tokens are expected: its client is told so, and then the connection is closed."""
        lowest, highest = VERSIONS[ApiKey(header.api_key)]
        if not lowest <= header.api_version <= highest:
            raise DecodeError(f"Version {header.api_version} is not supported here")
        self.state = State.FAILED
        error = ErrorCode.ILLEGAL_SASL_STATE
        response: Response
        if header.api_key == ApiKey.API_VERSIONS:
            response = ApiVersionsResponse(error_code=error, api_keys=[])
        else:
            response = SaslHandshakeResponse(error_code=error, mechanisms=[])
        name = ApiKey(header.api_key).name
        reason = f"Unexpected Kafka request of type {name} during SASL authentication."
        return Step(Verdict.FAILED, _framed(header, response), reason)

    def shake_hands(self, chosen: str, version: int) -> tuple[SaslHandshakeResponse, str]:
        """The answer to a client that chooses a mechanism, and why it is refused, if it is."""
        names = list(self._mechanisms)
        mechanism = self._mechanisms.get(chosen)
        if mechanism is None:
            self.state = State.FAILED
            refusal = SaslHandshakeResponse(error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=names)
            return refusal, f"Unsupported SASL mechanism {chosen[:64]}"
        self._has_headers |= version >= 1
        if self._before is not None and self._before.mechanism != chosen:
            self.state = State.REAUTH_BAD_MECHANISM
        else:
            self._login = mechanism.login()
            self.state = State.AUTHENTICATE
        self.mechanism = chosen
        return SaslHandshakeResponse(error_code=ErrorCode.NONE, mechanisms=names), ""

    def _take_token(self, token: bytes, header: RequestHeader) -> Step:
        try:
            answer = self._evaluate(token)
        except AuthenticationError as error:
            self.state = State.FAILED
            refusal = SaslAuthenticateResponse(
                error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=self._told(error), auth_bytes=b""
            )
            return Step(Verdict.FAILED, _framed(header, refusal), str(error))
        known = self.authenticated
        lifetime_ms = known.lifetime_ms or 0 if known is not None else 0
        response = SaslAuthenticateResponse(
            error_code=ErrorCode.NONE,
            error_message="",
            auth_bytes=answer or b"",
            session_lifetime_ms=lifetime_ms,
        )
        return Step(Verdict.ANSWERED if known is None else Verdict.KNOWN, _framed(header, response))

    def _take_raw(self, token: bytes) -> Step:
        """A token without a header, as clients of SaslHandshake v0 send it; a failure has no answer here."""
        try:
            answer = self._evaluate(token)
        except AuthenticationError as error:
            self.state = State.FAILED
            return Step(Verdict.FAILED, reason=str(error))
        framed = b"" if answer is None else SIZE.pack(len(answer)) + answer
        return Step(Verdict.ANSWERED if self.authenticated is None else Verdict.KNOWN, framed)

    def _evaluate(self, token: bytes) -> bytes | None:
        """Raises AuthenticationError."""
        before, login = self._before, self._login
        if login is None:
            raise ToldError(
                f"SASL mechanism '{self.mechanism}' requested by client is not supported "
                f"for re-authentication of mechanism '{before.mechanism if before is not None else ''}'"
            )
        try:
            answer = login.respond(token)
        except AuthenticationError:
            raise
        except Exception as failure:
            # Ours, or a library's: it costs this connection, never the thread.
            log.exception("authentication could not be performed mechanism=%s", self.mechanism)
            raise AuthenticationError("an internal error") from failure
        identity = login.identity
        if identity is not None:
            if before is not None and before.identity.principal != identity.principal:
                old, new = (each.principal.replace(":", ".", 1) for each in (before.identity, identity))
                raise ToldError(f"Cannot change principals during re-authentication from {old}: {new}")
            lifetime_ms = self._lifetimes.of(self.mechanism, identity)
            self.authenticated = Authenticated(identity, self.mechanism, lifetime_ms, self._knows_lifetimes)
            self.state = State.COMPLETE
        return answer

    def _told(self, error: AuthenticationError) -> str:
        """What the client is told: Kafka's words."""
        if isinstance(error, ToldError):
            return error.told
        what = "authentication" if self._before is None else "re-authentication"
        return f"Authentication failed during {what} due to invalid credentials with SASL mechanism {self.mechanism}"


class Authenticated(NamedTuple):
    """What a client has shown, and how long that holds."""

    identity: Identity
    mechanism: str
    lifetime_ms: int | None
    """From then on; None: for as long as the connection."""
    knows_lifetimes: bool
    """Whether the client may know that (KIP-368)."""


def _framed(header: RequestHeader, response: Response) -> bytes:
    head = ResponseHead(header.api_key, header.api_version)
    return head.framed(header.correlation_id, encode(response, header.api_version))


def _name_of(key: int) -> str:
    try:
        return ApiKey(key).name
    except ValueError:
        return str(key)
