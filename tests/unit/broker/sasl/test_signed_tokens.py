"""Tokens that an issuer has signed: what an attacker can make of them is not believed."""

import base64
import hashlib
import hmac
import json
import random
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from kavka.broker.security.sasl.key_reading import KeySetError, read_keys
from kavka.broker.security.sasl.key_set import KeySet
from kavka.broker.security.sasl.oauthbearer import BelievedToken, TokenError
from kavka.broker.security.sasl.signed_tokens import SignedTokens
from kavka.config.sasl_settings import TokenRules
from tests.support.token_issuer import Issuer

NOW_MS = 1_700_000_000_000
NOW_S = NOW_MS // 1000
CLAIMS: dict[str, Any] = {"sub": "alice", "iat": NOW_S, "exp": NOW_S + 60, "aud": "kafka", "iss": "https://issuer"}
RULES = TokenRules("file:/keys", 3_600_000, 100, 10_000, 30, ("kafka", "other"), "https://issuer", "scope", "sub")
ISSUER, STRANGER = Issuer(), Issuer()


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> KeySet:
    file = tmp_path_factory.mktemp("keys") / "jwks.json"
    file.write_bytes(ISSUER.jwks())
    keys = KeySet(f"file:{file}", 3_600_000, 100, 10_000)
    keys.fetch()
    return keys


def validate(keys: KeySet, text: str, **rules: Any) -> BelievedToken:
    return SignedTokens(RULES._replace(**rules), keys, lambda: NOW_MS).validate(text)


@pytest.mark.parametrize(
    ("key", "algorithm"),
    [
        *(("rsa", each) for each in ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")),
        ("ec", "ES256"),
        ("ed", "EdDSA"),
    ],
)
def test_a_token_by_each_kind_of_key_is_believed(keys: KeySet, key: str, algorithm: str) -> None:
    assert validate(keys, ISSUER.token(CLAIMS, key, algorithm)) == ("alice", (NOW_S + 60) * 1000)


def test_blanks_around_a_name_are_none_of_it(keys: KeySet) -> None:
    assert validate(keys, ISSUER.token({**CLAIMS, "sub": " \talice b\n"})).name == "alice b"


def unsigned(claims: dict[str, Any], head: dict[str, Any], signature: bytes = b"") -> str:
    def part(data: bytes) -> str:
        return base64.urlsafe_b64encode(data).rstrip(b"=").decode()

    return f"{part(json.dumps(head).encode())}.{part(json.dumps(claims).encode())}.{part(signature)}"


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "nOnE", "", None])
def test_a_token_without_a_signature_is_refused(keys: KeySet, algorithm: str | None) -> None:
    for kid in ("rsa", "ec", "ed", None):
        with pytest.raises(TokenError):
            validate(keys, unsigned(CLAIMS, {"alg": algorithm, "typ": "JWT", "kid": kid}))


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
def test_a_token_signed_with_the_public_key_as_a_secret_is_refused(keys: KeySet, algorithm: str) -> None:
    public = ISSUER.rsa.public_key()
    forms = [
        public.public_bytes(encoding, serialization.PublicFormat.SubjectPublicKeyInfo)
        for encoding in (serialization.Encoding.PEM, serialization.Encoding.DER)
    ]
    forms += [forms[0].strip(), json.dumps(ISSUER.jwk("rsa")).encode(), b""]
    for secret in forms:
        text = unsigned(CLAIMS, {"alg": algorithm, "kid": "rsa"}).rstrip(".")
        signature = hmac.digest(secret, text.encode(), f"sha{algorithm[2:]}")
        with pytest.raises(TokenError, match="algorithm"):
            validate(keys, f"{text}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}")


@pytest.mark.parametrize(
    "head",
    [
        {"jku": "https://attacker/jwks.json"},
        {"x5u": "https://attacker/chain.pem"},
        {"jwk": STRANGER.jwk("rsa")},
        {"jwk": STRANGER.jwk("rsa"), "kid": "rsa"},
        {"kid": "rsa"},
        {"kid": "unknown"},
        {"kid": "../../../dev/null"},
        {"kid": "x" * 2000},
    ],
)
def test_a_strangers_key_is_not_believed_whatever_the_token_says_of_it(keys: KeySet, head: dict[str, Any]) -> None:
    with pytest.raises(TokenError):
        validate(keys, STRANGER.token(CLAIMS, "rsa", **{"kid": None, **head}))


def test_a_key_is_used_with_its_own_kind_of_algorithm_alone(keys: KeySet) -> None:
    for key, kid in (("rsa", "ec"), ("ec", "rsa"), ("ed", "rsa"), ("rsa", "ed"), ("ec", "ed")):
        with pytest.raises(TokenError):
            validate(keys, ISSUER.token(CLAIMS, key, kid=kid))


def test_a_token_that_names_no_key_is_checked_with_the_only_one_of_its_kind(keys: KeySet) -> None:
    assert validate(keys, ISSUER.token(CLAIMS, "rsa", kid=None)).name == "alice"
    with pytest.raises(TokenError):
        validate(keys, STRANGER.token(CLAIMS, "rsa", kid=None))


