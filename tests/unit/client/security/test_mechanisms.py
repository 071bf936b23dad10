"""Exchanges by PLAIN, SCRAM and OAUTHBEARER: what is said, what is refused, and what nobody gets to see."""

from collections.abc import Generator
from typing import Any

import pytest

from kavka.client.api_errors import (
    IllegalSaslStateError,
    SaslAuthenticationError,
    UnsupportedSaslMechanismError,
)
from kavka.client.security.exchange import sasl_exchange
from kavka.client.security.mechanisms import (
    BearerConversation,
    Mechanism,
    PlainConversation,
    ScramConversation,
)
from kavka.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from kavka.protocol.messages.sasl_handshake import SaslHandshakeResponse
from kavka.protocol.sasl.scram import ScramMechanism, ScramServer, credential_of
from kavka.protocol.sasl.scram_messages import ClientFirst

SECRET = "wonderland-4711"
PLAIN = Mechanism("PLAIN", lambda: PlainConversation("alice", SECRET))
SHA_256 = ScramMechanism.SHA_256


def scram(password: str = SECRET, **extensions: str) -> ScramConversation:
    return ScramConversation(SHA_256, "alice", password, extensions)


def answered(message: bytes = b"", lifetime_ms: int = 0, **fields: Any) -> SaslAuthenticateResponse:
    said = {"error_code": 0, "error_message": None, **fields}
    return SaslAuthenticateResponse(auth_bytes=message, session_lifetime_ms=lifetime_ms, **said)


def begun(mechanism: Mechanism, **fields: Any) -> tuple[Generator[Any, Any, float | None], Any]:
    """An exchange after the handshake, and the request that it gives then."""
    exchange = sasl_exchange(mechanism)
    handshake: Any = next(exchange)
    assert handshake.mechanism == mechanism.name
    return exchange, exchange.send(SaslHandshakeResponse(**{"error_code": 0, "mechanisms": [mechanism.name], **fields}))


def test_plain_says_name_and_password_and_the_session_lasts_as_long_as_the_broker_says() -> None:
    exchange, request = begun(PLAIN)
    assert request.auth_bytes == b"\0alice\0wonderland-4711"
    with pytest.raises(StopIteration) as ended:
        exchange.send(answered(lifetime_ms=3_600_000))
    assert ended.value.value == 3_600_000


def test_a_mechanism_that_the_broker_has_not_is_told_with_those_it_has() -> None:
    with pytest.raises(UnsupportedSaslMechanismError, match=r"'PLAIN' not enabled .* \[GSSAPI, OAUTHBEARER\]"):
        begun(PLAIN, error_code=33, mechanisms=["GSSAPI", "OAUTHBEARER"])
    with pytest.raises(IllegalSaslStateError, match="Unexpected handshake"):
        begun(PLAIN, error_code=34)


def test_the_brokers_own_words_are_the_error() -> None:
    exchange, _ = begun(PLAIN)
    with pytest.raises(SaslAuthenticationError, match="Invalid username or password"):
        exchange.send(answered(error_code=58, error_message="Authentication failed: Invalid username or password"))


def test_scram_proves_the_password_to_who_knows_it_and_is_over() -> None:
    client = scram(tokenauth="true")
    firsts: list[ClientFirst] = []

    def find(first: ClientFirst) -> Any:
        firsts.append(first)
        return credential_of(SHA_256, SECRET)

    server = ScramServer(SHA_256, find)
    proof = client.answer(server.respond(client.first()))
    assert proof is not None
    assert client.answer(server.respond(proof)) is None
    assert server.is_complete
    assert (firsts[0].user, dict(firsts[0].extensions)) == ("alice", {"tokenauth": "true"})


def test_a_server_that_does_not_know_the_password_is_not_believed() -> None:
    client = scram()
    impostor = ScramServer(SHA_256, lambda _: credential_of(SHA_256, "something else"))
    client.answer(impostor.respond(client.first()))
    with pytest.raises(SaslAuthenticationError, match="Invalid server signature"):
        client.answer(b"v=" + b"A" * 43 + b"=")


@pytest.mark.parametrize("challenge", [b"", b"r=other,s=QUFB,i=4096", b"r=x,s=QUFB,i=1", b"\xff\0", b"e=unknown-user"])
def test_garbage_in_place_of_a_challenge_is_a_refusal(challenge: bytes) -> None:
    with pytest.raises(SaslAuthenticationError):
        scram().answer(challenge)


def test_a_token_goes_with_its_extensions() -> None:
    client = BearerConversation("a.b.c", {"tenant": "t1"})
    assert client.first() == b"n,,\x01auth=Bearer a.b.c\x01tenant=t1\x01\x01"
    assert client.answer(b"") is None


def test_a_token_that_is_refused_is_answered_so_that_the_broker_says_why() -> None:
    client = BearerConversation("a.b.c")
    assert client.answer(b'{"status":"invalid_token"}') == b"\x01"
    with pytest.raises(SaslAuthenticationError):
        client.answer(b'{"status":"invalid_token"}')


def test_a_broker_that_wants_more_of_plain_gets_nothing() -> None:
    with pytest.raises(SaslAuthenticationError):
        PlainConversation("alice", SECRET).answer(b"more")


def test_nothing_shows_a_secret() -> None:
    shown = repr([PLAIN, PlainConversation("alice", SECRET), scram(), BearerConversation(SECRET)])
    assert SECRET not in shown
