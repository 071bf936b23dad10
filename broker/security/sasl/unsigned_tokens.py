"""Tokens that nobody has signed, as Kafka's OAuthBearerUnsecuredValidatorCallbackHandler takes them: for tests alone.

Options of the login module: unsecuredValidatorPrincipalClaimName (sub), unsecuredValidatorScopeClaimName (scope),
unsecuredValidatorRequiredScope, unsecuredValidatorAllowableClockSkewMs (0).
"""

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from kavka.broker.security.sasl.oauthbearer import INSUFFICIENT_SCOPE, BelievedToken, TokenError

MS_IN_S: Final = 1000
LATEST_S: Final = 2**53 / MS_IN_S
_NUMBER: Final = re.compile(r"[0-9]{1,9}", re.ASCII)


class UnsignedTokens:
    """Believes every token that is well made and of its time. Immutable."""

    def __init__(self, options: Mapping[str, str], now_ms: Callable[[], int]) -> None:
        """`options`: those of the login module. Raises ValueError for a clock skew that is no number."""
        self._principal_claim = options.get("unsecuredValidatorPrincipalClaimName", "").strip() or "sub"
        self._scope_claim = options.get("unsecuredValidatorScopeClaimName", "").strip() or "scope"
        self._required_scope = options.get("unsecuredValidatorRequiredScope", "").split()
        skew = options.get("unsecuredValidatorAllowableClockSkewMs", "").strip() or "0"
        if _NUMBER.fullmatch(skew) is None:
            raise ValueError("unsecuredValidatorAllowableClockSkewMs must be a number of milliseconds")
        self._skew_ms = int(skew)
        self._now_ms = now_ms

    def validate(self, token: str) -> BelievedToken:
        """See Validator."""
        claims = _claims(token)
        name = claims.get(self._principal_claim)
        if not isinstance(name, str) or not name.strip():
            raise TokenError(f"Principal name claim missing or no text: {self._principal_claim}")
        expiry_s = _time(claims, "exp")
        if expiry_s is None:
            raise TokenError("Required claim missing: exp")
        now_ms, issued_s = self._now_ms(), _time(claims, "iat")
        if issued_s is not None and issued_s * MS_IN_S > now_ms + self._skew_ms:
            raise TokenError("The Issued At value is later than now")
        if now_ms >= expiry_s * MS_IN_S + self._skew_ms:
            raise TokenError("The token has expired")
        if issued_s is not None and expiry_s <= issued_s:
            raise TokenError("The Expiration Time value is not after the Issued At value")
        missing = [each for each in self._required_scope if each not in _scope(claims.get(self._scope_claim))]
        if missing:
            scope = " ".join(self._required_scope)
            raise TokenError(f"The token lacks a scope that is required: {missing[0]}", INSUFFICIENT_SCOPE, scope)
        return BelievedToken(name, int(expiry_s * MS_IN_S))


def _claims(token: str) -> dict[str, Any]:
    parts = token.split(".")
    if len(parts) != 3 or not parts[0] or not parts[1]:
        raise TokenError("Malformed JWS: expected a header, claims and an empty signature")
    header, claims = _object(parts[0]), _object(parts[1])
    if header.get("alg") != "none":
        raise TokenError("Unsecured JWS must have the algorithm none")
    if parts[2]:
        raise TokenError("Unsecured JWS must not contain a signature")
    return claims


def _object(part: str) -> dict[str, Any]:
    try:
        decoded = json.loads(base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError):
        raise TokenError("Malformed JWS: a part is no JSON in base64url") from None
    if not isinstance(decoded, dict):
        raise TokenError("Malformed JWS: a part is no JSON object")
    return decoded


def _time(claims: Mapping[str, Any], name: str) -> float | None:
    """Seconds of Unix time."""
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LATEST_S:
        raise TokenError(f"The claim {name} is no time")
    return float(value)


def _scope(value: Any) -> list[str]:
    if isinstance(value, str):
        return value.split()
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []
