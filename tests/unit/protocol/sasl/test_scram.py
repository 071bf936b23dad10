"""SCRAM as RFC 7677 shows it, and as both sides must refuse it."""

import base64
import hashlib
import hmac
import random
import re
from collections.abc import Callable

import pytest

from kavka.protocol.sasl.scram import (
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    TOKEN_AUTH,
    ScramClient,
    ScramCredential,
    ScramMechanism,
    ScramServer,
    credential_of,
    new_salt,
    salted_password,
)
from kavka.protocol.sasl.scram_messages import (
    LONGEST_BYTES,
    ClientFirst,
    ScramError,
    read_client_final,
    read_client_first,
)

# RFC 7677, section 3.
CLIENT_FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
SERVER_NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
CLIENT_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
SALT = bytes.fromhex("5b6d99689d12358eeca04b141236fa81")

BOTH = pytest.mark.parametrize("mechanism", list(ScramMechanism))


def server(credential: ScramCredential, mechanism: ScramMechanism = ScramMechanism.SHA_256) -> ScramServer:
    return ScramServer(mechanism, lambda first: credential)


def logged_in(client: ScramClient, server: ScramServer) -> bool:
    client.verify(server.respond(client.final(server.respond(client.first()))))
    return server.is_complete


def test_the_exchange_of_the_rfc_on_both_sides() -> None:
    credential = credential_of(ScramMechanism.SHA_256, "pencil", 4096, SALT)
    broker = ScramServer(ScramMechanism.SHA_256, lambda first: credential, SERVER_NONCE)
    client = ScramClient(ScramMechanism.SHA_256, "user", "pencil", nonce="rOprNGfwEbeRWgbNEkqO")

    assert client.first() == CLIENT_FIRST
    assert broker.respond(CLIENT_FIRST) == SERVER_FIRST
    assert client.final(SERVER_FIRST) == CLIENT_FINAL
    assert broker.respond(CLIENT_FINAL) == SERVER_FINAL
    client.verify(SERVER_FINAL)
    assert broker.is_complete


@BOTH
@pytest.mark.parametrize("user", ["alice", "a,b=c", "=2C", "with space", "a" * 255])
@pytest.mark.parametrize("password", ["secret", "", "=,=", "žluťoučký kůň", "\0\1"])
def test_both_sides_agree(mechanism: ScramMechanism, user: str, password: str) -> None:
    seen: list[ClientFirst] = []

    def find(first: ClientFirst) -> ScramCredential:
        seen.append(first)
        return credential_of(mechanism, password)

    assert logged_in(ScramClient(mechanism, user, password), ScramServer(mechanism, find))
    assert [each.user for each in seen] == [user]


def test_extensions_and_an_authorization_id_arrive_and_are_signed() -> None:
    seen: list[ClientFirst] = []
    credential = credential_of(ScramMechanism.SHA_256, "secret")

    def find(first: ClientFirst) -> ScramCredential:
        seen.append(first)
        return credential

    assert logged_in(
        ScramClient(ScramMechanism.SHA_256, "id", "secret", {TOKEN_AUTH: "true"}),
        ScramServer(ScramMechanism.SHA_256, find),
    )
    assert seen[0].extensions == {"tokenauth": "true"}
    assert read_client_first(b"n,a=other=2Cid,n=me,r=x").authorization_id == "other,id"


@BOTH
def test_a_wrong_password_is_refused(mechanism: ScramMechanism) -> None:
    client, broker = ScramClient(mechanism, "alice", "wrong"), server(credential_of(mechanism, "secret"), mechanism)
    final = client.final(broker.respond(client.first()))

    with pytest.raises(ScramError, match="Invalid client credentials"):
        broker.respond(final)
    assert not broker.is_complete


