"""What the four APIs of delegation tokens have in common: who may ask at all, and the tokens if there are any."""

from typing import TYPE_CHECKING, Final

from kavka.broker.requests.session import ANONYMOUS
from kavka.protocol.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from kavka.broker.requests.handling import Context
    from kavka.broker.security.credentials.delegation_tokens import DelegationTokens
    from kavka.broker.services import Services

USER_TYPE: Final = "User"
NO_TIME: Final = -1
"""For a time, in answers that refuse."""


def require_known_client(context: "Context") -> None:
    """Raise BrokerError(DELEGATION_TOKEN_REQUEST_NOT_ALLOWED) unless the client has proved who it is, and not by a
    token: who has lost one would else never be rid of who found it.
    """
    protocol = context.connection.security_protocol
    is_anonymous = protocol == "SSL" and context.principal == ANONYMOUS
    if context.session.is_by_token or protocol == "PLAINTEXT" or is_anonymous:
        raise BrokerError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


def tokens_of(services: "Services") -> "DelegationTokens":
    """Raises BrokerError(DELEGATION_TOKEN_AUTH_DISABLED) without `delegation.token.secret.key`."""
    if services.tokens is None:
        raise BrokerError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    return services.tokens


def principal_text(kind: str | None, name: str) -> str:
    """`Type:name`. Raises BrokerError(INVALID_PRINCIPAL_TYPE) for a type that would be read as another one."""
    if not kind or ":" in kind:
        raise BrokerError(ErrorCode.INVALID_PRINCIPAL_TYPE)
    return f"{kind}:{name}"
