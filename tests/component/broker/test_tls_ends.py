"""Connections with TLS that end at moments that are easily forgotten."""

import gc
import ssl
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from kavka.broker.network.hang_ups import client_reset
from kavka.broker.network.tls_connection import TlsConnection
from kavka.protocol.messages.heartbeat import HeartbeatResponse
from tests.support.network_stage import FakeSocket, request
from tests.support.tls_stage import TlsStage, server_tls


def test_what_is_left_of_a_connection_that_was_closed_is_nobodys(caplog: pytest.LogCaptureFixture) -> None:
    stage = TlsStage()
    client = stage.client()
    client.shake_hands()
    connection = client.connection
    stage.thread.pause(connection)
    client.end.tls.write(request(1))
    connection.feed(memoryview(client.end.outgoing.read()))
    stage.thread.resume(connection)
    client.socket.broken = True
    connection.write([b"an answer"])
    stage.thread.close_connection(connection)
    stage.settle()
    assert stage.ran == []
    assert not caplog.records


class SilentSocket(FakeSocket):
    """Never tells of its end."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0

    def recv_into(self, space: memoryview) -> int:
        self.reads += 1
        assert self.reads < 100, "read for ever"
        return super().recv_into(space)


@pytest.mark.parametrize("sent", [b"", b"\x16\x03\x01", b"\x16\x03\x01\0\5worse"])
def test_a_reset_that_was_told_to_a_writer_ends_a_handshake(sent: bytes) -> None:
    stage = TlsStage()
    client = stage.client(socket=SilentSocket())
    client.socket.input += sent
    stage.settle()
    client_reset(stage.thread, client.connection)
    stage.settle()
    assert client.socket.closed
    assert isinstance(client.socket, SilentSocket)
    assert client.socket.reads < 5


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def mark_of(connection: TlsConnection) -> "weakref.ref[Any]":
    """Of something that is there for as long as the connection is."""

    def nothing() -> None: ...

    connection.deferred = nothing
    return weakref.ref(nothing)


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("what", ["refused", "damaged", "too long"])
def test_what_failed_is_forgotten_when_its_connection_is_closed(what: str) -> None:
    """At once: the garbage collector comes by after thousands of them."""
    stage = TlsStage(server_tls(ssl_client_auth="required" if what == "refused" else "none"))
    client = stage.client()
    connection = client.connection
    if what == "refused":
        with pytest.raises(ssl.SSLError):
            client.shake_hands()
        assert connection.failure is not None
    else:
        client.shake_hands()
        client.end.tls.write(request(1))
        sent = bytearray(client.end.outgoing.read())
        client.end.tls.write(request(2) if what == "damaged" else b"\x7f\xff\xff\xff")
        sent += client.end.outgoing.read()
        sent[-1] ^= what == "damaged"
        client.socket.input += sent
        stage.settle()
        assert stage.ran == [1]
    stage.thread.close_connection(connection)
    stage.settle()
    mark = mark_of(connection)
    del connection, client
    stage.answered.clear()
    authentications = stage.thread._authentications
    assert authentications is not None
    authentications.look()
    assert mark() is None


@pytest.mark.usefixtures("no_collector")
def test_what_fails_when_its_connection_is_closed_is_forgotten_too() -> None:
    stage = TlsStage(at_once=False)
    client = stage.client()
    client.socket.input += b"\x16\x03\x01\0\5worse"
    stage.settle()
    stage.thread.close_connection(client.connection)
    # Its step had begun by then.
    client.connection.take_step()
    stage.steps.waiting.pop()()
    stage.settle()
    assert client.connection.failure is not None
    mark = mark_of(client.connection)
    del client
    authentications = stage.thread._authentications
    assert authentications is not None
    authentications.look()
    assert mark() is None


@pytest.mark.usefixtures("no_collector")
def test_a_request_that_waits_keeps_nothing_of_the_tls_of_a_connection_that_is_closed() -> None:
    stage = TlsStage()
    client = stage.client()
    client.shake_hands()
    client.write(request(1, "later"))
    stage.settle()
    connection = client.connection
    tls, had = weakref.ref(connection.tls), [connection.incoming, connection.outgoing]
    del client
    stage.thread.close_connection(connection)
    assert tls() is None
    assert connection.incoming not in had
    assert connection.outgoing not in had

    (promise,) = stage.promises
    promise.complete(HeartbeatResponse(error_code=0))
    stage.settle()
    assert not connection.answers.slots
    assert not connection.has_unread
