"""`kavka storage settings`: what was changed at run time keeps no broker from starting for good."""

import socket
from pathlib import Path

import pytest

from kavka.broker.server import StartError
from kavka.cli.main import main
from kavka.cluster.znodes.config import EntityConfig
from kavka.config.topic_config import UNREADABLE
from kavka.protocol.errors import ErrorCode
from tests.support.probe import answers
from tests.support.processes import free_port
from tests.support.registries import new_root
from tests.support.running_broker import BROKER_ID, HOST, RunningBroker
from tests.support.zookeeper_process import ZooKeeperProcess

Output = pytest.CaptureFixture[str]


def settings(directory: Path, *arguments: str) -> int:
    return main(["storage", "settings", "--override", f"log.dirs={directory}", *arguments])


def test_a_listener_whose_address_is_gone_is_named_and_can_be_deleted(tmp_path: Path, capsys: Output) -> None:
    running = RunningBroker(tmp_path)
    port = free_port()
    listeners = f"PLAINTEXT://{HOST}:{running.port},OTHER://{HOST}:{port}"
    names = "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT"
    with running:
        changes = {"listeners": listeners, "listener.security.protocol.map": names, "num.io.threads": "3"}
        assert running.alter(changes).error_code == ErrorCode.NONE
        assert running.alter({"log.retention.ms": "1000"}, name="").error_code == ErrorCode.NONE
        assert settings(tmp_path) == 1
        assert "in use by another broker" in capsys.readouterr().err

    with (
        socket.create_server((HOST, port)),
        pytest.raises(StartError, match=r"listener OTHER .*kavka storage settings --delete listeners"),
    ):
        running.start()

    assert settings(tmp_path) == 0
    assert f"broker {BROKER_ID}: listeners={listeners}" in capsys.readouterr().out.splitlines()
    assert settings(tmp_path, "--delete", "listeners") == 0
    assert capsys.readouterr().out.splitlines() == [
        f"broker {BROKER_ID}: listener.security.protocol.map={names}",
        f"broker {BROKER_ID}: num.io.threads=3",
        "broker <default>: log.retention.ms=1000",
    ]
    with running:
        assert answers(HOST, running.port)
        assert running.described()["num.io.threads"][0] == "3"


def test_a_name_that_is_not_kept_changes_nothing(tmp_path: Path, capsys: Output) -> None:
    with RunningBroker(tmp_path) as running:
        assert running.alter({"num.io.threads": "3"}).error_code == ErrorCode.NONE

    assert settings(tmp_path, "--delete", "num.io.threads", "--delete", "num.io.thread") == 1
    assert "num.io.thread" in capsys.readouterr().err
    assert settings(tmp_path) == 0
    assert capsys.readouterr().out == f"broker {BROKER_ID}: num.io.threads=3\n"
    assert settings(tmp_path, "--delete", "num.io.threads") == 0
    assert capsys.readouterr().out == "no settings\n"


def test_a_directory_without_a_registry_is_left_alone(tmp_path: Path, capsys: Output) -> None:
    assert settings(tmp_path / "nothing") == 1

    assert "its first directory must have the file" in capsys.readouterr().err
    assert not (tmp_path / "nothing").exists()


def test_settings_that_cannot_be_read_stop_the_start_until_they_are_deleted(tmp_path: Path, capsys: Output) -> None:
    with RunningBroker(tmp_path) as running:
        assert running.alter({"max.connections": "30"}).error_code == ErrorCode.NONE
        running.broker.services.registry.set(EntityConfig.path(f"brokers/{BROKER_ID}"), b"{")
        running.errors.expect("the old configuration stays", "the configuration is left out")

        with pytest.raises(StartError, match=rf"/config/brokers/{BROKER_ID}.* settings --delete '{UNREADABLE}' takes"):
            running.restart()
        assert settings(tmp_path) == 0
        assert f"broker {BROKER_ID}: {UNREADABLE} /config/brokers/{BROKER_ID}" in capsys.readouterr().out
        assert settings(tmp_path, "--delete", UNREADABLE) == 0

        running.start()
        assert answers(HOST, running.port)
        assert running.described()["max.connections"][0] != "30"


@pytest.mark.integration
@pytest.mark.java
def test_settings_that_are_kept_in_zookeeper_are_deleted_there(
    tmp_path: Path, capsys: Output, zookeeper: ZooKeeperProcess
) -> None:
    connect = zookeeper.bootstrap + new_root()
    with RunningBroker(tmp_path, {"zookeeper.connect": connect}) as running:
        assert running.alter({"num.io.threads": "3"}).error_code == ErrorCode.NONE

    on_zookeeper = ("--override", f"zookeeper.connect={connect}")
    assert settings(tmp_path, *on_zookeeper) == 0
    assert capsys.readouterr().out.splitlines() == [f"broker {BROKER_ID}: num.io.threads=3"]
    assert settings(tmp_path, *on_zookeeper, "--delete", "num.io.threads") == 0
    assert capsys.readouterr().out.splitlines() == ["no settings"]
    with RunningBroker(tmp_path, {"zookeeper.connect": connect}) as running:
        assert running.described()["num.io.threads"][0] != "3"
