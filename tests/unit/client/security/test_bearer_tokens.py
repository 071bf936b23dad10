"""Tokens as clients read and make them, and when they are replaced."""

import base64
import json
from typing import Any

import pytest

from kavka.client.security.bearer.refresh import RefreshSchedule
from kavka.client.security.bearer.token import BearerToken, Claims, TokenError, read_token, unsecured_token

NOW_MS = 1_700_000_000_000.0


def token(header: Any = None, claims: Any = None) -> str:
    parts = [json.dumps(part).encode() for part in (header or {"alg": "none"}, claims)]
    return ".".join([*(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts), ""])


def test_a_token_says_when_it_begins_and_ends() -> None:
    made = read_token(token(claims={"sub": "alice", "iat": 1, "exp": 61.5}))
    assert (made.begins_ms, made.ends_ms) == (1_000, 61_500)
    other = read_token(token(claims={"name": "alice", "exp": 2, "scp": ["a"]}), Claims("scp", "name"))
    assert (other.begins_ms, other.ends_ms) == (None, 2_000)


BAD = [
    "",
    "opaque",
    "a.b",
    "a.b.c",
    "a.\x01.c",
    token(claims=[]),
    token(claims={"sub": "alice"}),
    token(claims={"exp": 1}),
    token(claims={"sub": " ", "exp": 1}),
    token(claims={"sub": 7, "exp": 1}),
    token(claims={"sub": "alice", "exp": True}),
    token(claims={"sub": "alice", "exp": 1e300}),
    token(claims={"sub": "alice", "exp": 1, "iat": "now"}),
    token(claims={"sub": "alice", "exp": 1, "scope": 7}),
    "a." + "x" * 300_000 + ".c",
    "a." + base64.urlsafe_b64encode(b"[" * 100_000).decode().rstrip("=") + ".c",
]


@pytest.mark.parametrize("text", BAD, ids=lambda text: text[:20])
def test_what_is_no_token_is_refused(text: str) -> None:
    with pytest.raises(TokenError):
        read_token(text)


def test_an_unsigned_token_is_made_of_the_options_of_the_login_module() -> None:
    options = {
        "unsecuredLoginStringClaim_sub": "alice",
        "unsecuredLoginNumberClaim_level": "7",
        "unsecuredLoginListClaim_scope": "|a|b",
        "unsecuredLoginLifetimeSeconds": "60",
    }
    made = unsecured_token(options, NOW_MS)
    header, claims, signature = made.text.split(".")
    decoded = json.loads(base64.urlsafe_b64decode(claims + "=="))
    assert json.loads(base64.urlsafe_b64decode(header + "==")) == {"alg": "none"}
    assert decoded == {"sub": "alice", "level": 7, "scope": ["a", "b"], "iat": NOW_MS / 1000, "exp": NOW_MS / 1000 + 60}
    assert signature == ""
    assert made.ends_ms == NOW_MS + 60_000


@pytest.mark.parametrize("options", [{}, {"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginLifetimeSeconds": "x"}])
def test_options_that_make_no_token_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(TokenError):
        unsecured_token(options, NOW_MS)


HOUR_MS = 3_600_000.0


@pytest.mark.parametrize(
    ("begins_ms", "ends_ms", "now_ms", "expected_ms"),
    [
        # At 80 % of its time.
        (0.0, HOUR_MS, 0.0, 0.8 * HOUR_MS),
        # Not before the least period, not after the buffer before its end.
        (0.0, HOUR_MS, 0.8 * HOUR_MS, 0.8 * HOUR_MS + 60_000),
        (0.0, 1_000_000.0, 0.0, 700_000.0),
        # No room for both: of what is left.
        (0.0, 300_000.0, 100_000.0, 100_000 + 0.8 * 200_000),
        # It is over already.
        (0.0, 1_000.0, 2_000.0, 12_000.0),
        (None, HOUR_MS, 0.0, 0.8 * HOUR_MS),
    ],
)
def test_a_token_is_replaced_as_kafkas_clients_do_it(
    begins_ms: float | None, ends_ms: float, now_ms: float, expected_ms: float
) -> None:
    schedule = RefreshSchedule(chance=lambda: 0.0)
    assert schedule.next_ms(BearerToken("t", begins_ms, ends_ms), now_ms) == expected_ms
