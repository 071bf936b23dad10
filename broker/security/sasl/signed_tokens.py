"""JSON web tokens that an issuer has signed (RFC 7519, KIP-768): believed by the issuer's public keys alone.

What a token says of keys (`jku`, `jwk`, `x5u`, `x5c`) is not read, and what it says of its algorithm only chooses among
those that its key is for: `none`, and HMAC with what everybody may read, are none of them.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import jwt
from jwt.exceptions import PyJWTError

from kavka.broker.security.sasl.key_reading import ALGORITHMS
from kavka.broker.security.sasl.oauthbearer import BelievedToken, TokenError
from kavka.config.sasl_settings import TokenRules

if TYPE_CHECKING:
    from kavka.broker.security.sasl.key_set import KeySet

LONGEST_KEY_ID: Final = 1000
_BLANKS: Final = "".join(map(chr, range(33)))


class SignedTokens:
    """Immutable but for its keys."""

    def __init__(self, rules: TokenRules, keys: "KeySet", now_ms: Callable[[], int]) -> None:
        self._rules = rules
        self.keys: Final = keys
        self._now_ms = now_ms

    def validate(self, token: str) -> BelievedToken:
        """See Validator."""
        try:
            claims = self._claims(token)
        except (PyJWTError, ValueError, TypeError, RecursionError) as problem:
            raise TokenError(f"{type(problem).__name__}: {problem}") from None
        rules = self._rules
        name = claims.get(rules.subject_claim)
        if not isinstance(name, str) or not name.strip() or not name.strip(_BLANKS):
            raise TokenError(f"The claim {rules.subject_claim} is missing, or no text")
        scope = claims.get(rules.scope_claim)
        if not (scope is None or isinstance(scope, str) or _are_texts(scope)):
            raise TokenError(f"The claim {rules.scope_claim} is neither a text nor a list of texts")
        self._check_times(claims)
        # Without blanks around it, as Kafka has it here, and Java's `trim`.
        return BelievedToken(name.strip(_BLANKS), int(claims["exp"] * 1000))

    def _claims(self, token: str) -> dict[str, Any]:
        """What the token says, its signature, issuer and audience checked."""
        header = jwt.get_unverified_header(token)
        algorithm, key_id = header.get("alg"), header.get("kid")
        if algorithm not in ALGORITHMS:
            raise TokenError("it is not signed by an algorithm that can be believed")
        if "crit" in header:
            raise TokenError("its header asks for what is not known here")
        if key_id is not None and not (isinstance(key_id, str) and len(key_id) <= LONGEST_KEY_ID):
            raise TokenError("its key has no usable name")
        key = self.keys.find(key_id, algorithm)
        if key is None:
            raise TokenError("its key is not known (yet)")
        if algorithm not in key.algorithms:
            raise TokenError("its key is not for this algorithm")
        rules = self._rules
        # Times are judged below, by the broker's own clock.
        options: Any = {
            "require": ["exp", "iat"],
            "verify_exp": False,
            "verify_iat": False,
            "verify_nbf": False,
            "verify_aud": bool(rules.audiences),
            "verify_iss": rules.issuer is not None,
            "verify_sub": False,
            "verify_jti": False,
        }
        claims: dict[str, Any] = jwt.decode(
            token,
            key.public_key,
            algorithms=[algorithm],
            audience=list(rules.audiences) or None,
            issuer=rules.issuer,
            options=options,
        )
        return claims

    def _check_times(self, claims: dict[str, Any]) -> None:
        """Raises TokenError."""
        now_s, skew_s = self._now_ms() / 1000, self._rules.clock_skew_s
        for claim in ("exp", "iat", "nbf"):
            value = claims.get(claim, 0)
            # Beyond 2**53 it is no time, and no number's comparison can be trusted.
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**53 / 1000:
                raise TokenError(f"The claim {claim} is no time")
        if now_s >= claims["exp"] + skew_s:
            raise TokenError("The token has expired")
        if claims["iat"] > now_s + skew_s or claims.get("nbf", 0) > now_s + skew_s:
            raise TokenError("The token is not valid yet")


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)
