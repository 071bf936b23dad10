"""The places for TLS and SASL: what stands before the socket, and the exchange before the first request."""

from collections.abc import Generator
from typing import Any

import pytest

from kavka.client import NetworkClient
from kavka.client.bootstrap import Bootstrap, bootstrap_nodes
from kavka.client.client_metrics import Metrics
from kavka.client.kafka_error import AuthenticationError
from kavka.client.metadata import Metadata, MetadataSettings
from kavka.client.network_metrics import NetworkMetrics
from kavka.client.node import Node
from kavka.client.security_port import Channel, Exchange
from kavka.protocol.messages.heartbeat import HeartbeatResponse
from kavka.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kavka.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kavka.protocol.schema import Buffer
from tests.support.client_line import SETTINGS, Clock, Line
from tests.support.scripted_broker import Visitor


class Turned:
    """A channel that turns each byte around, so that it can be seen to be there."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def fileno(self) -> int:
        return self._channel.fileno()

    def recv_into(self, buffer: memoryview, /) -> int:
        size = self._channel.recv_into(buffer)
        buffer[:size] = bytes(each ^ 0xFF for each in buffer[:size])
        return size

    def send(self, data: Buffer, /) -> int:
        return self._channel.send(bytes(each ^ 0xFF for each in data))

    def sendmsg(self, buffers: list[Buffer], /) -> int:
        return self.send(b"".join(buffers))

    def getsockopt(self, level: int, name: int, /) -> int:
        return self._channel.getsockopt(level, name)

    def handshake(self) -> int:
        return 0

    def let_go(self) -> None:
        self._channel.close()

    def close(self) -> None:
        self._channel.close()


class Password:
    """Says a password in two steps."""

    def __init__(self, *, turned: bool = False) -> None:
        self.turned = turned
        self.mechanism = "PLAIN"
        self.nodes: list[Node] = []
        self.is_closed = False

    def secured(self, channel: Channel, _node: Node) -> Turned | None:
        return Turned(channel) if self.turned else None

    def close(self) -> None:
        self.is_closed = True

    def authentication(self, node: Node) -> Exchange:
        self.nodes.append(node)
        yield SaslHandshakeRequest(mechanism=self.mechanism)
        answer = yield SaslAuthenticateRequest(auth_bytes=b"\0me\0secret")
        if answer.error_code:
            raise AuthenticationError(answer.error_message)
        return float(answer.session_lifetime_ms)


class SecureLine(Line):
    clock: Clock

    def __init__(self, security: Password) -> None:
        super().__init__(SETTINGS)
        self.client.close()
        bootstrap = Bootstrap(bootstrap_nodes([f"127.0.0.1:{self.node.port}"]), on_found=lambda: None)
        self.metadata = Metadata(bootstrap, MetadataSettings(), wake=lambda: None)
        self.client = NetworkClient(SETTINGS, metadata=self.metadata, security=security)


@pytest.fixture
def password() -> Password:
    return Password()


@pytest.fixture
def line(password: Password) -> Generator[SecureLine, None, None]:
    line = SecureLine(password)
    with line.broker:
        yield line
        line.client.close()


def answer_password(line: Line, **fields: Any) -> Any:
    """The broker's side of the exchange."""
    line.client.ready(line.node)
    visitor = line.broker.accept()
    line.until(lambda: line.client.counts.sent_bytes)
    asked = visitor.asked()
    assert asked.request.mechanism == "PLAIN"
    visitor.answer(asked, SaslHandshakeResponse(error_code=0, mechanisms=["PLAIN"]))
    sent_bytes = line.client.counts.sent_bytes
    line.until(lambda: line.client.counts.sent_bytes > sent_bytes)
    asked = visitor.asked()
    assert asked.request.auth_bytes == b"\0me\0secret"
    visitor.answer(asked, SaslAuthenticateResponse(auth_bytes=b"", **fields))
    return visitor


def test_a_connection_is_open_when_the_exchange_is_over(line: SecureLine, password: Password) -> None:
    answer_password(line, error_code=0, error_message=None)
    line.until(lambda: line.client.ready(line.node))
    assert password.nodes == [line.node]


