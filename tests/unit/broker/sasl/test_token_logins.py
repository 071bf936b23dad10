"""SCRAM by delegation tokens: whose session it is, and what a login costs."""

from types import SimpleNamespace
from typing import Any

import pytest

from kavka.broker.security.sasl import scram
from kavka.broker.security.sasl.mechanisms import AuthenticationError, Identity
from kavka.broker.security.sasl.ports import Token
from kavka.broker.security.sasl.scram import Scram, StandIns
from kavka.protocol.sasl.scram import TOKEN_AUTH, ScramClient, ScramMechanism, credential_of

SHA_256 = ScramMechanism.SHA_256


def mechanism(tokens: dict[str, Token]) -> Scram:
    stores: Any = SimpleNamespace(scram_credentials=None, tokens=SimpleNamespace(find=tokens.get))
    return Scram(SHA_256, stores, StandIns(b"secret"))


def identity(kind: Scram, token_id: str, password: str) -> Identity | None:
    """Of who logs in so. Raises AuthenticationError."""
    client, login = ScramClient(SHA_256, token_id, password, {TOKEN_AUTH: "true"}), kind.login()
    client.verify(login.respond(client.final(login.respond(client.first()))))
    return login.identity


def test_who_logs_in_by_a_token_is_its_owner_until_it_expires() -> None:
    kind = mechanism({"one": Token("User:alice", 5, "aG1hYw==")})

    assert identity(kind, "one", "aG1hYw==") == Identity("User:alice", 5, is_by_token=True)
    for token_id, password in (("one", "wrong"), ("two", "aG1hYw==")):
        with pytest.raises(AuthenticationError):
            identity(kind, token_id, password)


def test_a_tokens_keys_are_derived_once_and_anew_for_another_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    derived: list[str] = []

    def counted(mechanism: ScramMechanism, password: str, *, salt: bytes) -> Any:
        derived.append(password)
        return credential_of(mechanism, password, salt=salt)

    monkeypatch.setattr(scram, "credential_of", counted)
    monkeypatch.setattr(scram, "MOST_REMEMBERED", 2)
    tokens = {"one": Token("User:alice", 5, "first")}
    kind = mechanism(tokens)
    for _ in range(3):
        identity(kind, "one", "first")
        with pytest.raises(AuthenticationError):
            identity(kind, "one", "wrong")
    assert derived == ["first"]

    tokens["one"] = Token("User:alice", 5, "second")
    assert identity(kind, "one", "second") is not None
    with pytest.raises(AuthenticationError):
        identity(kind, "one", "first")
    for number in range(5):
        tokens["more"] = Token("User:bob", 5, f"more-{number}")
        identity(kind, "more", f"more-{number}")
    assert len(kind._of_tokens) <= 2
