"""The same bytes to Apache Kafka 3.9 and to Kavka: what each answers a client that logs in, and when it closes."""

import base64
import json
import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kavka.protocol.messages.api_versions import ApiVersionsRequest
from kavka.protocol.messages.metadata import MetadataRequest
from kavka.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from kavka.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kavka.protocol.sasl.oauthbearer import bearer_first
from kavka.protocol.sasl.plain import plain_message
from kavka.protocol.schema import Request
from tests.support.kafka_process import ZooKeeperKafka
from tests.support.processes import free_port
from tests.support.sasl_broker import SaslBroker
from tests.support.sasl_core import USERS, answer_of, frame_of

pytestmark = [pytest.mark.java, pytest.mark.soak]

VERSIONS = (ApiVersionsRequest(client_software_name="test", client_software_version="1"), 3)
METADATA = (MetadataRequest(topics=[]), 1)
PREFIX = "listener.name.sasl_plaintext"
MECHANISMS = "PLAIN,SCRAM-SHA-256,OAUTHBEARER"

Asked = tuple[Request, int] | bytes
"""A request and its version, or a frame as it is."""


def shake(mechanism: str, version: int = 1) -> Asked:
    return SaslHandshakeRequest(mechanism=mechanism), version


def token(data: bytes, version: int = 2) -> Asked:
    return SaslAuthenticateRequest(auth_bytes=data), version


def expired_token() -> str:
    def part(value: Any) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    return f"{part({'alg': 'none'})}.{part({'sub': 'alice', 'iat': 1, 'exp': 2})}."


RIGHT, WRONG = plain_message("alice", "alice-secret"), plain_message("alice", "wrong")
CONVERSATIONS: dict[str, Sequence[Asked]] = {
    "right": [VERSIONS, shake("PLAIN"), token(RIGHT)],
    "right, without versions": [shake("PLAIN"), token(RIGHT, 1)],
    "right, by an old client": [shake("PLAIN"), token(RIGHT, 0)],
    "wrong password": [shake("PLAIN"), token(WRONG)],
    "no such user": [shake("PLAIN"), token(plain_message("nobody", "x"))],
    "no user": [shake("PLAIN"), token(plain_message("", "x"))],
    "no password": [shake("PLAIN"), token(plain_message("alice", ""))],
    "nothing": [shake("PLAIN"), token(b"")],
    "another authorization id": [shake("PLAIN"), token(plain_message("alice", "alice-secret", "bob"))],
    "its own authorization id": [shake("PLAIN"), token(plain_message("alice", "alice-secret", "alice"))],
    "more than three parts": [shake("PLAIN"), token(RIGHT + b"\0more")],
    "unknown mechanism": [VERSIONS, shake("CRAM-MD5")],
    "mechanism in other letters": [shake("plain")],
    "versions twice": [VERSIONS, VERSIONS],
    "versions after a handshake": [shake("PLAIN"), VERSIONS],
    "a handshake after a handshake": [shake("PLAIN"), shake("PLAIN")],
    "metadata at first": [METADATA],
    "metadata after versions": [VERSIONS, METADATA],
    "a token at first": [token(RIGHT)],
    "no request": [b"\xff" * 20],
    "a short one": [b"\0"],
    "an empty one": [b""],
    "raw": [shake("PLAIN", 0), RIGHT],
    "raw, wrong": [shake("PLAIN", 0), WRONG],
    "raw, for a token in a request": [shake("PLAIN", 1), RIGHT],
    "scram without sense": [shake("SCRAM-SHA-256"), token(b"sense")],
    "scram with channel binding": [shake("SCRAM-SHA-256"), token(b"p=tls-unique,,n=u,r=abc")],
    "bearer without sense": [shake("OAUTHBEARER"), token(b"sense")],
    "bearer, expired": [
        shake("OAUTHBEARER"),
        token(bearer_first(expired_token())),
        token(b"\1"),
    ],
    "known, a handshake": [shake("PLAIN"), token(RIGHT), shake("PLAIN")],
    "known, a token": [shake("PLAIN"), token(RIGHT), token(RIGHT)],
}
RENEWED: dict[str, Sequence[Asked]] = {
    "renewed": [shake("PLAIN"), token(RIGHT), shake("PLAIN"), token(RIGHT), VERSIONS],
    "renewed twice at once": [shake("PLAIN"), token(RIGHT), shake("PLAIN"), token(RIGHT), shake("PLAIN")],
    "another principal": [shake("PLAIN"), token(RIGHT), shake("PLAIN"), token(plain_message("bob", "bob-secret"))],
    "a wrong password": [shake("PLAIN"), token(RIGHT), shake("PLAIN"), token(WRONG)],
    "versions meanwhile": [shake("PLAIN"), token(RIGHT), shake("PLAIN"), VERSIONS],
}