def test_who_is_refused_hears_of_it_where_metadata_are_waited_for(line: SecureLine) -> None:
    version = line.metadata.want([])
    answer_password(line, error_code=58, error_message="who are you")
    line.until(lambda: line.client.failures(line.node))
    assert line.client.served(line.node) is None
    with pytest.raises(AuthenticationError, match="who are you"):
        line.metadata.wait_for(version + 1, 0)


def test_an_exchange_that_cannot_be_made_is_a_refusal_and_no_end(line: SecureLine, password: Password) -> None:
    password.mechanism = "x" * 40_000
    version = line.metadata.want([])
    line.client.ready(line.node)
    line.broker.accept()
    line.until(lambda: line.client.failures(line.node))
    with pytest.raises(AuthenticationError, match="SaslHandshakeRequest"):
        line.metadata.wait_for(version + 1, 0)


def test_what_stands_before_the_socket_sees_every_byte() -> None:
    line = SecureLine(Password(turned=True))
    with line.broker:
        line.client.ready(line.node)
        visitor = line.broker.accept()
        line.until(lambda: line.client.counts.sent_bytes)
        size = visitor.socket.recv(4)
        assert bytes(each ^ 0xFF for each in size[:2]) == b"\0\0", "a frame's size, turned back"
        line.client.close()


@pytest.fixture
def session(password: Password) -> Generator[tuple[SecureLine, Visitor], None, None]:
    """An open connection, over which a heartbeat is under way, and whose session of ten seconds is nearly over."""
    line, clock = SecureLine(password), Clock()
    line.client.close()
    line.client = NetworkClient(SETTINGS, metadata=line.metadata, security=password, now_ms=clock)
    with line.broker:
        visitor = answer_password(line, error_code=0, error_message=None, session_lifetime_ms=10_000)
        line.until(lambda: line.client.ready(line.node))
        line.send()
        line.clock = clock
        clock.now_ms += 9_600
        line.until(lambda: not line.client.ready(line.node))
        yield line, visitor
        line.client.close()


def answer_in_between(line: SecureLine, visitor: Visitor, **fields: Any) -> None:
    """The heartbeat's answer, and after it the exchange's."""
    asked = visitor.asked()
    handshake = visitor.asked()
    assert isinstance(handshake.request, SaslHandshakeRequest)
    line.clock.now_ms += 40
    visitor.answer(asked, HeartbeatResponse(error_code=0))
    sent_bytes = line.client.counts.sent_bytes
    visitor.answer(handshake, SaslHandshakeResponse(error_code=0, mechanisms=["PLAIN"]))
    line.until(lambda: line.client.counts.sent_bytes > sent_bytes)
    visitor.answer(visitor.asked(), SaslAuthenticateResponse(auth_bytes=b"", **fields))


def test_a_session_that_nears_its_end_is_renewed_before_anything_else_is_sent(
    session: tuple[SecureLine, Visitor],
) -> None:
    line, visitor = session
    metrics = Metrics("producer", "p", now_ms=lambda: 0)
    NetworkMetrics(metrics, line.client.counts)
    assert line.client.least_loaded([line.node]) == line.node, "else nobody would ask for it, and it stayed so"
    answer_in_between(line, visitor, error_code=0, error_message=None)
    assert isinstance(line.one_answer(), HeartbeatResponse), "what was under way is answered all the same"
    line.until(lambda: line.client.ready(line.node))
    counts = line.client.counts
    assert (counts.reauthentications, counts.connections, counts.disconnects) == (1, 1, 0)
    assert metrics["reauthentication-latency-max"] == metrics["reauthentication-latency-avg"] == 40.0
    assert metrics["successful-authentication-no-reauth-total"] == 1


def test_who_is_not_let_in_again_is_told_so_and_disconnected(session: tuple[SecureLine, Visitor]) -> None:
    line, visitor = session
    answer_in_between(line, visitor, error_code=58, error_message="not any more")
    line.until(lambda: line.client.failures(line.node))
    assert line.client.counts.failed_reauthentications == 1
    refusal = line.metadata.take_refusal()
    assert refusal is not None
    assert "not any more" in str(refusal)


def test_a_client_that_is_closed_closes_its_security(line: SecureLine, password: Password) -> None:
    line.client.close()
    assert password.is_closed
