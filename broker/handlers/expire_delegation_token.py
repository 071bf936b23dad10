"""ExpireDelegationToken v0-2.

Behaviour
- Has a delegation token expire after a period, or with a negative one removes it at once (KIP-48). Its owner and its
  renewers may.
- Refused as in RenewDelegationToken; what has expired can still be removed.
- Not done: nothing.

Versions
- v2 is the first flexible one; otherwise all are alike.
"""

from typing import TYPE_CHECKING

from kavka.broker.requests.handling import Context, handles
from kavka.broker.security.credentials.token_requests import NO_TIME, require_known_client, tokens_of
from kavka.cluster.promise import Promise
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)

if TYPE_CHECKING:
    from kavka.broker.services import Services


def _refused(
    request: ExpireDelegationTokenRequest | None, code: ErrorCode, message: str | None
) -> ExpireDelegationTokenResponse:
    return ExpireDelegationTokenResponse(error_code=code, expiry_timestamp_ms=NO_TIME)


@handles(ExpireDelegationTokenRequest, versions="0-2", error_answer=_refused)
def expire_delegation_token(
    request: ExpireDelegationTokenRequest, context: Context, services: "Services"
) -> Promise[ExpireDelegationTokenResponse]:
    require_known_client(context)
    tokens = tokens_of(services)
    changing = tokens.expire(context.principal, bytes(request.hmac), request.expiry_time_period_ms)
    return changing.then(
        lambda expiry_ms: ExpireDelegationTokenResponse(error_code=ErrorCode.NONE, expiry_timestamp_ms=expiry_ms)
    )
