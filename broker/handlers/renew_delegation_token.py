"""RenewDelegationToken v0-2.

Behaviour
- Has a delegation token expire later (KIP-48): after the period that is given, or with a negative one
  `delegation.token.expiry.time.ms`, but never beyond its greatest age. Its owner and its renewers may.
- Refused: a token that has expired (DELEGATION_TOKEN_EXPIRED) or is not known (DELEGATION_TOKEN_NOT_FOUND), others
  (DELEGATION_TOKEN_OWNER_MISMATCH), clients that have not proved who they are, or did so by a token
  (DELEGATION_TOKEN_REQUEST_NOT_ALLOWED).
- Not done: nothing.

Versions
- v2 is the first flexible one; otherwise all are alike.
"""

from typing import TYPE_CHECKING

from kavka.broker.requests.handling import Context, handles
from kavka.broker.security.credentials.token_requests import NO_TIME, require_known_client, tokens_of
from kavka.cluster.promise import Promise
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)

if TYPE_CHECKING:
    from kavka.broker.services import Services


def _refused(
    request: RenewDelegationTokenRequest | None, code: ErrorCode, message: str | None
) -> RenewDelegationTokenResponse:
    return RenewDelegationTokenResponse(error_code=code, expiry_timestamp_ms=NO_TIME)


@handles(RenewDelegationTokenRequest, versions="0-2", error_answer=_refused)
def renew_delegation_token(
    request: RenewDelegationTokenRequest, context: Context, services: "Services"
) -> Promise[RenewDelegationTokenResponse]:
    require_known_client(context)
    tokens = tokens_of(services)
    changing = tokens.renew(context.principal, bytes(request.hmac), request.renew_period_ms)
    return changing.then(
        lambda expiry_ms: RenewDelegationTokenResponse(error_code=ErrorCode.NONE, expiry_timestamp_ms=expiry_ms)
    )
