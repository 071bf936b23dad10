"""`kavka broker --ephemeral`: it says where it is, lives as long as who started it wants, and leaves nothing."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kavka.client import Producer
from tests.support.java_programs import java_command
from tests.support.other_clients import go_client, node_client, run_client
from tests.support.processes import wait_until

TIMEOUT_S = 120
STARTER = """
import subprocess, sys, time
broker = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
print(broker.stdout.readline(), end="", flush=True)
sys.stdin.read()
"""
COMMAND = [sys.executable, "-m", "kavka", "broker", "--ephemeral"]


@pytest.fixture
def temporary(tmp_path: Path) -> Iterator[Path]:
    """Where brokers have their directories: nothing is to be left there."""
    yield tmp_path
    assert list(tmp_path.iterdir()) == []


def begun(command: list[str], temporary: Path) -> tuple[subprocess.Popen[str], dict[str, object]]:
    environment = {**os.environ, "TMPDIR": str(temporary), "KAFKA_BROKER_ID": "77", "KAFKA_LISTENERS": "nonsense"}
    broker = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    assert broker.stdout is not None
    line = broker.stdout.readline()
    if not line:
        raise AssertionError(broker.communicate()[1])
    return broker, json.loads(line)


def test_it_ends_with_its_standard_input_and_leaves_nothing(temporary: Path) -> None:
    broker, said = begun(COMMAND, temporary)
    assert said["pid"] == broker.pid
    with Producer(bootstrap_servers=said["bootstrap_servers"]) as producer:
        producer.send("orders", b"x").result(60)
    assert len(list(temporary.iterdir())) == 1
    output, complaints = broker.communicate("whatever comes in is nothing to it\n", timeout=TIMEOUT_S)
    assert (broker.returncode, output, complaints) == (0, "", "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_as_well(temporary: Path, number: signal.Signals) -> None:
    broker, _ = begun([*COMMAND, "--override", "num.partitions=3"], temporary)
    broker.send_signal(number)
    assert broker.wait(TIMEOUT_S) == 0
    broker.communicate()


def test_it_says_where_each_of_several_listeners_is(temporary: Path) -> None:
    words = ["--override", "listeners=PLAINTEXT://127.0.0.1:0,OTHER://127.0.0.1:0"]
    words += ["--override", "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT"]
    broker, said = begun([*COMMAND, *words], temporary)
    listeners = said["listeners"]
    assert isinstance(listeners, dict)
    assert list(listeners) == ["PLAINTEXT", "OTHER"]
    assert listeners["PLAINTEXT"] == said["bootstrap_servers"] != listeners["OTHER"]
    with Producer(bootstrap_servers=listeners["OTHER"]) as producer:
        producer.send("orders", b"x").result(60)
    broker.communicate(timeout=TIMEOUT_S)


def test_it_goes_with_who_started_it_even_when_that_is_killed(temporary: Path) -> None:
    starter, said = begun([sys.executable, "-c", STARTER, *COMMAND, "--brokers", "3"], temporary)
    assert str(said["bootstrap_servers"]).count(",") == 2
    starter.kill()
    starter.communicate()
    broker = Path(f"/proc/{said['pid']}")
    wait_until(lambda: not broker.exists() or "Z" in _state(broker), TIMEOUT_S, lambda: "the broker is there still")
    wait_until(lambda: not list(temporary.iterdir()), TIMEOUT_S, lambda: "its directory is there still")


@pytest.mark.parametrize(
    ("flags", "code", "reason"),
    [
        (["--override", "num.partitions"], 1, "NAME=VALUE"),
        (["--override", "num.partitions=none"], 1, "num.partitions"),
        (["server.properties"], 2, "--override"),
        (["--brokers", "0"], 2, "--brokers"),
    ],
)
def test_what_cannot_be_is_said_on_one_line(temporary: Path, flags: list[str], code: int, reason: str) -> None:
    done = subprocess.run(
        [*COMMAND, *flags],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        env={**os.environ, "TMPDIR": str(temporary)},
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (code, "", 1)
    assert reason in done.stderr


@pytest.fixture(scope="module")
def kavka(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The command, as it is on other projects' paths."""
    command = tmp_path_factory.mktemp("bin") / "kavka"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m kavka "$@"\n')
    command.chmod(0o755)
    return str(command)


@pytest.mark.java
def test_a_java_test_has_a_broker(kavka: str) -> None:
    assert run_client(java_command("EphemeralBroker"), kavka) == ["java", "0"]


def test_a_go_test_has_a_broker(kavka: str) -> None:
    assert run_client([go_client("ephemeral")], kavka) == ["go", "0"]


def test_a_node_test_has_a_broker(kavka: str) -> None:
    assert run_client(node_client("ephemeral"), kavka) == ["node", "0"]


def _state(process: Path) -> str:
    try:
        return (process / "stat").read_text().rpartition(")")[2]
    except OSError:
        return "Z"