def test_after_a_refusal_nothing_more_is_taken() -> None:
    credential = credential_of(ScramMechanism.SHA_256, "secret")
    broker = server(credential)
    wrong = ScramClient(ScramMechanism.SHA_256, "alice", "wrong")
    with pytest.raises(ScramError):
        broker.respond(wrong.final(broker.respond(wrong.first())))
    right = ScramClient(ScramMechanism.SHA_256, "alice", "secret")

    with pytest.raises(ScramError, match="over"):
        broker.respond(right.first())


def test_a_proof_cannot_be_used_again() -> None:
    credential = credential_of(ScramMechanism.SHA_256, "secret")
    first = server(credential)
    client = ScramClient(ScramMechanism.SHA_256, "alice", "secret")
    proof = client.final(first.respond(client.first()))
    assert first.respond(proof)

    second = server(credential)
    second.respond(client.first())
    with pytest.raises(ScramError, match="nonce"):
        second.respond(proof)


def test_a_client_that_puts_its_nonce_first_once_more_is_let_in_as_librdkafka_did_until_2_6_1() -> None:
    credential = credential_of(ScramMechanism.SHA_256, "secret")
    broker = server(credential)
    sent = broker.respond(b"n,,n=alice,r=mine").decode()
    unsigned = "c=biws,r=mine" + sent.split(",")[0][2:]
    salted = salted_password(ScramMechanism.SHA_256, "secret", credential.salt, credential.iterations)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    stored_key = hashlib.sha256(client_key).digest()
    signature = hmac.digest(stored_key, f"n=alice,r=mine,{sent},{unsigned}".encode(), "sha256")
    proof = bytes(one ^ other for one, other in zip(client_key, signature, strict=True))

    broker.respond(f"{unsigned},p={base64.b64encode(proof).decode()}".encode())

    assert broker.is_complete


def _with_nonce_of_another(final: bytes, nonce: bytes) -> bytes:
    return re.sub(rb"r=[^,]*", b"r=" + nonce, final)


@pytest.mark.parametrize("change", [lambda nonce: nonce[:-1], lambda nonce: nonce + b"x", lambda nonce: nonce[::-1]])
def test_another_nonce_in_the_proof_is_refused(change: Callable[[bytes], bytes]) -> None:
    broker = server(credential_of(ScramMechanism.SHA_256, "secret"))
    client = ScramClient(ScramMechanism.SHA_256, "alice", "secret")
    sent = broker.respond(client.first())
    nonce = sent.split(b",")[0][2:]

    with pytest.raises(ScramError):
        broker.respond(_with_nonce_of_another(client.final(sent), change(nonce)))


def test_servers_nonces_differ() -> None:
    broker = [server(credential_of(ScramMechanism.SHA_256, "secret")) for _ in range(50)]
    assert len({each.respond(CLIENT_FIRST) for each in broker}) == 50


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n,,n=user",
        b"n,,n=,r=x",
        b"n,,n=us=er,r=x",
        b"n,,n=us=2Ber,r=x",
        b"y,,n=user,r=x",
        b"p=tls-unique,,n=user,r=x",
        b"n,,n=us\xc5\xafer,r=x",
        b"n,,n=user,r=",
        b"n,,n=user,r=a b",
        b"n,,n=user,r=x,",
        b"n,,n=user,r=x,1=2",
        b"n,,n=user,r=x\0",
        b"\xff" * 100,
        b"n,,n=" + b"u" * LONGEST_BYTES + b",r=x",
    ],
)
def test_a_first_message_that_does_not_fit_is_refused(message: bytes) -> None:
    with pytest.raises(ScramError, match="format"):
        server(credential_of(ScramMechanism.SHA_256, "secret")).respond(message)


@pytest.mark.parametrize(
    "message", [b"", b"c=biws", b"c=biws,r=x", b"c=biws,r=x,p=a", b"c=!,r=x,p=aaaa", b"r=x,p=aaaa", b"\xff\0"]
)
def test_a_last_message_that_does_not_fit_is_refused(message: bytes) -> None:
    broker = server(credential_of(ScramMechanism.SHA_256, "secret"))
    broker.respond(CLIENT_FIRST)
    with pytest.raises(ScramError):
        broker.respond(message)


