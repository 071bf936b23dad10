"""The control plane: a listener with a queue and threads of its own, which clients cannot keep busy."""

import socket
import ssl
import threading
from pathlib import Path
from typing import Any

import pytest

from kavka.broker.requests.handling import load_handlers
from kavka.protocol.api import ApiKey
from kavka.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from kavka.protocol.messages.metadata import MetadataRequest
from tests.support.certificates import PASSWORD, Authority
from tests.support.processes import free_port
from tests.support.running_broker import HOST, RunningBroker, wait_for_threads
from tests.support.wire import RawClient


def with_control_plane(directory: Path, protocol: str = "PLAINTEXT", **settings: str) -> tuple[RunningBroker, int]:
    port = free_port()
    running = RunningBroker(
        directory,
        {
            "control.plane.listener.name": "CONTROL",
            "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,CONTROL:{protocol}",
            "num.io.threads": "1",
            **{name.replace("_", "."): value for name, value in settings.items()},
        },
    )
    running.settings["listeners"] += f",CONTROL://{HOST}:{port}"
    return running, port


def test_requests_are_run_there_while_all_others_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    running, port = with_control_plane(tmp_path)
    begun, may_end = threading.Event(), threading.Event()

    def wait(request: Any, context: Any, services: Any) -> Any:
        begun.set()
        assert may_end.wait(60)
        return DescribeLogDirsResponse(throttle_time_ms=0, results=[])

    monkeypatch.setattr(load_handlers()[ApiKey.DESCRIBE_LOG_DIRS], "function", wait)
    with running, RawClient(HOST, running.port) as client, RawClient(HOST, port) as controller:
        try:
            client.send(DescribeLogDirsRequest(topics=None), 1)
            assert begun.wait(60)

            answer = controller.ask(MetadataRequest(topics=[]), 12)
        finally:
            may_end.set()

        assert [each.port for each in answer.brokers] == [port]
        wait_for_threads(control_network=1, control_io=1, acceptor_CONTROL=1)
    wait_for_threads(control_=0, acceptor_CONTROL=0)


def test_its_listener_stays_when_settings_change(tmp_path: Path) -> None:
    running, port = with_control_plane(tmp_path)
    with running:
        running.alter({"num.io.threads": "2", "num.network.threads": "2"})

        with RawClient(HOST, port) as controller:
            assert controller.ask(MetadataRequest(topics=[]), 12).controller_id == running.broker.broker_id
        wait_for_threads(control_io=1, control_network=1)


def test_its_certificates_change_with_their_settings(tmp_path: Path) -> None:
    authority = Authority()
    first, second, other = (authority.issue(name) for name in ("broker", "broker", "somebody else"))
    settings = {"ssl_keystore_password": PASSWORD, "password_encoder_secret": PASSWORD}
    running, port = with_control_plane(
        tmp_path / "data", "SSL", ssl_keystore_location=str(first.write_pkcs12(tmp_path / "first.p12")), **settings
    )
    context = ssl.create_default_context(cafile=authority.write_pem(tmp_path / "trust.pem"))

    def shown() -> bytes | None:
        with (
            socket.create_connection((HOST, port), 60) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as client,
        ):
            return client.getpeercert(binary_form=True)

    name = "listener.name.control.ssl.keystore.location"
    with running:
        assert shown() == first.der
        assert not running.alter({name: str(second.write_pkcs12(tmp_path / "second.p12"))}).error_code
        assert shown() == second.der
        refused = running.alter({name: str(other.write_pkcs12(tmp_path / "other.p12"))})
        assert "DistinguishedName does not match" in refused.error_message
        assert shown() == second.der
        wait_for_threads(control_io=1, control_network=1, acceptor_CONTROL=1)
