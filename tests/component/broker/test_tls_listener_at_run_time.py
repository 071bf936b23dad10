"""A listener with TLS that is added while the broker runs, and removed again."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path

import pytest

from kavka.broker.security.authentication_counts import PREFIX
from kavka.protocol.errors import ErrorCode
from tests.support.certificates import PASSWORD, Authority
from tests.support.processes import free_port, wait_until
from tests.support.running_broker import HOST, RunningBroker, threads

TIMEOUT_S = 60.0
API_VERSIONS = b"\0\0\0\x0e\0\x12\0\0\0\0\0\x07\0\4test"


def counted(running: RunningBroker, name: str) -> dict[str, float]:
    (gauge,) = [each for each in running.broker.metrics.gauges() if each.name == PREFIX + name]
    return {labels["listener"]: value for labels, value in gauge.read()}


def test_a_listener_with_tls_comes_and_goes(tmp_path: Path) -> None:
    authority = Authority()
    store = authority.issue("broker").write_pkcs12(tmp_path / "keys.p12")
    context = ssl.create_default_context(cafile=authority.write_pem(tmp_path / "trust.pem"))
    settings = {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SECRET:SSL",
        "password.encoder.secret": PASSWORD,
    }
    with RunningBroker(tmp_path, settings) as running:
        port = free_port()
        plain = f"PLAINTEXT://{HOST}:{running.port}"
        changes = {
            "listeners": f"{plain},SECRET://{HOST}:{port}",
            "listener.name.secret.ssl.keystore.location": str(store),
            "listener.name.secret.ssl.keystore.password": "wrong",
        }
        refused = running.alter(changes)
        assert refused.error_code == ErrorCode.INVALID_REQUEST
        assert "is the password wrong?" in refused.error_message
        assert threads("handshake-") == 0

        changes["listener.name.secret.ssl.keystore.password"] = PASSWORD
        assert running.alter(changes).error_code == ErrorCode.NONE
        with (
            socket.create_connection((HOST, port), TIMEOUT_S) as client,
            context.wrap_socket(client, server_hostname="localhost") as secret,
        ):
            secret.sendall(API_VERSIONS)
            assert secret.recv(8)[4:] == b"\0\0\0\x07"
            assert counted(running, "successful_authentication") == {"SECRET": 1}
            assert counted(running, "successful_authentication_no_reauth") == {"SECRET": 1}
            with pytest.raises(ssl.SSLError), socket.create_connection((HOST, port), TIMEOUT_S) as stranger:
                ssl.create_default_context().wrap_socket(stranger, server_hostname="localhost")
            wait_until(
                lambda: counted(running, "failed_authentication") == {"SECRET": 1}, TIMEOUT_S, "no failure is counted"
            )
            assert running.alter({"listeners": plain}).error_code == ErrorCode.NONE
            assert secret.recv(100_000)
            wait_until(lambda: not secret.recv(100_000), TIMEOUT_S, "the connection stays")
    assert threads("handshake-") == 0
