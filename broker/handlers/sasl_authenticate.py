"""SaslAuthenticate v0-2 (KIP-152).

Behaviour
- While a client authenticates its gate answers this (`broker/security/sasl/exchange.py`).
- Here it comes too late, or to a listener without SASL: ILLEGAL_SASL_STATE.
- Not done: nothing.

Versions
- v1: the session's lifetime is told (KIP-368).
"""

from kavka.broker.requests.handling import Context, Services, handles
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse


@handles(SaslAuthenticateRequest, versions="0-2")
def sasl_authenticate(
    request: SaslAuthenticateRequest, context: Context, services: Services
) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
        auth_bytes=b"",
    )
