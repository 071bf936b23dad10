"""ACLs, quotas, users and tokens, where there is an authorizer, beside what Kafka's own tools say of them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kavka.cli.main import main
from tests.integration.cli.conftest import Kavka
from tests.integration.conftest import TESTED
from tests.support import maven
from tests.support.acl_flags import COUNT, FILTERS, GIVEN, listed
from tests.support.client_brokers import ALL
from tests.support.java_tools import JavaTools
from tests.support.json_documents import document
from tests.support.processes import wait_until
from tests.support.server import RunningServer

WAIT_S = 60
AUTHORIZERS = {
    "kavka": "kafka.security.authorizer.AclAuthorizer",
    "kafka-3.9": "kafka.security.authorizer.AclAuthorizer",
    "kafka-4.3": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
}
TOOLS = {"kavka": "tools39", "kafka-3.9": "tools39", "kafka-4.3": "tools43"}
ACL_COMMANDS = {"tools39": "kafka.admin.AclCommand", "tools43": "org.apache.kafka.tools.AclCommand"}
CONFIGS = "kafka.admin.ConfigCommand"
TOKENS = "org.apache.kafka.tools.DelegationTokenCommand"


@pytest.fixture(scope="module", params=ALL)
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A broker whose ACLs hold for everybody but us."""
    kind: str = request.param
    maven.classpath("kafka-3.9" if kind == "kavka" else kind)
    settings = {
        "authorizer.class.name": AUTHORIZERS[kind],
        "super.users": "User:ANONYMOUS",
        "delegation.token.secret.key": "of-this-test",
    }
    with TESTED[kind](tmp_path_factory.mktemp("secured"), settings) as server:
        yield server


@pytest.fixture
def tool(broker: RunningServer, request: pytest.FixtureRequest) -> Any:
    """Kafka's tools of the broker's own version; Kavka's is 3.9's."""
    tools: JavaTools = request.getfixturevalue(TOOLS[broker.name])

    def run(command: str, *words: str | Path) -> str:
        return tools.run(command, "--bootstrap-server", broker.bootstrap, *words)

    return run


def acls(run: Kavka, *words: str) -> list[tuple[str, ...]]:
    rows = document("acls", run("acls", "list", *words, "--output", "json").out)
    return [tuple(row.values()) for row in rows]


def test_acls_are_what_kafkas_tool_makes_of_the_same_flags(broker: RunningServer, run: Kavka, tool: Any) -> None:
    acl_command = ACL_COMMANDS[TOOLS[broker.name]]
    for words in GIVEN:
        assert run("acls", "add", *words).code == 0
    wait_until(lambda: len(acls(run)) == COUNT, WAIT_S, lambda: str(acls(run)))
    ours = set(acls(run))
    assert ours == listed(tool(acl_command, "--list"))
    for words in FILTERS:
        assert set(acls(run, *words)) == listed(tool(acl_command, "--list", *words))
    assert {words: len(acls(run, *words)) for words in FILTERS} == FILTERS

    for words in GIVEN:
        removed = run("acls", "remove", *words, "--force", "--output", "json")
        assert (removed.code, len(document("acls", removed.out)) > 0) == (0, True)
    wait_until(lambda: acls(run) == [], WAIT_S, lambda: str(acls(run)))
    for words in GIVEN:
        tool(acl_command, "--add", *words)
    wait_until(lambda: set(acls(run)) == ours, WAIT_S, lambda: str(set(acls(run)) ^ ours))
    # Without principals: all there is of the resource.
    assert len(document("acls", run("acls", "remove", "--cluster", "--force", "--output", "json").out)) == 3
    wait_until(lambda: "CLUSTER" not in {row[0] for row in acls(run)}, WAIT_S, lambda: str(acls(run)))


def quotas(run: Kavka, *words: str) -> list[Any]:
    found = run("quotas", "describe", *words, "--output", "json")
    assert found.code == 0
    return document("quotas", found.out)