def converse(address: tuple[str, int], asked: Sequence[Asked]) -> list[Any]:
    """What is answered to each; None where the connection is closed instead."""
    found: list[Any] = []
    is_raw = False
    with socket.create_connection(address, 30) as client:
        for each in asked:
            frame = each if isinstance(each, bytes) else frame_of(*each)
            try:
                client.sendall(struct.pack(">i", len(frame)) + frame)
                answer = received(client)
            except ConnectionError:
                answer = b""
            if not answer:
                return [*found, None]
            if isinstance(each, bytes) or is_raw:
                found.append(answer)
            elif isinstance(each[0], ApiVersionsRequest):
                found.append(answer[8:10])
            else:
                decoded = answer_of(answer, *each)
                if isinstance(decoded, SaslHandshakeResponse):
                    found.append((decoded.error_code, sorted(decoded.mechanisms)))
                else:
                    found.append(repr(decoded))
    return found


def received(client: socket.socket) -> bytes:
    data = b""
    while len(data) < 4 or len(data) < 4 + struct.unpack_from(">i", data)[0]:
        piece = client.recv(65536)
        if not piece:
            return b""
        data += piece
    return data


def kafka(directory: Path, port: int, more: dict[str, str]) -> ZooKeeperKafka:
    plain = free_port()
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:{plain},SASL_PLAINTEXT://localhost:{port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{plain},SASL_PLAINTEXT://localhost:{port}",
        "sasl.enabled.mechanisms": MECHANISMS,
        f"{PREFIX}.plain.sasl.jaas.config": USERS,
        f"{PREFIX}.scram-sha-256.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        ),
        f"{PREFIX}.oauthbearer.sasl.jaas.config": (
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
            'unsecuredLoginStringClaim_sub="kafka";'
        ),
        **more,
    }
    broker = ZooKeeperKafka(directory, settings)
    broker.port = plain
    return broker


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[tuple[str, int]]]]:
    """Of both brokers, Kafka first; without and with a lifetime."""
    found: dict[str, list[tuple[str, int]]] = {}
    with ExitStack() as stack:
        for kind, more in (("plain", {}), ("renewed", {"connections.max.reauth.ms": "60000"})):
            port = free_port()
            stack.enter_context(kafka(tmp_path_factory.mktemp(f"kafka-{kind}"), port, dict(more)))
            ours = {f"{PREFIX}.plain.sasl.jaas.config": USERS, **more}
            broker = SaslBroker(tmp_path_factory.mktemp(f"kavka-{kind}"), ours, mechanisms=MECHANISMS)
            stack.enter_context(broker)
            found[kind] = [("localhost", port), ("localhost", int(broker.sasl_bootstrap.rpartition(":")[2]))]
        yield found


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_both_answer_alike(addresses: dict[str, list[tuple[str, int]]], name: str) -> None:
    expected, ours = (converse(address, CONVERSATIONS[name]) for address in addresses["plain"])
    assert ours == expected


@pytest.mark.parametrize("name", RENEWED)
def test_both_renew_alike(addresses: dict[str, list[tuple[str, int]]], name: str) -> None:
    expected, ours = (converse(address, RENEWED[name]) for address in addresses["renewed"])
    assert ours == expected
