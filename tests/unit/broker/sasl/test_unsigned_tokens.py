"""Tokens that nobody has signed: believed as Kafka's handler for tests believes them, and no others."""

import base64
import json
from typing import Any

import pytest

from kavka.broker.security.sasl.oauthbearer import BelievedToken, TokenError
from kavka.broker.security.sasl.unsigned_tokens import UnsignedTokens

NOW_MS = 1_700_000_000_000
NOW_S = NOW_MS // 1000
CLAIMS = {"sub": "alice", "iat": NOW_S, "exp": NOW_S + 60}


def part(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def token(claims: Any, header: Any = None, signature: str = "") -> str:
    return f"{part({'alg': 'none'} if header is None else header)}.{part(claims)}.{signature}"


def validate(text: str, **options: str) -> BelievedToken:
    given = {f"unsecuredValidator{name}": value for name, value in options.items()}
    return UnsignedTokens(given, lambda: NOW_MS).validate(text)


def test_a_token_says_who_and_until_when() -> None:
    assert validate(token(CLAIMS)) == ("alice", (NOW_S + 60) * 1000)
    assert validate(token({**CLAIMS, "exp": NOW_S + 0.5})).expiry_ms == NOW_MS + 500


@pytest.mark.parametrize(
    "claims",
    [
        {**CLAIMS, "sub": None},
        {**CLAIMS, "sub": " "},
        {**CLAIMS, "sub": 7},
        {**CLAIMS, "exp": None},
        {**CLAIMS, "exp": NOW_S},
        {**CLAIMS, "exp": "tomorrow"},
        {**CLAIMS, "exp": True},
        {**CLAIMS, "exp": 1e300},
        {**CLAIMS, "exp": float("nan")},
        {**CLAIMS, "iat": NOW_S + 1},
        {**CLAIMS, "iat": NOW_S + 60, "exp": NOW_S + 60},
        [],
        "alice",
    ],
)
def test_a_token_without_its_claims_or_of_another_time_is_refused(claims: Any) -> None:
    with pytest.raises(TokenError):
        validate(token(claims))


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "..",
        "a.b.c",
        token(CLAIMS).rstrip("."),
        token(CLAIMS, signature="c2ln"),
        token(CLAIMS, header={"alg": "HS256"}),
        token(CLAIMS, header={"alg": "NONE"}),
        token(CLAIMS, header={}),
        token(CLAIMS) + ".",
        f"{part({'alg': 'none'})}.{base64.urlsafe_b64encode(b'[' * 100_000).decode()}.",
    ],
)
def test_a_token_that_is_not_well_made_or_signed_is_refused(text: str) -> None:
    with pytest.raises(TokenError):
        validate(text)


def test_other_claims_scopes_and_a_skew_may_be_asked_for() -> None:
    named = {"user": "bob", "exp": NOW_S - 1, "rights": "read write", "iat": NOW_S - 60}
    options = {
        "PrincipalClaimName": "user",
        "ScopeClaimName": "rights",
        "RequiredScope": "write",
        "AllowableClockSkewMs": "2000",
    }

    assert validate(token(named), **options).name == "bob"
    assert validate(token({**named, "rights": ["write"]}), **options).name == "bob"
    with pytest.raises(TokenError) as refused:
        validate(token({**named, "rights": "read"}), **options)
    assert (refused.value.status, refused.value.scope) == ("insufficient_scope", "write")


def test_a_skew_that_is_no_number_is_refused_at_the_start() -> None:
    with pytest.raises(ValueError, match="number"):
        UnsignedTokens({"unsecuredValidatorAllowableClockSkewMs": "soon"}, lambda: NOW_MS)
