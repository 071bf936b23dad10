"""Tokens and the users that they are for, by commands that log in: at Kavka, beside Kafka's own tool."""

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kavka.cli.main import main
from tests.support.java_tools import JavaTools
from tests.support.json_documents import document
from tests.support.kavka_process import KavkaProcess
from tests.support.processes import free_port, wait_until
from tests.support.scram_listener import HOST, jaas, with_scram_listener

TOKENS = "org.apache.kafka.tools.DelegationTokenCommand"
WAIT_S = 60


class Broker:
    """A Kavka with a SCRAM listener, and files by which users log in there."""

    def __init__(self, process: KavkaProcess, scram_port: int, directory: Path) -> None:
        self.process = process
        self.bootstrap = f"{HOST}:{scram_port}"
        self._directory = directory

    def file(self, user: str, password: str, *, by_token: bool = False) -> Path:
        """Of client settings, for Java's clients and ours."""
        path = self._directory / f"{user}.properties"
        lines = ("security.protocol=SASL_PLAINTEXT", "sasl.mechanism=SCRAM-SHA-256")
        path.write_text("\n".join([*lines, f"sasl.jaas.config={jaas(user, password, by_token=by_token)}"]))
        return path


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    directory = tmp_path_factory.mktemp("tokens")
    port, scram_port = free_port(), free_port()
    settings = {**with_scram_listener(port, scram_port), "delegation.token.secret.key": "of-this-test"}
    secret = directory / "secret"
    with KavkaProcess(directory / "kavka", settings) as process:
        for user in ("alice", "bob"):
            secret.write_text(f"{user}-secret")
            words = ["--user", user, "--mechanism", "SCRAM-SHA-256", "--password-file", str(secret)]
            assert main(["users", "add", *words, "--bootstrap-server", process.bootstrap]) == 0
        yield Broker(process, scram_port, directory)


@pytest.fixture
def run(broker: Broker, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs `kavka tokens ...` as a user, and gives its output, or its JSON rows."""

    def run_as(file: Path, *words: str, shows: bool = True) -> Any:
        capsys.readouterr()
        output = ("--output", "json") if shows else ()
        code = main(["tokens", *words, "--bootstrap-server", broker.bootstrap, "--command-config", str(file), *output])
        printed = capsys.readouterr()
        assert code == 0, printed.err
        return document("tokens", printed.out) if shows else printed.out

    return run_as


def test_a_token_is_made_used_renewed_and_ended_by_commands(broker: Broker, run: Any) -> None:
    alice, bob = broker.file("alice", "alice-secret"), broker.file("bob", "bob-secret")
    (token,) = run(alice, "create", "--renewer-principal", "User:bob", "--max-life-time-period", "7200000")
    assert (token["owner"], token["requester"]) == ("User:alice", "User:alice")
    assert token["max_timestamp_ms"] - token["issue_timestamp_ms"] == 7_200_000

    by_token = broker.file(token["token_id"], token["hmac"], by_token=True)
    assert main(["topics", "list", "--bootstrap-server", broker.bootstrap, "--command-config", str(by_token)]) == 0
    assert [row["token_id"] for row in run(alice, "describe", "--owner-principal", "User:alice")] == [token["token_id"]]
    run(bob, "renew", "--hmac", token["hmac"], "--renew-time-period", "3600000", shows=False)
    (renewed,) = run(bob, "describe", "--owner-principal", "User:alice")
    assert renewed["expiry_timestamp_ms"] <= token["max_timestamp_ms"]
    run(alice, "expire", "--hmac", token["hmac"], shows=False)
    assert run(alice, "describe", "--owner-principal", "User:alice") == []
    assert main(["topics", "list", "--bootstrap-server", broker.bootstrap, "--command-config", str(by_token)]) != 0


@pytest.mark.java
def test_kafkas_tool_makes_and_ends_tokens_at_kavka(broker: Broker, run: Any, tools39: JavaTools) -> None:
    alice = broker.file("alice", "alice-secret")

    def tool(*words: str) -> str:
        return tools39.run(TOKENS, "--bootstrap-server", broker.bootstrap, "--command-config", alice, *words)

    created = tool("--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob")
    found = re.search(
        r"^(?P<id>\S{22})\s+(?P<hmac>\S{80,})\s+User:alice\s+User:alice\s+\[User:bob\]", created, re.MULTILINE
    )
    assert found is not None, created
    (ours,) = run(alice, "describe", "--owner-principal", "User:alice")
    assert (ours["token_id"], ours["hmac"]) == (found["id"], found["hmac"])
    assert "Completed renew operation" in tool("--renew", "--renew-time-period", "-1", "--hmac", found["hmac"])
    assert found["id"] in tool("--describe", "--owner-principal", "User:alice")
    assert "Completed expire operation" in tool("--expire", "--expiry-time-period", "-1", "--hmac", found["hmac"])
    wait_until(lambda: run(alice, "describe", "--owner-principal", "User:alice") == [], WAIT_S, "the token stays")


def test_no_secret_is_in_the_brokers_log(broker: Broker, run: Any) -> None:
    alice = broker.file("alice", "alice-secret")
    (token,) = run(alice, "create")
    wrong = broker.file("alice-2", "wrong-secret")
    assert main(["topics", "list", "--bootstrap-server", broker.bootstrap, "--command-config", str(wrong)]) != 0

    logged = broker.process.process.log_text()

    shown = [json.dumps(base64.b64decode(token["hmac"]).decode("latin-1"))[1:-1], token["hmac"]]
    for secret in ("alice-secret", "bob-secret", "wrong-secret", "of-this-test", *shown):
        assert secret not in logged
