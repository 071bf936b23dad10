"""What keeps a broker from starting is said in one plain line, with the setting that does and the way out."""

import socket
from pathlib import Path
from typing import Any

import pytest

from kavka.broker.server import StartError
from kavka.config.errors import ConfigError
from kavka.protocol.errors import ErrorCode
from tests.support.processes import free_port
from tests.support.running_broker import HOST, RunningBroker

OVERRIDES = "max.connections.per.ip.overrides"


def lose_host(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    """Have the resolver know `host` no more."""
    known = socket.getaddrinfo

    def look_up(asked: Any, *more: Any, **others: Any) -> Any:
        if asked == host:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return known(asked, *more, **others)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)


@pytest.mark.parametrize("has_listeners", [True, False])
@pytest.mark.parametrize("entity", ["5", ""])
def test_a_host_that_is_unknown_now_is_what_the_way_out_is_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entity: str, has_listeners: bool
) -> None:
    with RunningBroker(tmp_path) as running:
        if has_listeners:
            listeners = f"PLAINTEXT://{HOST}:{running.port},OTHER://{HOST}:{free_port()}"
            names = "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT"
            changes = {"listeners": listeners, "listener.security.protocol.map": names}
            assert running.alter(changes).error_code == ErrorCode.NONE
        with monkeypatch.context() as before:
            known = socket.getaddrinfo
            before.setattr(socket, "getaddrinfo", lambda host, *more, **others: known(HOST, *more, **others))
            assert running.alter({OVERRIDES: "gateway.lan:5"}, name=entity).error_code == ErrorCode.NONE
        lose_host(monkeypatch, "gateway.lan")

        with pytest.raises(
            StartError, match=f"^{OVERRIDES}: host gateway.lan .*settings --delete {OVERRIDES} "
        ) as told:
            running.restart()

    assert "--delete listeners" not in str(told.value)


def test_a_port_that_metrics_and_a_listener_share_is_said_to_be_so(tmp_path: Path) -> None:
    running = RunningBroker(tmp_path)
    running.settings |= {"metrics.host": HOST, "metrics.port": str(running.port)}

    with pytest.raises(StartError, match=rf"^listener PLAINTEXT .* by this broker's own metrics\.port={running.port}$"):
        running.start()


def test_an_address_that_cannot_be_had_is_said_without_a_number(tmp_path: Path) -> None:
    running = RunningBroker(tmp_path)
    with (
        socket.create_server((HOST, running.port)),
        pytest.raises(StartError, match=r"^listener PLAINTEXT cannot bind .*: Address already in use$"),
    ):
        running.start()


def test_a_folder_that_cannot_be_had_is_named_without_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    running = RunningBroker(tmp_path)

    def refused(_registry: object) -> None:
        raise PermissionError(13, "Permission denied", "/var/kavka")

    monkeypatch.setattr("kavka.broker.server.prepare_tree", refused)
    with pytest.raises(StartError, match=r"^/var/kavka: Permission denied$"):
        running.start()


@pytest.mark.parametrize("name", ["num.network.threads", "num.io.threads"])
def test_more_threads_than_a_broker_can_do_with_are_refused(tmp_path: Path, name: str) -> None:
    running = RunningBroker(tmp_path, {name: "2147483647"})

    with pytest.raises(ConfigError, match=f"{name}: must be no more than 1000"):
        running.start()
