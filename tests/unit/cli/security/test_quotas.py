"""`kavka quotas ...`: whom flags name, what is set, and which of several quotas holds."""

from unittest.mock import MagicMock

import pytest

from kavka.cli.main import main
from kavka.cli.quotas.resolving import resolved
from kavka.client.admin import ClientQuotaEntity, QuotaMatch
from tests.support.json_documents import assert_golden

of = ClientQuotaEntity.of
BYTES = "producer_byte_rate"


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ([], {}),
        (["--user", "alice"], {"user": "alice"}),
        (["--user-defaults", "--client", "app"], {"user": QuotaMatch.DEFAULT, "client-id": "app"}),
        (["--entity-type", "users"], {"user": QuotaMatch.ANY}),
        (
            ["--entity-type", "clients", "--entity-type", "users", "--entity-default", "--entity-name", "alice"],
            {"client-id": QuotaMatch.DEFAULT, "user": "alice"},
        ),
        (
            ["--entity-type", "users", "--entity-name", "a", "--entity-type", "clients"],
            {"user": "a", "client-id": QuotaMatch.ANY},
        ),
        (["--ip", "10.0.0.1"], {"ip": "10.0.0.1"}),
    ],
)
def test_flags_name_whom_quotas_are_for(admin: MagicMock, words: list[str], wanted: dict[str, object]) -> None:
    admin.describe_client_quotas.return_value = {}
    assert main(["quotas", "describe", *words]) == 0
    admin.describe_client_quotas.assert_called_once_with(wanted, strict=bool(wanted))


def test_quotas_are_shown_by_whom_they_are_for(admin: MagicMock, capsys: pytest.CaptureFixture[str]) -> None:
    admin.describe_client_quotas.return_value = {
        of(user="alice", client_id=None): {BYTES: 1048576.0, "request_percentage": 12.5},
        of(ip="10.0.0.1"): {"connection_creation_rate": 7.0},
    }
    assert main(["quotas", "describe"]) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["USER", "CLIENT-ID", "IP", "QUOTA", "VALUE"],
        ["-", "-", "10.0.0.1", "connection_creation_rate", "7"],
        ["alice", "<default>", "-", BYTES, "1048576"],
        ["alice", "<default>", "-", "request_percentage", "12.5"],
    ]
    assert main(["quotas", "describe", "--output", "json"]) == 0
    assert_golden("quotas", capsys.readouterr().out)


def test_quotas_are_set_and_removed_in_one_request(admin: MagicMock) -> None:
    words = ["--user", "alice", "--client-defaults", "--add-config", f"{BYTES}=1024, consumer_byte_rate=2"]
    assert main(["quotas", "alter", *words, "--delete-config", "request_percentage", "--dry-run"]) == 0
    changes = {BYTES: 1024.0, "consumer_byte_rate": 2.0, "request_percentage": None}
    admin.alter_client_quotas.assert_called_once_with({of(user="alice", client_id=None): changes}, validate_only=True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--add-config", f"{BYTES}=1"], "whose quotas? give --user, --client, --ip or their defaults"),
        (["--entity-type", "users", "--add-config", f"{BYTES}=1"], "whose quotas?"),
        (["--user", "a"], "nothing is to change: give --add-config or --delete-config"),
        (["--user", "a", "--add-config", BYTES], "NAME=NUMBER is expected, such as producer_byte_rate=1048576"),
        (["--user", "a", "--add-config", f"{BYTES}=much"], f"--add-config {BYTES}=much: NAME=NUMBER is expected"),
        (["--user", "a", "--add-config", f"{BYTES}=nan"], "NAME=NUMBER is expected"),
        (["--user", "a", "--add-config", f"{BYTES}=1", "--delete-config", BYTES], "cannot be set and deleted at once"),
        (["--user", "a", "--ip", "b", "--delete-config", BYTES], "an ip's quotas are for no user and no client"),
        (["--user", "a", "--user-defaults", "--delete-config", BYTES], "user is there twice"),
        (
            ["--user", "a", "--entity-type", "users", "--entity-name", "b", "--delete-config", BYTES],
            "user is there twice",
        ),
        (["--entity-name", "a", "--delete-config", BYTES], "each --entity-name and --entity-default needs"),
        (["--entity-type", "topics", "--delete-config", BYTES], "invalid choice: 'topics'"),
        (["--user", "a", "--delete-config", "SCRAM-SHA-256"], "SCRAM-SHA-256 is no quota; kavka users has passwords"),
    ],
)
def test_what_is_wrong_is_one_line(
    admin: MagicMock, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert main(["quotas", "alter", *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
    admin.alter_client_quotas.assert_not_called()


ALL = [
    of(user="alice", client_id="app"),
    of(user="alice", client_id=None),
    of(user="alice"),
    of(user=None, client_id="app"),
    of(user=None, client_id=None),
    of(user=None),
    of(client_id="app"),
    of(client_id=None),
]
"""Kafka's order, the most specific first."""


@pytest.mark.parametrize("first", range(len(ALL)))
def test_the_most_specific_quota_holds(first: int) -> None:
    quotas = {entity: {BYTES: float(index)} for index, entity in enumerate(ALL) if index >= first}
    (found,) = resolved(quotas, {"user": "alice", "client-id": "app"})
    assert (found.value, found.entity) == (first, ALL[first])


def test_each_quota_is_resolved_by_itself_and_others_quotas_do_not_hold() -> None:
    quotas = {
        of(user="alice"): {BYTES: 1.0},
        of(user=None): {BYTES: 2.0, "request_percentage": 3.0},
        of(user="bob"): {"consumer_byte_rate": 4.0},
        of(ip="10.0.0.1"): {"connection_creation_rate": 5.0},
        of(ip=None): {"connection_creation_rate": 6.0},
    }
    assert [(each.name, each.value) for each in resolved(quotas, {"user": "alice", "client-id": None})] == [
        (BYTES, 1.0),
        ("request_percentage", 3.0),
    ]
    assert [each.value for each in resolved(quotas, {"ip": "10.0.0.1"})] == [5.0]
    assert [each.value for each in resolved(quotas, {"ip": "10.0.0.2"})] == [6.0]


def test_what_holds_is_shown_with_whose_it_is(admin: MagicMock, capsys: pytest.CaptureFixture[str]) -> None:
    admin.describe_client_quotas.return_value = {of(user=None): {BYTES: 2.0}, of(client_id="app"): {BYTES: 1.0}}
    words = ["quotas", "resolve", "--user", "alice", "--client", "app"]
    assert main(words) == 0
    assert capsys.readouterr().out.splitlines()[1].split() == [BYTES, "2", "<default>", "-", "-"]
    assert main([*words, "--output", "json"]) == 0
    assert_golden("quotas-resolve", capsys.readouterr().out)
    for wrong in (["--ip", "a", "--user", "b"], []):
        assert main(["quotas", "resolve", *wrong]) == 2
