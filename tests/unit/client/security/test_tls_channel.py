"""TLS before a channel that takes and gives as much as it likes: no byte is lost, none is sent twice."""

import selectors
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from kavka.client.errors import SslAuthenticationError
from kavka.client.node import Node
from kavka.client.security.tls_channel import PIECE_BYTES, TlsChannel
from kavka.protocol.schema import Buffer
from tests.support.certificates import Authority

HOST = "127.0.0.1"


class Wire:
    """A socket's ways into a peer that has TLS, too. `room_bytes`: what it takes before somebody drains it."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._arriving, self._leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.peer = context.wrap_bio(self._arriving, self._leaving, server_side=True)
        self.room_bytes = 1 << 20
        self.is_closed = False
        self.has_ended = False
        self.largest_read_bytes = 1 << 20

    def fileno(self) -> int:
        return -1

    def getsockopt(self, _level: int, _name: int, /) -> int:
        return 0

    def recv_into(self, buffer: memoryview, /) -> int:
        data = self._leaving.read(min(len(buffer), self.largest_read_bytes))
        if not data and not self.has_ended:
            raise BlockingIOError
        buffer[: len(data)] = data
        return len(data)

    def send(self, data: Buffer, /) -> int:
        size = min(self.room_bytes, len(data))
        if not size:
            raise BlockingIOError
        self.room_bytes -= size
        self._arriving.write(memoryview(data)[:size])
        return size

    def sendmsg(self, buffers: list[Buffer], /) -> int:
        return self.send(b"".join(buffers))

    def close(self) -> None:
        self.is_closed = True

    def shake_hands(self) -> None:
        try:
            self.peer.do_handshake()
        except ssl.SSLWantReadError:
            return

    def received(self) -> bytes:
        parts = []
        try:
            while part := self.peer.read(1 << 16):
                parts.append(part)
        except ssl.SSLWantReadError:
            pass
        return b"".join(parts)


Opened = tuple[TlsChannel, Wire]


@pytest.fixture(scope="module")
def contexts(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext, Path]:
    directory = tmp_path_factory.mktemp("tls")
    authority = Authority()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(authority.issue("server").write_pem(directory / "server.pem"))
    client = ssl.create_default_context(cafile=str(authority.write_pem(directory / "authority.pem")))
    return server, client, directory


@pytest.fixture
def connect(contexts: tuple[ssl.SSLContext, ssl.SSLContext, Path]) -> Callable[..., Opened]:
    def connected(host: str = HOST) -> Opened:
        wire = Wire(contexts[0])
        channel = TlsChannel(wire, contexts[1], Node(1, host, 9093), memoryview(bytearray(PIECE_BYTES)))
        return channel, wire

    return connected


def agreed(opened: Opened) -> Opened:
    channel, wire = opened
    while channel.handshake():
        wire.shake_hands()
    wire.shake_hands()
    return opened


def sent(channel: TlsChannel, wire: Wire, data: bytes, room_bytes: int) -> bytes:
    """Send all of it, by a socket that takes `room_bytes` at a time; what the peer got."""
    left = memoryview(data)
    got = b""
    while left:
        wire.room_bytes = room_bytes
        try:
            left = left[channel.send(left) :]
        except BlockingIOError:
            got += wire.received()
    while len(got) < len(data):
        got += wire.received()
    return got


def test_the_handshake_says_what_it_waits_for(connect: Callable[..., Opened]) -> None:
    channel, wire = connect()
    wire.room_bytes = 0
    assert channel.handshake() == selectors.EVENT_WRITE
    wire.room_bytes = 1 << 20
    assert channel.handshake() == selectors.EVENT_READ
    wire.shake_hands()
    assert channel.handshake() == 0


@pytest.mark.parametrize("room_bytes", [1, 1000, 1 << 20])
def test_bytes_arrive_once_and_in_order_however_little_the_socket_takes(
    connect: Callable[..., Opened], room_bytes: int
) -> None:
    data = bytes(range(256)) * (20 if room_bytes == 1 else 1000)
    channel, wire = agreed(connect())
    assert sent(channel, wire, data, room_bytes) == data


def test_several_buffers_go_out_together(connect: Callable[..., Opened]) -> None:
    channel, wire = agreed(connect())
    buffers: list[Buffer] = [b"head", memoryview(b"x" * 100), b"tail"]
    assert channel.sendmsg(buffers) == 108
    assert wire.received() == b"head" + b"x" * 100 + b"tail"


@pytest.mark.parametrize("largest_read_bytes", [1, 100, 1 << 20])
def test_what_has_arrived_is_given_until_there_is_no_more(
    connect: Callable[..., Opened], largest_read_bytes: int
) -> None:
    channel, wire = agreed(connect())
    wire.largest_read_bytes = largest_read_bytes
    data = bytes(range(256)) * 400
    wire.peer.write(data)
    room = memoryview(bytearray(1 << 20))
    assert bytes(room[: channel.recv_into(room)]) == data
    with pytest.raises(BlockingIOError):
        channel.recv_into(room)


def test_the_end_is_the_end_with_a_farewell_and_without(connect: Callable[..., Opened]) -> None:
    for says_farewell in (True, False):
        channel, wire = agreed(connect())
        if says_farewell:
            with pytest.raises(ssl.SSLWantReadError):
                wire.peer.unwrap()
        wire.has_ended = True
        assert channel.recv_into(memoryview(bytearray(10))) == 0


def test_a_certificate_of_another_host_is_refused(connect: Callable[..., Opened]) -> None:
    opened = connect("elsewhere.example")
    with pytest.raises(SslAuthenticationError, match=r"node 1 at elsewhere.example:9093 .*elsewhere.example"):
        agreed(opened)


def test_a_peer_that_leaves_during_the_handshake_is_no_refusal(connect: Callable[..., Opened]) -> None:
    channel, wire = connect()
    wire.has_ended = True
    with pytest.raises(ConnectionResetError, match="does that listener speak TLS"):
        channel.handshake()


def test_an_alert_before_the_first_answer_is_a_refusal(contexts: tuple[ssl.SSLContext, ssl.SSLContext, Path]) -> None:
    """In TLS 1.3 a server looks at the client's certificate when the client's handshake is over."""
    strict = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    strict.load_cert_chain(contexts[2] / "server.pem")
    strict.verify_mode = ssl.CERT_REQUIRED
    wire = Wire(strict)
    channel = TlsChannel(wire, contexts[1], Node(1, HOST, 9093), memoryview(bytearray(PIECE_BYTES)))
    channel.handshake()
    wire.shake_hands()
    assert channel.handshake() == 0
    with pytest.raises(ssl.SSLError):
        wire.peer.do_handshake()
    with pytest.raises(SslAuthenticationError, match=r"(?i)certificate"):
        channel.recv_into(memoryview(bytearray(10)))


def test_closing_says_farewell_and_closes_what_is_below(connect: Callable[..., Opened]) -> None:
    channel, wire = agreed(connect())
    channel.close()
    assert wire.is_closed
    assert wire.received() == b""


def test_a_forked_child_lets_go_of_its_copy_without_a_word(connect: Callable[..., Opened]) -> None:
    channel, wire = agreed(connect())
    wire.room_bytes = 0
    with pytest.raises(BlockingIOError):
        channel.send(b"the parent's")
    wire.room_bytes = room_bytes = 1 << 20
    channel.let_go()
    assert wire.is_closed
    assert wire.room_bytes == room_bytes, "something was sent"
