"""CreateDelegationToken v0-3.

Behaviour
- A secret with which others are known as its owner for a while (KIP-48): for the client itself or, from v3 on, for
  who it may create tokens for (CreateTokens on User:OWNER, KIP-373). Answered when the registry has it.
- Refused: clients that have not proved who they are, or did so by a token (DELEGATION_TOKEN_REQUEST_NOT_ALLOWED);
  renewers that are no users (INVALID_PRINCIPAL_TYPE); all without `delegation.token.secret.key`
  (DELEGATION_TOKEN_AUTH_DISABLED).
- Not done: nothing.

Versions
- v2 is the first flexible one. v3: another owner, and who asked for it in the answer.
"""

from typing import TYPE_CHECKING, Final

from kavka.broker.requests.handling import Context, handles
from kavka.broker.security.acl import Operation, Resource, ResourceType
from kavka.broker.security.credentials.token_requests import (
    NO_TIME,
    USER_TYPE,
    principal_text,
    require_known_client,
    tokens_of,
)
from kavka.cluster.promise import Promise
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)

if TYPE_CHECKING:
    from kavka.broker.security.credentials.delegation_tokens import KnownToken
    from kavka.broker.services import Services

REQUESTER_SINCE: Final = 3


@handles(CreateDelegationTokenRequest, versions="0-3")
def create_delegation_token(
    request: CreateDelegationTokenRequest, context: Context, services: "Services"
) -> CreateDelegationTokenResponse | Promise[CreateDelegationTokenResponse]:
    requester = owner = context.principal
    asker = requester if context.api_version >= REQUESTER_SINCE else ""

    def refused(error: BaseException) -> CreateDelegationTokenResponse:
        if not isinstance(error, BrokerError):
            raise error
        return _response(error.code, owner, asker)

    try:
        if request.owner_principal_name:
            owner = principal_text(request.owner_principal_type, request.owner_principal_name)
        require_known_client(context)
        if owner != requester and not context.allows(Operation.CREATE_TOKENS, Resource(ResourceType.USER, owner)):
            raise BrokerError(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED)
        if any(each.principal_type != USER_TYPE for each in request.renewers):
            raise BrokerError(ErrorCode.INVALID_PRINCIPAL_TYPE)
        renewers = tuple(principal_text(each.principal_type, each.principal_name) for each in request.renewers)
        creating = tokens_of(services).create(owner, requester, renewers, request.max_lifetime_ms)
    except BrokerError as error:
        return refused(error)
    return creating.then(lambda token: _response(ErrorCode.NONE, owner, asker, token), refused)


def _response(
    code: ErrorCode, owner: str, asker: str, token: "KnownToken | None" = None
) -> CreateDelegationTokenResponse:
    kind, _, name = owner.partition(":")
    asker_kind, _, asker_name = asker.partition(":")
    information = None if token is None else token.information
    return CreateDelegationTokenResponse(
        error_code=code,
        principal_type=kind,
        principal_name=name,
        token_requester_principal_type=asker_kind,
        token_requester_principal_name=asker_name,
        issue_timestamp_ms=NO_TIME if information is None else information.issue_timestamp_ms,
        expiry_timestamp_ms=NO_TIME if information is None else information.expiry_timestamp_ms,
        max_timestamp_ms=NO_TIME if information is None else information.max_timestamp_ms,
        token_id="" if information is None else information.token_id,
        hmac=b"" if token is None else token.hmac,
    )
