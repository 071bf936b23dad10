"""DescribeDelegationToken v0-3.

Behaviour
- The delegation tokens that the client may see (KIP-48): its own and those that it may renew; besides, those that it
  may describe (Describe on DelegationToken:ID) and those of who it may describe tokens of (DescribeTokens on
  User:OWNER, KIP-373). Of all owners, or of those asked for, or renewed by them.
- Refused: clients that have not proved who they are, or did so by a token (DELEGATION_TOKEN_REQUEST_NOT_ALLOWED); all
  without `delegation.token.secret.key` (DELEGATION_TOKEN_AUTH_DISABLED).
- Not done: nothing. What another broker changed a moment ago may not be known here yet.

Versions
- v2 is the first flexible one. v3: who asked for a token.
"""

from typing import TYPE_CHECKING, Final

from kavka.broker.requests.handling import Context, handles
from kavka.broker.security.acl import Operation, Resource, ResourceType
from kavka.broker.security.credentials.token_requests import require_known_client, tokens_of
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)

if TYPE_CHECKING:
    from kavka.broker.security.credentials.delegation_tokens import KnownToken
    from kavka.broker.services import Services
    from kavka.cluster.znodes.delegation_token import TokenInformation

REQUESTER_SINCE: Final = 3


def _refused(
    request: DescribeDelegationTokenRequest, code: ErrorCode, message: str | None
) -> DescribeDelegationTokenResponse:
    return DescribeDelegationTokenResponse(error_code=code, tokens=[])


@handles(DescribeDelegationTokenRequest, versions="0-3", error_answer=_refused)
def describe_delegation_token(
    request: DescribeDelegationTokenRequest, context: Context, services: "Services"
) -> DescribeDelegationTokenResponse:
    require_known_client(context)
    known = tokens_of(services).tokens()
    owners = None
    if request.owners is not None:
        owners = [f"{each.principal_type}:{each.principal_name}" for each in request.owners]
    shown = [each for each in known if _is_shown(each.information, owners, context)]
    return DescribeDelegationTokenResponse(
        error_code=ErrorCode.NONE, tokens=[_described(each, context.api_version) for each in shown]
    )


def _is_shown(token: "TokenInformation", owners: list[str] | None, context: Context) -> bool:
    if owners is not None and not any(_is_of(token, owner) for owner in owners):
        return False
    return (
        _is_of(token, context.principal)
        or context.allows(Operation.DESCRIBE, Resource(ResourceType.DELEGATION_TOKEN, token.token_id))
        or context.allows(Operation.DESCRIBE_TOKENS, Resource(ResourceType.USER, token.owner))
    )


def _is_of(token: "TokenInformation", principal: str) -> bool:
    """Whoever asked for it may see it, too (KIP-373)."""
    return token.is_owned_or_renewed_by(principal) or token.requester == principal


def _described(token: "KnownToken", version: int) -> DescribedDelegationToken:
    information = token.information
    kind, _, name = information.owner.partition(":")
    requester_kind, _, requester_name = (information.requester if version >= REQUESTER_SINCE else "").partition(":")
    return DescribedDelegationToken(
        principal_type=kind,
        principal_name=name,
        token_requester_principal_type=requester_kind,
        token_requester_principal_name=requester_name,
        issue_timestamp=information.issue_timestamp_ms,
        expiry_timestamp=information.expiry_timestamp_ms,
        max_timestamp=information.max_timestamp_ms,
        token_id=information.token_id,
        hmac=token.hmac,
        renewers=[
            DescribedDelegationTokenRenewer(principal_type=kind, principal_name=name)
            for kind, _, name in (renewer.partition(":") for renewer in information.renewers)
        ],
    )
