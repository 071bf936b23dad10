"""Connections with TLS: whatever pieces the network makes, requests run in order and answers arrive whole."""

from __future__ import annotations

import os
import random
import ssl
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kavka.broker.network.connection import MAX_UNANSWERED, MAX_UNSENT_BYTES
from kavka.broker.network.tls_connection import PIECE_BYTES, Stage
from kavka.protocol.messages.heartbeat import HeartbeatResponse
from tests.support.certificates import SERVER, Authority, Issued
from tests.support.network_stage import FakeSocket, answers, request
from tests.support.tls_stage import AUTHORITY, TlsClient, TlsStage, server_tls


def opened(stage: TlsStage, **others: Any) -> TlsClient:
    client = stage.client(**others)
    client.shake_hands()
    return client


def test_requests_are_answered_in_order() -> None:
    stage = TlsStage()
    client = opened(stage)
    client.write(b"".join(request(number) for number in range(100)))
    stage.settle()
    assert [number for number, _ in answers(client.read())] == list(range(100))


@pytest.mark.parametrize("seed", range(20))
def test_pieces_of_any_size_make_the_same_requests(seed: int) -> None:
    chance = random.Random(seed)
    socket = FakeSocket(piece=chance.choice([1, 7, 100, 5000, 1 << 20]))
    stage = TlsStage()
    client = stage.client(socket=socket)
    client.shake_hands()
    wire = b"".join(request(number, pad=chance.choice([0, 10, 3000, 20_000, 100_000])) for number in range(30))
    sent = 0
    received = b""
    while sent < len(wire):
        size = chance.choice([1, 50, 1000, 16_384, 60_000])
        client.end.tls.write(wire[sent : sent + min(size, 16_384)])
        sent += min(size, 16_384)
        sealed = client.end.outgoing.read()
        while sealed:
            cut = chance.randrange(1, len(sealed) + 1)
            socket.input += sealed[:cut]
            sealed = sealed[cut:]
            stage.settle()
        received += client.read()
    assert [number for number, _ in answers(received)] == list(range(30))
    assert stage.rejected == []


def test_a_request_behind_the_handshake_is_not_forgotten() -> None:
    stage = TlsStage()
    client = stage.client()
    for _ in range(2):
        client.end.step()
        if client.end.is_done:
            # Its last message and a request come together, and nothing more comes.
            client.end.tls.write(request(7))
        client.push()
        stage.settle()
        client.pull()
    stage.settle()
    assert answers(client.read()) == [(7, 0)]


def test_what_came_before_a_pause_is_read_after_it() -> None:
    stage = TlsStage()
    client = opened(stage)
    client.write(b"".join(request(number, "later") for number in range(MAX_UNANSWERED + 100)))
    stage.settle()
    assert not client.connection.reading
    assert not client.socket.input
    assert len(stage.ran) < MAX_UNANSWERED + 100
    while stage.promises:
        stage.promises.pop(0).complete(HeartbeatResponse(error_code=0))
        stage.settle()
    assert [number for number, _ in answers(client.read())] == list(range(MAX_UNANSWERED + 100))


def test_a_client_that_takes_nothing_gets_all_of_it_in_order_later() -> None:
    stage = TlsStage()
    client = opened(stage)
    client.socket.room = 0
    client.write(b"".join(request(number) for number in range(50)))
    stage.settle()
    assert client.connection.answers.backlog
    chance = random.Random(3)
    received = b""
    while len(answers_so_far(received)) < 50:
        client.socket.room = chance.randrange(1, 90)
        stage.settle()
        received += client.read()
    assert [number for number, _ in answers(received)] == list(range(50))


def answers_so_far(data: bytes) -> list[int]:
    found, at = [], 0
    while at + 4 <= len(data):
        size = int.from_bytes(data[at : at + 4])
        if at + 4 + size > len(data):
            break
        found.append(size)
        at += 4 + size
    return found


class Piece:
    """A real file's slice."""

    def __init__(self, path: Path, position: int, size_bytes: int) -> None:
        self._file = path.open("rb")
        self.position = position
        self.size_bytes = size_bytes
        self.failures: list[OSError | None] = []
        self.released = 0

    def fileno(self) -> int:
        return self._file.fileno()

    def failed(self, error: OSError | None) -> None:
        self.failures.append(error)

    def release(self) -> None:
        self.released += 1


