"""What a wrong setting, directory or address says to the operator who starts the broker, and that it exits with 1."""

import os
import socket
import subprocess
from pathlib import Path

import pytest

from tests.support.kavka_process import KAVKA, KavkaProcess

TIMEOUT_S = 60.0


@pytest.mark.parametrize(
    ("name", "value", "expectation"),
    [
        ("num.io.threads", "many", "type INT"),
        ("num.io.threads", "0", "at least 1"),
        ("log.segment.bytes", "13", "at least 14"),
        ("listeners", "PLAINTEXT://:port", "port"),
        ("compression.type", "brotli", "gzip"),
        ("log.cleanup.policy", "shred", "delete"),
        ("auto.create.topics.enable", "perhaps", "true"),
        ("log.dirs", "", "log.dirs"),
        ("authorizer.class.name", "com.example.Authorizer", "Java class"),
    ],
)
def test_a_bad_value_stops_the_start_with_its_name_the_value_and_what_is_expected(
    tmp_path: Path, name: str, value: str, expectation: str
) -> None:
    code, output = start(tmp_path, {name: value})

    (complaint,) = output.splitlines()
    assert code == 1
    assert complaint.startswith("kavka: ")
    assert name in complaint
    assert value in complaint
    assert expectation in complaint
    assert not (tmp_path / "data").exists()


def test_a_bad_value_in_the_environment_stops_the_start_too(tmp_path: Path) -> None:
    code, output = start(tmp_path, {}, {"KAFKA_LOG_RETENTION_MS": "soon"})

    assert code == 1
    assert "log.retention.ms" in output
    assert "soon" in output


def test_a_log_level_that_does_not_exist_stops_the_start(tmp_path: Path) -> None:
    code, output = start(tmp_path, {}, {"KAVKA_LOG_LEVEL": "loud"})

    (complaint,) = output.splitlines()
    assert code == 1
    assert complaint.startswith("kavka: KAVKA_LOG_LEVEL: 'loud' is no log level; expected one of TRACE, DEBUG")


def test_a_settings_file_that_is_missing_stops_the_start(tmp_path: Path) -> None:
    code, output = start(tmp_path, {}, arguments=[str(tmp_path / "nowhere.properties")])

    assert code == 1
    assert "nowhere.properties" in output


def test_a_settings_file_that_is_a_program_stops_the_start(tmp_path: Path) -> None:
    code, output = start(tmp_path, {}, arguments=["/bin/ls"])

    (complaint,) = output.splitlines()
    assert code == 1
    assert complaint.startswith("kavka: /bin/ls, line 1: expected name=value")
    assert not (tmp_path / "data").exists()


def test_unknown_settings_warn_and_each_that_has_no_effect_is_named_with_the_reason(tmp_path: Path) -> None:
    settings = {
        "log.retention.mss": "5",
        "my.own.setting": "5",
        "log.cleaner.dedupe.buffer.size": "134217728",
        "remote.log.manager.thread.pool.size": "10",
        "listener.name.plaintext.ssl.keystore.password": "secret",
    }
    with KavkaProcess(tmp_path, settings) as broker:
        lines = broker.process.log_text().splitlines()

    unknown = [line for line in lines if "unknown setting" in line]
    useless = [line for line in lines if "has no effect" in line]
    assert len(unknown) == 2
    assert "name=log.retention.mss" in unknown[0]
    assert "nearest=log.retention.ms" in unknown[0]
    assert "name=my.own.setting" in unknown[1]
    assert "nearest" not in unknown[1]
    (line,) = useless
    assert "name=remote.log.manager.thread.pool.size" in line
    assert "no tiered storage" in line
    assert not [line for line in lines if "secret" in line]


def test_a_port_in_use_stops_the_start(tmp_path: Path) -> None:
    with KavkaProcess(tmp_path / "first") as first:
        code, output = start(tmp_path, {"listeners": f"PLAINTEXT://127.0.0.1:{first.port}"})

        assert code == 1
        assert "in use" in output
        assert str(first.port) in output


def test_a_port_of_the_metrics_in_use_stops_the_start_and_names_the_setting(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, output = start(tmp_path, {"metrics.host": "127.0.0.1", "metrics.port": str(port)})

    (complaint,) = output.splitlines()
    assert code == 1
    assert (
        f"metrics cannot be served at metrics.host=127.0.0.1 metrics.port={port}: Address already in use" in complaint
    )


def test_a_second_broker_on_the_same_directory_stops_and_leaves_the_first_alone(tmp_path: Path) -> None:
    with KavkaProcess(tmp_path) as first:
        code, output = start(tmp_path, {})

        assert code == 1
        assert "in use by another broker" in output
        assert str(first.log_dir) in output
        first.process.check_alive()
        assert not (first.log_dir / ".kafka_cleanshutdown").exists()
    with KavkaProcess(tmp_path) as again:
        assert "recover" not in again.process.log_text()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("version=0\nbroker.id=abc\n", "broker.id"),
        ("version=7\nbroker.id=1\n", "version"),
        ("\x00\x00\x00\x00", "line 1"),
        ("", "version"),
        ("version=1\nnode.id=1\ncluster.id=MkU3OEVBNTcwNTJENDM2Qg\n", "KRaft"),
    ],
    ids=["not a number", "future version", "zeros", "empty", "kraft"],
)
def test_meta_properties_that_make_no_sense_stop_the_start(tmp_path: Path, text: str, reason: str) -> None:
    with KavkaProcess(tmp_path):
        pass
    meta = tmp_path / "data" / "meta.properties"
    meta.write_text(text)

    code, output = start(tmp_path, {})

    assert code == 1
    assert str(meta) in output
    assert reason in output
    assert meta.read_text() == text


def test_a_kraft_directory_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "data" / "__cluster_metadata-0").mkdir(parents=True)

    code, output = start(tmp_path, {})

    assert code == 1
    assert "KRaft" in output
    assert str(tmp_path / "data") in output


def test_another_brokers_directory_is_refused(tmp_path: Path) -> None:
    with KavkaProcess(tmp_path, {"broker.id": "1"}):
        pass

    code, output = start(tmp_path, {"broker.id": "2"})

    assert code == 1
    assert "broker.id is 2" in output


def start(
    directory: Path, overrides: dict[str, str], env: dict[str, str] | None = None, arguments: list[str] | None = None
) -> tuple[int, str]:
    """Start a broker that is not to serve: its exit code and what it printed, log lines below WARNING left out."""
    settings = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(directory / "data"), **overrides}
    command = [str(KAVKA), "broker", *(arguments or [])]
    for name, value in settings.items():
        command += ["--override", f"{name}={value}"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("KAFKA_")}
    done = subprocess.run(
        command,
        env={**clean, "KAVKA_LOG_LEVEL": "WARNING", **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert "Traceback" not in done.stdout
    return done.returncode, done.stdout
