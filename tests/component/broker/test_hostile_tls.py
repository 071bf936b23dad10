"""Clients that abuse TLS behind a good handshake: floods of what is legal, and records that are not."""

from __future__ import annotations

import itertools
import random
import socket
from pathlib import Path
from types import SimpleNamespace

import pytest

from kavka.broker.network import tls_reading
from kavka.broker.network.tls_connection import MOST_SAID_BYTES, PIECE_BYTES
from kavka.broker.network.tls_reading import READ_BUDGET_BYTES, TURN_NS
from kavka.client.tls.contexts import client_context
from tests.support.certificates import rsa_key
from tests.support.forged_records import ALERT, HANDSHAKE, OLD_CIPHER, OldRecordForger, RecordForger
from tests.support.network_stage import FakeSocket, answers, request
from tests.support.tls_stage import AUTHORITY, TlsClient, TlsStage, inline_settings, server_tls


class NotingSocket(FakeSocket):
    """Keeps what was sent, also when that has been read."""

    def __init__(self) -> None:
        super().__init__()
        self.noted = bytearray()

    def take(self, data: bytes | memoryview) -> int:
        size = super().take(data)
        self.noted += data[:size]
        return size


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


def test_new_keys_between_single_bytes_leave_others_their_turn(
    stage: TlsStage, client: TlsClient, forger: RecordForger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each record costs much more than its bytes: not they alone end a turn, but its time."""
    clock = itertools.count(step=TURN_NS // 3)
    monkeypatch.setattr(tls_reading, "time", SimpleNamespace(monotonic_ns=lambda: next(clock)))
    frame = request(1, pad=6000)
    for place in range(len(frame)):
        client.socket.input += forger.key_update(asks_for_one=True) + forger.seal(frame[place : place + 1])
    sent_bytes = len(client.socket.input)
    assert sent_bytes < READ_BUDGET_BYTES
    stage.loop.turn()
    assert 0 < sent_bytes - len(client.socket.input) <= 4 * PIECE_BYTES
    stage.settle()
    assert [number for number, _ in answers(client.read())] == [1], "and nothing is forgotten"


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


@pytest.fixture
def old_stage() -> TlsStage:
    return TlsStage(server_tls(AUTHORITY.issue("broker", key=rsa_key()), ssl_enabled_protocols=("TLSv1.2",)))


@pytest.fixture
def old_client(old_stage: TlsStage, tmp_path: Path) -> TlsClient:
    context = client_context(inline_settings(None))
    context.keylog_filename = str(tmp_path / "keys")
    context.set_ciphers(OLD_CIPHER)
    client = TlsClient(old_stage, context, NotingSocket())
    client.shake_hands()
    return client


@pytest.fixture
def old_forger(old_client: TlsClient, tmp_path: Path) -> OldRecordForger:
    assert isinstance(old_client.socket, NotingSocket)
    return OldRecordForger(tmp_path / "keys", bytes(old_client.socket.noted))


def test_who_wants_to_renegotiate_is_told_no_and_served_on(
    old_stage: TlsStage, old_client: TlsClient, old_forger: OldRecordForger
) -> None:
    old_client.socket.input += old_forger.seal(request(1)) + old_forger.hello() + old_forger.seal(request(2))
    old_stage.settle()
    assert old_stage.ran == [1, 2]
    assert not old_client.socket.closed
    assert bytes([ALERT, 3, 3]) in old_client.socket.taken


def test_a_flood_of_renegotiations_ends_the_connection(
    old_stage: TlsStage, old_client: TlsClient, old_forger: OldRecordForger
) -> None:
    for _ in range(5000):
        old_client.socket.input += old_forger.hello()
    old_stage.settle()
    assert old_client.socket.closed
    assert len(old_client.socket.taken) < MOST_SAID_BYTES


@pytest.mark.parametrize("takes_alerts", [True, False])
def test_renegotiations_between_single_bytes_cost_no_memory(
    old_stage: TlsStage, old_client: TlsClient, old_forger: OldRecordForger, takes_alerts: bool
) -> None:
    old_client.socket.room = 1 << 30 if takes_alerts else 0
    frame = (1 << 19).to_bytes(4) + bytes(4000)
    for place in range(len(frame)):
        old_client.socket.input += old_forger.hello() + old_forger.seal(frame[place : place + 1])
        old_stage.settle()
        assert old_client.connection.outgoing.pending <= MOST_SAID_BYTES + 100
    assert old_client.socket.closed is not takes_alerts


def test_the_end_of_a_handshake_is_acknowledged_at_once(client: TlsClient) -> None:
    assert client.socket.options == [(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)]