def test_quotas_are_set_as_kafkas_tool_shows_them_and_the_most_specific_one_holds(run: Kavka, tool: Any) -> None:
    alter = ("quotas", "alter", "--add-config")
    assert run(*alter, "producer_byte_rate=100,consumer_byte_rate=200", "--user", "alice").code == 0
    assert run(*alter, "producer_byte_rate=50", "--user", "alice", "--client", "app").code == 0
    assert run(*alter, "request_percentage=12.5", "--entity-type", "clients", "--entity-default").code == 0
    assert run(*alter, "connection_creation_rate=7", "--ip", "127.0.0.9").code == 0
    wait_until(lambda: len(quotas(run)) == 4, WAIT_S, lambda: str(quotas(run)))
    shown = tool(CONFIGS, "--describe", "--entity-type", "users", "--entity-name", "alice")
    assert re.search("Quota configs for user-principal 'alice' are .*producer_byte_rate=100.0", shown)
    assert quotas(run, "--entity-type", "users", "--entity-name", "alice") == [
        {"entity": {"user": "alice"}, "quotas": {"consumer_byte_rate": 200, "producer_byte_rate": 100}}
    ]
    both = tool(CONFIGS, "--describe", "--user", "alice", "--client", "app")
    assert "Quota configs for user-principal 'alice', client-id 'app' are producer_byte_rate=50.0" in both
    assert quotas(run, "--user", "alice", "--client", "app")[0]["quotas"] == {"producer_byte_rate": 50}
    assert "Quota configs for the default client-id are request_percentage=12.5" in tool(
        CONFIGS, "--describe", "--client-defaults"
    )
    resolved = document(
        "quotas-resolve", run("quotas", "resolve", "--user", "alice", "--client", "app", "--output", "json").out
    )
    assert [(row["quota"], row["value"], row["entity"]) for row in resolved] == [
        ("consumer_byte_rate", 200, {"user": "alice"}),
        ("producer_byte_rate", 50, {"user": "alice", "client-id": "app"}),
        ("request_percentage", 12.5, {"client-id": None}),
    ]
    assert run("quotas", "alter", "--user", "alice", "--add-config", "nonsense=1").code == 1
    assert run("quotas", "alter", "--user", "bob", "--add-config", "producer_byte_rate=1", "--dry-run").code == 0
    for words in (
        ("--user", "alice", "--delete-config", "producer_byte_rate,consumer_byte_rate"),
        ("--user", "alice", "--client", "app", "--delete-config", "producer_byte_rate"),
        ("--client-defaults", "--delete-config", "request_percentage"),
        ("--ip", "127.0.0.9", "--delete-config", "connection_creation_rate"),
    ):
        assert run("quotas", "alter", *words).code == 0
    wait_until(lambda: quotas(run) == [], WAIT_S, lambda: str(quotas(run)))


def test_users_get_change_and_lose_passwords(run: Kavka, tool: Any, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("secret\n")
    given = ("--user", "alice", "--password-file", str(file))

    def users() -> list[tuple[Any, ...]]:
        rows = document("users-list", run("users", "list", "--output", "json").out)
        return [tuple(row.values()) for row in rows]

    assert run("users", "alter", *given).err == (
        "kavka users alter: user alice has no password; kavka users add gives it one\n"
    )
    both = ("--mechanism", "SCRAM-SHA-256", "--mechanism", "SCRAM-SHA-512")
    assert run("users", "add", *given, *both, "--iterations", "8192").code == 0
    wanted = [("alice", "SCRAM-SHA-256", 8192), ("alice", "SCRAM-SHA-512", 8192)]
    wait_until(lambda: users() == wanted, WAIT_S, lambda: str(users()))
    shown = tool(CONFIGS, "--describe", "--entity-type", "users", "--entity-name", "alice")
    assert re.search("'alice' are .*SCRAM-SHA-256=iterations=8192", shown)
    assert run("users", "add", *given).err.startswith(
        "kavka users add: user alice has a password for SCRAM-SHA-512; kavka users alter"
    )
    assert run("users", "alter", *given).code == 0
    wait_until(lambda: {row[2] for row in users()} == {4096}, WAIT_S, lambda: str(users()))
    assert run("users", "delete", "--user", "alice", "--mechanism", "SCRAM-SHA-256").code == 0
    wait_until(lambda: users() == [("alice", "SCRAM-SHA-512", 4096)], WAIT_S, lambda: str(users()))
    gone = run("users", "delete", "--user", "bob", "--mechanism", "SCRAM-SHA-256")
    assert (gone.code, gone.err.count("\n"), gone.err.startswith("kavka users delete: ")) == (1, 1, True)
    assert run("users", "delete", "--user", "alice", "--mechanism", "SCRAM-SHA-512").code == 0
    wait_until(lambda: users() == [], WAIT_S, lambda: str(users()))


def test_tokens_are_refused_to_whom_the_broker_does_not_know_in_one_line(run: Kavka) -> None:
    """As Kafka's own tool is, which shows a stack trace; our client cannot prove who it is yet."""
    for words in (
        ("create", "--max-life-time-period", "60000"),
        ("renew", "--hmac", "c2VjcmV0"),
        ("expire", "--hmac", "c2VjcmV0"),
        ("describe",),
    ):
        done = run("tokens", *words)
        assert (done.code, done.out) == (1, "")
        (line,) = done.err.splitlines()
        assert line.startswith(f"kavka tokens {words[0]}: Delegation token request not allowed."), line


@pytest.mark.parametrize(
    "words",
    [
        ("acls", "list"),
        ("acls", "add", "--allow-principal", "User:alice", "--topic", "orders"),
        ("acls", "remove", "--topic", "orders", "--force"),
    ],
    ids=" ".join,
)
def test_a_broker_without_an_authorizer_says_so_in_one_line(
    kavka: RunningServer, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "--bootstrap-server", kavka.bootstrap]) == 1
    printed = capsys.readouterr()
    (line,) = printed.err.splitlines()
    assert not printed.out
    assert line.startswith(f"kavka {' '.join(words[:2])}: ")
    assert line.endswith(": No Authorizer is configured on the broker")
