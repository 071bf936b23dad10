"""Clients that abuse TLS behind a good handshake: floods of what is legal, and records that are not."""

from __future__ import annotations

import random
import socket
import ssl
from pathlib import Path

import pytest

from kavka.broker.network.tls_connection import MOST_SAID_BYTES
from kavka.client.tls.contexts import client_context
from tests.support.certificates import rsa_key
from tests.support.forged_records import ALERT, HANDSHAKE, RecordForger
from tests.support.network_stage import answers, request
from tests.support.tls_stage import AUTHORITY, TlsClient, TlsStage, inline_settings, server_tls


@pytest.fixture
def stage() -> TlsStage:
    return TlsStage()


@pytest.fixture
def client(stage: TlsStage, tmp_path: Path) -> TlsClient:
    context = client_context(inline_settings(None))
    context.keylog_filename = str(tmp_path / "keys")
    client = TlsClient(stage, context)
    client.shake_hands()
    return client


@pytest.fixture
def forger(client: TlsClient, tmp_path: Path) -> RecordForger:
    return RecordForger(tmp_path / "keys")


def test_a_forged_record_is_as_good_as_any(stage: TlsStage, client: TlsClient, forger: RecordForger) -> None:
    client.socket.input += forger.seal(request(1)) + forger.key_update(asks_for_one=True) + forger.seal(request(2))
    stage.settle()
    assert [number for number, _ in answers(client.read())] == [1, 2]


@pytest.mark.parametrize("asks_for_one", [True, False])
def test_a_flood_of_new_keys_ends_the_connection(
    stage: TlsStage, client: TlsClient, forger: RecordForger, asks_for_one: bool
) -> None:
    for _ in range(5000):
        client.socket.input += forger.key_update(asks_for_one=asks_for_one)
    stage.settle()
    assert client.socket.closed
    assert len(client.socket.taken) < MOST_SAID_BYTES


def test_new_keys_between_requests_cost_no_memory(stage: TlsStage, client: TlsClient, forger: RecordForger) -> None:
    client.socket.room = 0
    for number in range(1000):
        client.socket.input += forger.key_update(asks_for_one=True) + forger.seal(request(number)[:1])
    stage.settle()
    assert client.connection.outgoing.pending <= MOST_SAID_BYTES
    assert client.connection.incoming.pending == 0


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"", HANDSHAKE),
        (b"\x01\x00\x00\x00", HANDSHAKE),
        (b"\x04" + bytes(40), HANDSHAKE),
        (b"\x18\x00\x00\x01\x07", HANDSHAKE),
        (b"\x18\x00\x00\x02\x00\x00", HANDSHAKE),
        (b"\x02\x28", ALERT),
        (b"\x01", ALERT),
        (b"x", 20),
        (b"x", 99),
        (b"x" * 17_000, 23),
    ],
)
def test_a_record_that_has_no_place_here_ends_the_connection(
    stage: TlsStage, client: TlsClient, forger: RecordForger, content: bytes, kind: int
) -> None:
    client.socket.input += forger.seal(request(1)) + forger.seal(content, kind) + forger.seal(request(2))
    stage.settle()
    assert client.socket.closed
    assert stage.ran == [1]
    assert stage.thread.connections == {}


def test_empty_records_without_end_end_the_connection(stage: TlsStage, client: TlsClient, forger: RecordForger) -> None:
    for _ in range(1000):
        client.socket.input += forger.seal(b"")
    stage.settle()
    assert client.socket.closed


def test_garbage_behind_a_handshake_harms_nobody_else(stage: TlsStage) -> None:
    chance = random.Random(17)
    other = stage.client()
    other.shake_hands()
    for _ in range(200):
        client = stage.client()
        client.shake_hands()
        client.end.tls.write(request(1))
        sealed = bytearray(client.end.outgoing.read())
        for _ in range(chance.randrange(1, 5)):
            sealed[chance.randrange(len(sealed))] = chance.randrange(256)
        client.socket.input += sealed + chance.randbytes(chance.randrange(100))
        stage.settle()
        client.socket.ended = True
        stage.settle()
        assert client.socket.closed
    other.write(request(3))
    stage.settle()
    assert answers(other.read()) == [(3, 0)]
    assert list(stage.thread.connections.values()) == [other.connection]


def test_nobody_renegotiates() -> None:
    stage = TlsStage(server_tls(AUTHORITY.issue("broker", key=rsa_key()), ssl_enabled_protocols=("TLSv1.2",)))
    client = stage.client()
    client.shake_hands()
    assert client.end.tls.version() == "TLSv1.2"
    assert client.connection.tls.context.options & ssl.OP_NO_RENEGOTIATION


def test_the_end_of_a_handshake_is_acknowledged_at_once(client: TlsClient) -> None:
    assert client.socket.options == [(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)]
