"""A token as a client sees it: text to pass on, and when it ends. Its signature is for brokers to check."""

import base64
import binascii
import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

LONGEST_CHARACTERS: Final = 256 * 1024
_TEXT: Final = re.compile(r"[-._~+/A-Za-z0-9]+=*")
_EXTENSION_NAME: Final = re.compile(r"[A-Za-z]+")
_EXTENSION_VALUE: Final = re.compile(r"[\x20-\x7e\t\r\n]+")
_STRING, _NUMBER, _LIST = "unsecuredLoginStringClaim_", "unsecuredLoginNumberClaim_", "unsecuredLoginListClaim_"
_DEFAULT_LIFETIME_S: Final = 3600
_LATEST_S: Final = 1e12


class TokenError(Exception):
    """No token came, or none that can be used. The text has nothing of it."""


class BearerToken:
    """Immutable; shows its times alone."""

    __slots__ = ("begins_ms", "ends_ms", "text")

    def __init__(self, text: str, begins_ms: float | None, ends_ms: float) -> None:
        """Times are since 1970; `begins_ms` is None for a token that does not say when it was made."""
        self.text: Final = text
        self.begins_ms: Final = begins_ms
        self.ends_ms: Final = ends_ms

    def __repr__(self) -> str:
        return f"BearerToken(begins_ms={self.begins_ms}, ends_ms={self.ends_ms})"


class Claims(NamedTuple):
    """What Kafka calls the claims in a token, where it lets them have other names."""

    scope: str = "scope"
    subject: str = "sub"


def read_token(text: str, claims: Claims = Claims()) -> BearerToken:  # noqa: B008 - it is immutable
    """A token that was fetched: a JWT that says when it ends, and whose it is. Raises TokenError."""
    text = text.strip()
    if len(text) > LONGEST_CHARACTERS or _TEXT.fullmatch(text) is None or text.count(".") != 2:
        raise TokenError("what came is no token: three parts with dots between are expected")
    payload = _payload(text)
    ends_s, begins_s = _number(payload, "exp"), _number(payload, "iat")
    if ends_s is None:
        raise TokenError("the token does not say when it ends (exp)")
    subject = payload.get(claims.subject)
    if not isinstance(subject, str) or not subject.strip():
        raise TokenError(f"the token does not say whose it is ({claims.subject})")
    scope = payload.get(claims.scope)
    if scope is not None and not isinstance(scope, str | list):
        raise TokenError(f"the token's scope ({claims.scope}) is neither text nor a list")
    return BearerToken(text, None if begins_s is None else begins_s * 1000, ends_s * 1000)


def unsecured_token(options: Mapping[str, str], now_ms: float) -> BearerToken:
    """A token that nobody signed, of the JAAS text's options (KIP-255): for tests. Raises TokenError.

    `unsecuredLoginStringClaim_sub="alice"`, likewise NumberClaim_ and ListClaim_, whose first character separates;
    unsecuredLoginPrincipalClaimName, unsecuredLoginScopeClaimName, unsecuredLoginLifetimeSeconds.
    """
    try:
        lifetime_s = float(options.get("unsecuredLoginLifetimeSeconds", _DEFAULT_LIFETIME_S))
        claims: dict[str, Any] = {"iat": now_ms / 1000, "exp": now_ms / 1000 + lifetime_s}
        for name, value in options.items():
            if name.startswith(_STRING):
                claims[name.removeprefix(_STRING)] = value
            elif name.startswith(_NUMBER):
                claims[name.removeprefix(_NUMBER)] = float(value)
            elif name.startswith(_LIST):
                claims[name.removeprefix(_LIST)] = value[1:].split(value[0]) if value else []
    except ValueError:
        raise TokenError("a number among the options of the login module is none") from None
    names = Claims(
        options.get("unsecuredLoginScopeClaimName", "scope"), options.get("unsecuredLoginPrincipalClaimName", "sub")
    )
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in ({"alg": "none"}, claims)]
    return read_token(b".".join([*parts, b""]).decode(), names)


def extensions_of(options: Mapping[str, str], prefix: str) -> dict[str, str]:
    """What goes with a token (KIP-342): the options with the prefix. Raises TokenError."""
    extensions = {name.removeprefix(prefix): value for name, value in options.items() if name.startswith(prefix)}
    for name, value in extensions.items():
        if name == "auth" or _EXTENSION_NAME.fullmatch(name) is None:
            raise TokenError(f"no name for an extension: {name[:80]!r}")
        if _EXTENSION_VALUE.fullmatch(value) is None:
            raise TokenError(f"no value for an extension: that of {name}")
    return extensions


def _payload(text: str) -> dict[str, Any]:
    part = text.split(".")[1]
    try:
        payload = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        payload = None
    if not isinstance(payload, dict):
        raise TokenError("the token's claims cannot be read")
    return payload


def _number(payload: dict[str, Any], claim: str) -> float | None:
    value = payload.get(claim)
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) < _LATEST_S:
        raise TokenError(f"the token's {claim} is no time")
    return value