@BOTH
@pytest.mark.parametrize("size", [0, 3, 30, 66, 300])
def test_a_proof_of_another_length_is_refused(mechanism: ScramMechanism, size: int) -> None:
    broker = server(credential_of(mechanism, "secret"), mechanism)
    nonce = broker.respond(CLIENT_FIRST).split(b",")[0]
    proof = b"AAAA" * (size // 3)

    with pytest.raises(ScramError):
        broker.respond(b"c=biws," + nonce + b",p=" + proof)


@pytest.mark.parametrize(
    "message",
    [
        b"r=other,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
        b"r=cnonce,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4095",
        b"r=cnonce,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=0",
        b"r=cnonce,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=2147483647",
        b"r=cnonce,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=99999999999",
        b"r=cnonce,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=-1",
        b"e=other-error",
        b"",
    ],
)
def test_a_client_refuses_a_server_that_asks_for_too_little_or_too_much(message: bytes) -> None:
    with pytest.raises(ScramError):
        ScramClient(ScramMechanism.SHA_256, "alice", "secret", nonce="cnonce").final(message)


@pytest.mark.parametrize("message", [b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95H4=", b"v=", b"e=unknown-user", b"x"])
def test_a_client_refuses_a_server_that_does_not_know_the_password(message: bytes) -> None:
    client = ScramClient(ScramMechanism.SHA_256, "user", "pencil", nonce="rOprNGfwEbeRWgbNEkqO")
    client.first()
    client.final(SERVER_FIRST)
    with pytest.raises(ScramError):
        client.verify(message)


def test_a_client_that_was_told_nothing_believes_no_signature() -> None:
    with pytest.raises(ScramError):
        ScramClient(ScramMechanism.SHA_256, "user", "pencil").verify(b"v=")


def test_salts_look_like_kafkas_and_differ() -> None:
    salts = {new_salt() for _ in range(1000)}
    assert len(salts) == 1000
    assert all(re.fullmatch(rb"[0-9a-z]{1,26}", salt) for salt in salts)


def test_credentials_show_nothing_of_their_keys() -> None:
    credential = credential_of(ScramMechanism.SHA_256, "secret")
    assert repr(credential) == "ScramCredential(iterations=4096)"
    assert (MIN_ITERATIONS, MAX_ITERATIONS) == (4096, 16384)


def mutated(chance: random.Random, message: bytes) -> bytes:
    """A message with something changed, cut, doubled or put in."""
    data = bytearray(message)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(data) + 1)
        match chance.randrange(4):
            case 0 if at < len(data):
                data[at] = chance.randrange(256)
            case 1:
                del data[at:]
            case 2:
                data[at:at] = chance.choice([b",", b"=", b"=2C", b"n,,", b"\0", b"\xff", b"a=b,", b"p="])
            case _:
                data[at:at] = bytes(data[at : at + chance.randrange(20)])
    return bytes(data)


def fuzz(seed: int, count: int) -> None:
    """No message but the right one is let in, and none raises anything else."""
    chance = random.Random(seed)
    credential = credential_of(ScramMechanism.SHA_256, "pencil", 4096, SALT)
    for _ in range(count):
        broker = ScramServer(ScramMechanism.SHA_256, lambda first: credential, SERVER_NONCE)
        is_first = chance.random() < 0.5
        try:
            if is_first:
                broker.respond(mutated(chance, CLIENT_FIRST))
            else:
                broker.respond(CLIENT_FIRST)
                changed = mutated(chance, CLIENT_FINAL)
                broker.respond(changed)
                # The last character of a proof has bits that mean nothing.
                assert read_client_final(changed) == read_client_final(CLIENT_FINAL), changed
        except ScramError:
            assert not broker.is_complete


def test_messages_that_were_tampered_with_let_nobody_in() -> None:
    fuzz(20_261_123, 3000)


@pytest.mark.soak
def test_a_million_messages_that_were_tampered_with_let_nobody_in() -> None:
    fuzz(random.randrange(2**32), 1_000_000)