def test_what_a_header_asks_for_that_is_not_known_is_refused(keys: KeySet) -> None:
    with pytest.raises(TokenError, match=r"not known|critical"):
        validate(keys, ISSUER.token(CLAIMS, "rsa", crit=["exp"], exp=1))


@pytest.mark.parametrize(
    "change",
    [
        {"aud": "someone-else"},
        {"aud": ["someone-else", "nobody"]},
        {"aud": None},
        {"iss": "https://other"},
        {"iss": None},
        {"exp": NOW_S - 31},
        {"exp": None},
        {"exp": "later"},
        {"exp": 1e300},
        {"iat": NOW_S + 31},
        {"iat": None},
        {"nbf": NOW_S + 31},
        {"nbf": "soon"},
        {"sub": None},
        {"sub": ""},
        {"sub": 7},
        {"scope": 7},
        {"scope": [7]},
    ],
)
def test_claims_of_another_audience_issuer_or_time_are_refused(keys: KeySet, change: dict[str, Any]) -> None:
    claims = {name: value for name, value in {**CLAIMS, **change}.items() if value is not None}
    with pytest.raises(TokenError):
        validate(keys, ISSUER.token(claims))


@pytest.mark.parametrize(
    "change",
    [
        {"aud": ["someone-else", "other"]},
        {"exp": NOW_S - 29},
        {"iat": NOW_S + 29},
        {"nbf": NOW_S + 29},
        {"jti": "1"},
        {"scope": ["a"]},
    ],
)
def test_what_lies_within_the_rules_is_believed(keys: KeySet, change: dict[str, Any]) -> None:
    assert validate(keys, ISSUER.token({**CLAIMS, **change})).name == "alice"


def test_without_an_audience_and_an_issuer_in_the_rules_any_is_believed(keys: KeySet) -> None:
    token = ISSUER.token({**CLAIMS, "aud": "x", "iss": "y"})
    assert validate(keys, token, audiences=(), issuer=None).name == "alice"


def test_another_claim_may_say_who_it_is(keys: KeySet) -> None:
    assert validate(keys, ISSUER.token({**CLAIMS, "client_id": "bob"}), subject_claim="client_id").name == "bob"


def fuzz(keys: KeySet, seed: int, count: int) -> None:
    """Nothing but the token itself is believed, and nothing raises anything else."""
    chance = random.Random(seed)
    good = {ISSUER.token(CLAIMS, key) for key in ("rsa", "ec", "ed")}
    believed = [(text, {text.rstrip("="), text}) for text in good]
    for _ in range(count):
        text, _ = chance.choice(believed)
        data = list(text)
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(data) or 1)
            match chance.randrange(4):
                case 0 if data:
                    data[at] = chance.choice("AZaz09-_.")
                case 1:
                    data[at:at] = chance.choice([".", "=", "A", "ey", "..", text[: chance.randrange(40)]])
                case 2:
                    del data[at : at + chance.randint(1, 5)]
                case _:
                    data = data[:at] or ["."]
        changed = "".join(data)
        try:
            validate(keys, changed)
        except TokenError:
            continue
        # The last character of a part may have bits that mean nothing.
        assert [_bytes(each) for each in changed.split(".")] == [_bytes(each) for each in text.split(".")], changed


def _bytes(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def test_tokens_that_were_tampered_with_are_refused(keys: KeySet) -> None:
    fuzz(keys, 20_261_123, 2000)


@pytest.mark.soak
def test_a_million_tokens_that_were_tampered_with_are_refused(keys: KeySet) -> None:
    fuzz(keys, random.randrange(2**32), 1_000_000)


def test_what_cannot_check_a_signature_is_left_out_of_a_set_of_keys() -> None:
    small = rsa.generate_private_key(65537, 1024)
    weak = Issuer.__new__(Issuer)
    weak.rsa = small
    secret = {"kty": "oct", "k": base64.urlsafe_b64encode(hashlib.sha256(b"").digest()).decode(), "kid": "secret"}
    entries = [
        ISSUER.jwk("rsa", use="enc", kid="encrypts"),
        ISSUER.jwk("rsa", key_ops=["encrypt"], kid="encrypts, too"),
        ISSUER.jwk("rsa", alg="HS256", kid="odd"),
        weak.jwk("rsa", kid="weak"),
        secret,
        {"kty": "RSA", "kid": "broken"},
        {"kty": "quantum", "kid": "new"},
        "text",
        None,
        ISSUER.jwk("ec", use="sig", alg="ES256"),
    ]

    keys = read_keys(json.dumps({"keys": entries}).encode())

    assert {name: key.algorithms for name, key in keys.items()} == {"ec": ("ES256",)}


@pytest.mark.parametrize(
    "text", [b"", b"{}", b"[]", b'{"keys": {}}', b'{"keys": []}', b'{"keys": [{}]}', b"\xff", b"[" * 100_000]
)
def test_what_is_no_set_of_keys_is_refused(text: bytes) -> None:
    with pytest.raises(KeySetError):
        read_keys(text)


def test_a_file_that_is_missing_is_told_by_its_reason(tmp_path: Path) -> None:
    with pytest.raises(KeySetError, match="No such file"):
        KeySet(f"file:{tmp_path}/none.json", 1000, 100, 1000).fetch()