@pytest.mark.parametrize("room", [1 << 30, 50_000, 700])
def test_files_and_memory_are_sent_as_one_stream(tmp_path: Path, room: int) -> None:
    stage = TlsStage()
    client = opened(stage)
    data = os.urandom(300_000)
    path = tmp_path / "segment"
    path.write_bytes(data)
    pieces = [Piece(path, 10, 100_000), Piece(path, 200_000, 90_000), Piece(path, 5, 0), Piece(path, 0, 3)]
    parts: list[Any] = [b"head", memoryview(b"ers"), pieces[0], b"between", pieces[1], pieces[2], pieces[3], b"end"]
    expected = b"headers" + data[10:100_010] + b"between" + data[200_000:290_000] + data[:3] + b"end"
    client.socket.room = room
    with client.connection.write_lock:
        left = client.connection._send(parts)
        client.connection.answers.hold_back(left)
    if left:
        stage.thread.watch_writable(client.connection)
    received = client.read()
    while len(received) < len(expected):
        client.socket.room = room
        stage.loop.settle()
        received += client.read()
    assert received == expected
    assert [piece.released for piece in pieces] == [1, 1, 1, 1]


def test_a_file_that_is_shorter_than_promised_breaks_the_connection_and_unpins_all(tmp_path: Path) -> None:
    stage = TlsStage()
    client = opened(stage)
    path = tmp_path / "segment"
    path.write_bytes(b"x" * 100)
    pieces: list[Any] = [Piece(path, 0, 1000), Piece(path, 0, 10)]
    with client.connection.write_lock:
        assert client.connection._send(list(pieces)) == []
    assert [piece.released for piece in pieces] == [1, 1]
    assert pieces[0].failures == [None]
    assert client.connection.closed


def test_a_piece_is_what_a_connection_holds_at_most_of_what_is_not_taken() -> None:
    stage = TlsStage()
    client = opened(stage)
    client.socket.room = 0
    with client.connection.write_lock:
        parts: list[Any] = [b"x" * (MAX_UNSENT_BYTES * 2)]
        left = client.connection._send(parts)
    sealed = left[0]
    assert isinstance(sealed, bytes)
    assert len(sealed) < PIECE_BYTES + 1024


def test_the_clients_goodbye_ends_the_connection_and_is_answered() -> None:
    stage = TlsStage()
    client = opened(stage)
    client.write(request(1))
    with pytest.raises(ssl.SSLWantReadError):
        client.end.tls.unwrap()
    client.push()
    stage.settle()
    client.pull()
    assert answers(client.end.tls.read(100)) == [(1, 0)]
    client.end.tls.unwrap()
    assert client.socket.closed
    assert stage.thread.connections == {}


def test_an_end_without_goodbye_is_an_end_too() -> None:
    stage = TlsStage()
    client = opened(stage)
    client.write(request(1))
    client.socket.ended = True
    stage.settle()
    assert answers(client.read()) == [(1, 0)]
    assert client.socket.closed


def test_a_damaged_record_ends_the_connection_with_an_alert_behind_the_answers() -> None:
    stage = TlsStage()
    client = opened(stage)
    client.write(request(1))
    client.end.tls.write(request(2))
    damaged = bytearray(client.end.outgoing.read())
    damaged[-3] ^= 1
    client.socket.input += damaged
    stage.settle()
    client.pull()
    assert client.socket.closed
    with pytest.raises(ssl.SSLError, match=r"BAD_RECORD_MAC|DECRYPTION_FAILED"):
        client.end.read()
    assert stage.ran == [1]


@pytest.mark.parametrize("cut", [0, 1, 5, 100])
def test_a_truncated_handshake_is_forgotten(cut: int) -> None:
    stage = TlsStage()
    client = stage.client()
    client.end.step()
    client.socket.input += client.end.outgoing.read()[:cut]
    client.socket.ended = True
    stage.settle()
    assert client.socket.closed
    assert stage.thread.connections == {}


@pytest.mark.parametrize(
    ("garbage", "told"),
    [
        (b"GET / HTTP/1.1\r\n", "speaks HTTP"),
        (request(1), "speaks Kafka's protocol without it"),
        (b"\x80\x2e\x01\x03\x01", "speaks something else"),
        (b"SSH-2.0-OpenSSH", "speaks something else"),
    ],
)
def test_who_speaks_something_else_is_told_of_in_one_line(garbage: bytes, told: str) -> None:
    stage = TlsStage()
    client = stage.client()
    client.socket.input += garbage
    stage.settle()
    assert client.socket.closed
    assert len(stage.rejected) == 1
    assert told in stage.rejected[0]


