"""A SASL exchange: SaslHandshake names the mechanism, SaslAuthenticate has its messages (KIP-152).

Brokers before 1.0 have the messages follow without headers, and are not logged in to.
"""

from typing import Any

from kavka.client.api_errors_cluster import IllegalSaslStateError, UnsupportedSaslMechanismError
from kavka.client.security.mechanisms import Mechanism
from kavka.client.security_port import Exchange
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kavka.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def sasl_exchange(mechanism: Mechanism) -> Exchange:
    """Returns the session's lifetime in ms, 0 without limit. Raises AuthenticationError, or what else a broker says."""
    handshake: Any = yield SaslHandshakeRequest(mechanism=mechanism.name)
    _check_handshake(mechanism.name, handshake)
    conversation = mechanism.begin()
    message: bytes | None = conversation.first()
    lifetime_ms = 0
    while message is not None:
        answer: SaslAuthenticateResponse = yield SaslAuthenticateRequest(auth_bytes=message)
        if answer.error_code:
            from kavka.client.api_errors import error_of  # all of them, for what a broker may say

            raise error_of(answer.error_code, answer.error_message)
        lifetime_ms = answer.session_lifetime_ms
        message = conversation.answer(bytes(answer.auth_bytes))
    return lifetime_ms


def _check_handshake(mechanism: str, answer: SaslHandshakeResponse) -> None:
    enabled = ", ".join(answer.mechanisms)
    if answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        reason = f"Client SASL mechanism '{mechanism}' not enabled in the server, enabled mechanisms are [{enabled}]"
        raise UnsupportedSaslMechanismError(reason)
    if answer.error_code == ErrorCode.ILLEGAL_SASL_STATE:
        reason = f"Unexpected handshake request with client mechanism {mechanism}, enabled mechanisms are [{enabled}]"
        raise IllegalSaslStateError(reason)
    if answer.error_code:
        raise IllegalSaslStateError(f"Unknown error code {answer.error_code}, client mechanism is {mechanism}")
