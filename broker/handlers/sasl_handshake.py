"""SaslHandshake v0-1.

Behaviour
- Before a client is authenticated its gate answers this (`broker/security/sasl/exchange.py`).
- Later it begins to authenticate again (KIP-368), where its session has a lifetime, and at most once a second.
- ILLEGAL_SASL_STATE else, and on a listener without SASL.
- Not done: nothing.

Versions
- v0: the tokens follow as frames of their own. v1: in SaslAuthenticate (KIP-152).
"""

from kavka.broker.requests.handling import Context, Services, handles
from kavka.cluster.promise import Promise
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


@handles(SaslHandshakeRequest, versions="0-1")
def sasl_handshake(
    request: SaslHandshakeRequest, context: Context, services: Services
) -> SaslHandshakeResponse | Promise[SaslHandshakeResponse]:
    gate = context.session.sasl
    if gate is None or not gate.may_begin_again():
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=[])
    answer: SaslHandshakeResponse | Promise[SaslHandshakeResponse] = gate.begin_again(request.mechanism, context)
    return answer