def test_garbage_in_a_handshake_harms_nobody_else() -> None:
    chance = random.Random(11)
    stage = TlsStage()
    other = opened(stage)
    for _ in range(300):
        client = stage.client()
        client.end.step()
        hello = bytearray(client.end.outgoing.read())
        for _ in range(chance.randrange(1, 8)):
            hello[chance.randrange(1, len(hello))] = chance.randrange(256)
        client.socket.input += hello + chance.randbytes(chance.randrange(200))
        stage.settle()
        client.socket.ended = True
        stage.settle()
        assert client.socket.closed
    other.write(request(5))
    stage.settle()
    assert answers(other.read()) == [(5, 0)]
    assert list(stage.thread.connections.values()) == [other.connection]


@pytest.mark.parametrize(
    "unfit",
    [
        lambda: None,
        lambda: Authority("other").issue("user"),
        lambda: AUTHORITY.issue("user", ends=timedelta(minutes=-1)),
        lambda: AUTHORITY.issue("user", purposes=[SERVER]),
    ],
    ids=["none", "foreign", "expired", "for servers"],
)
@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_a_refused_client_learns_why_before_the_connection_is_closed(
    unfit: Callable[[], Issued | None], version: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    stage = TlsStage(server_tls(ssl_client_auth="required", ssl_enabled_protocols=(version,)))
    client = stage.client(own=unfit())
    with pytest.raises(ssl.SSLError, match=r"ALERT|alert"):
        client.shake_hands()
    assert client.connection.stage is Stage.REFUSED
    assert client.socket.was_shut
    assert not client.socket.closed
    assert stage.ran == []
    assert sum("failed authentication" in each.message for each in caplog.records) == 1
    client.socket.input += b"more"
    stage.settle()
    client.socket.ended = True
    stage.settle()
    assert client.socket.closed


def test_a_certificate_makes_the_clients_principal() -> None:
    stage = TlsStage(server_tls(rules="RULE:^CN=([^,]+).*$/$1/", ssl_client_auth="requested"))
    assert opened(stage, own=AUTHORITY.issue("user")).connection.session.principal == "User:user"
    assert opened(stage).connection.session.principal == "User:ANONYMOUS"


def test_connections_are_counted_by_cipher_in_javas_words_until_they_are_closed() -> None:
    stage = TlsStage()
    client, other = opened(stage), opened(stage, ssl_enabled_protocols=("TLSv1.2",))
    assert stage.tls.connections() == {
        ("TLS_AES_256_GCM_SHA384", "TLSv1.3"): 1,
        ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "TLSv1.2"): 1,
    }
    for each in (client, other):
        stage.thread.close_connection(each.connection)
    assert set(stage.tls.connections().values()) == {0}


def test_a_certificate_that_no_rule_fits_is_refused() -> None:
    stage = TlsStage(server_tls(rules="RULE:^CN=admin$/admin/", ssl_client_auth="required"))
    client = stage.client(own=AUTHORITY.issue("user"))
    with pytest.raises(AssertionError, match="REFUSED"):
        client.shake_hands()


def test_new_connections_get_the_certificate_of_the_moment_and_old_ones_go_on() -> None:
    stage = TlsStage()
    old = opened(stage)
    stage.tls.current = server_tls(AUTHORITY.issue("renewed"))
    new = opened(stage)
    for client, name in ((old, "broker"), (new, "renewed")):
        certificate = client.end.tls.getpeercert()
        assert certificate is not None
        assert ((("commonName", name),),) == certificate["subject"]
        client.write(request(1))
        stage.settle()
        assert answers(client.read()) == [(1, 0)]


def test_what_happens_while_a_step_is_done_elsewhere_waits_for_it() -> None:
    stage = TlsStage(at_once=False)
    client = stage.client()
    client.end.step()
    client.push()
    stage.settle()
    (step,) = stage.steps.waiting
    client.socket.input += b"more of it"
    stage.thread.resume(client.connection)
    stage.settle()
    assert stage.steps.waiting == [step]
    stage.thread.close_connection(client.connection)
    step()
    stage.settle()
    assert client.socket.closed
    assert stage.thread.connections == {}
    assert client.connection.failure is None, "nothing is tried for who has left"


def test_answers_are_sealed_while_requests_are_read() -> None:
    stage = TlsStage()
    client = opened(stage)
    client.write(request(1, "hold") + request(2))
    stage.settle()
    client.write(request(3))
    stage.settle()
    stage.promises.pop().complete(HeartbeatResponse(error_code=0))
    stage.settle()
    assert [number for number, _ in answers(client.read())] == [1, 2, 3]
