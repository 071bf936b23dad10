"""The metrics server over real sockets: pages, bad requests, slow and many clients, stopping."""

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from kavka.broker.metrics import http_server
from kavka.broker.metrics.http_server import MetricsServer
from kavka.broker.network import bounded_http
from tests.support.processes import wait_until

TIMEOUT_S = 60.0


class Health:
    """What the server asks of its broker."""

    def __init__(self) -> None:
        self.reason: str | None = None
        self.ready = True
        self.broken = False

    def render(self) -> bytes:
        if self.broken:
            raise RuntimeError("no metrics today")
        return b"kavka_up 1\n"


@pytest.fixture
def health() -> Health:
    return Health()


@pytest.fixture
def port(health: Health) -> Iterator[int]:
    server = MetricsServer(
        "127.0.0.1", 0, render=health.render, failure=lambda: health.reason, is_ready=lambda: health.ready
    )
    yield server.start()
    server.stop()


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), TIMEOUT_S)


def read_all(client: socket.socket) -> bytes:
    received = b""
    while data := client.recv(65536):
        received += data
    return received


def fetch(port: int, request: bytes) -> tuple[int, bytes]:
    with connect(port) as client:
        client.sendall(request)
        head, _, body = read_all(client).partition(b"\r\n\r\n")
    return int(head.split(b" ")[1]), body


def get(port: int, path: str) -> tuple[int, bytes]:
    return fetch(port, f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())


def test_metrics_and_health_are_served(port: int, health: Health) -> None:
    assert get(port, "/metrics") == (200, b"kavka_up 1\n")
    assert get(port, "/metrics?name=x") == (200, b"kavka_up 1\n")
    assert get(port, "/healthz") == (200, b"ok\n")
    assert get(port, "/readyz") == (200, b"ready\n")

    health.reason, health.ready = "the disk is gone", False

    assert get(port, "/healthz") == (503, b"the disk is gone\n")
    assert get(port, "/readyz") == (503, b"not ready\n")


def test_a_head_request_gets_no_body(port: int) -> None:
    assert fetch(port, b"HEAD /metrics HTTP/1.0\r\n\r\n") == (200, b"")


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET /elsewhere HTTP/1.1\r\n\r\n", 404),
        (b"POST /metrics HTTP/1.1\r\n\r\n", 405),
        (b"\x00\x00\x00\x0b\x00\x12\r\n\r\n", 400),
        (b"GET /metrics\r\n\r\n", 400),
        (b"GET /metrics HTTP/1.1\r\nX: " + b"y" * 9000, 400),
    ],
)
def test_bad_requests_are_refused(port: int, request_bytes: bytes, status: int) -> None:
    assert fetch(port, request_bytes)[0] == status


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET /metrics HTTP/1.1\r\nX: " + b"y" * 9_000,
        b"GET /" + b"a" * 9_000,
        b"POST /metrics HTTP/1.1\r\nContent-Length: 40960\r\n\r\n",
    ],
)
def test_a_client_that_is_refused_may_send_its_request_to_the_end(
    port: int, request_bytes: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_http, "DEADLINE_S", TIMEOUT_S)
    with connect(port) as client:
        client.sendall(request_bytes)
        assert read_all(client).startswith(b"HTTP/1.1 4")
        for _ in range(40):
            assert get(port, "/healthz")[0] == 200
            client.sendall(b"y" * 1024)
        client.shutdown(socket.SHUT_WR)


def test_a_refused_request_is_read_on_to_a_limit(port: int) -> None:
    with connect(port) as client:
        client.sendall(b"GET /" + b"a" * 9000)
        with pytest.raises(OSError, match=r"reset|pipe"):
            client.sendall(b"a" * 64 * 1024 * 1024)


def test_a_failing_scrape_is_answered_and_the_server_lives_on(port: int, health: Health) -> None:
    health.broken = True

    assert get(port, "/metrics")[0] == 500
    assert get(port, "/healthz")[0] == 200


def test_a_client_that_says_nothing_does_not_hold_up_others_and_is_dropped(
    health: Health, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_http, "DEADLINE_S", 2.0)
    server = MetricsServer("", 0, render=health.render, failure=lambda: None, is_ready=lambda: True)
    port = server.start()

    def is_served() -> bool:
        # Unless the machine lets its request wait for longer than that, too.
        with contextlib.suppress(OSError, IndexError):
            return get(port, "/healthz")[0] == 200
        return False

    try:
        with connect(port) as silent:
            silent.sendall(b"GET /met")
            wait_until(is_served, TIMEOUT_S, "others are held up")
            assert silent.recv(1) == b""
    finally:
        server.stop()


def test_connections_beyond_the_limit_wait_their_turn(health: Health, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "WORKERS", 2)
    server = MetricsServer("127.0.0.1", 0, render=health.render, failure=lambda: None, is_ready=lambda: True)
    port = server.start()
    try:
        silent = [connect(port) for _ in range(2)]
        with connect(port) as third:
            third.sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
            silent[0].close()
            assert read_all(third).startswith(b"HTTP/1.1 200")
        silent[1].close()
    finally:
        server.stop()


def test_stopping_closes_what_is_open_and_gives_the_port_back(health: Health) -> None:
    server = MetricsServer("127.0.0.1", 0, render=health.render, failure=lambda: None, is_ready=lambda: True)
    port = server.start()
    with connect(port) as client:
        get(port, "/healthz")
        server.stop()
        assert client.recv(1) == b""
    again = MetricsServer("127.0.0.1", port, render=health.render, failure=lambda: None, is_ready=lambda: True)
    assert again.start() == port
    again.stop()


def test_who_could_be_given_no_thread_is_closed_and_holds_up_no_stop(
    health: Health, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = MetricsServer("127.0.0.1", 0, render=health.render, failure=lambda: None, is_ready=lambda: True)
    port = server.start()

    def no_thread(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", no_thread)
        with connect(port) as client, contextlib.suppress(ConnectionResetError):
            assert read_all(client) == b""
    server.stop()
    with pytest.raises(ConnectionRefusedError):
        connect(port)
