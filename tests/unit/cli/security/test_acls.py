"""`kavka acls ...`: flags to entries as in kafka-acls, what is refused, what is asked before it is removed."""

from unittest.mock import MagicMock

import pytest

from kavka.cli.main import main
from kavka.client import api_errors
from kavka.client.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    DeletedAcl,
    ItemErrors,
    PatternType,
    ResourceType,
)
from tests.support.json_documents import assert_golden

READ = AclBinding(ResourceType.TOPIC, "orders", "User:alice", AclOperation.READ)


def added(admin: MagicMock, *words: str) -> set[tuple[str, ...]]:
    """The entries that these flags add: resource, name, principal, operation."""
    admin.create_acls.side_effect = dict.fromkeys
    assert main(["acls", "add", *words]) == 0
    (bindings,) = admin.create_acls.call_args.args
    return {(each.resource_type.name, each.resource_name, each.principal, each.operation.name) for each in bindings}


def test_producers_and_consumers_get_what_they_need(admin: MagicMock) -> None:
    alice = ("--allow-principal", "User:alice", "--topic", "orders")
    writes = {("TOPIC", "orders", "User:alice", each) for each in ("WRITE", "DESCRIBE", "CREATE")}
    reads = {("TOPIC", "orders", "User:alice", each) for each in ("READ", "DESCRIBE")}
    group = {("GROUP", "g", "User:alice", "READ")}
    assert added(admin, *alice, "--producer") == writes
    assert added(admin, *alice, "--consumer", "--group", "g") == reads | group
    assert added(admin, *alice, "--consumer", "--producer", "--group", "g") == writes | reads | group
    assert added(admin, *alice, "--producer", "--idempotent", "--transactional-id", "t") == (
        writes
        | {("TRANSACTIONAL_ID", "t", "User:alice", each) for each in ("WRITE", "DESCRIBE")}
        | {("CLUSTER", "kafka-cluster", "User:alice", "IDEMPOTENT_WRITE")}
    )


def test_entries_say_who_from_where_may_or_may_not_do_what(admin: MagicMock) -> None:
    admin.create_acls.side_effect = dict.fromkeys
    who = ["--allow-principal", "User:a", "--deny-principal", "User:b", "--deny-host", "10.0.0.1"]
    assert main(["acls", "add", *who, "--topic", "or", "--resource-pattern-type", "PREFIXED"]) == 0
    assert admin.create_acls.call_args.args[0] == [
        AclBinding(
            ResourceType.TOPIC, "or", "User:a", AclOperation.ALL, AclPermissionType.ALLOW, "*", PatternType.PREFIXED
        ),
        AclBinding(
            ResourceType.TOPIC,
            "or",
            "User:b",
            AclOperation.ALL,
            AclPermissionType.DENY,
            "10.0.0.1",
            PatternType.PREFIXED,
        ),
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "nothing is named that entries are about: give --topic, --group, --cluster, ..."),
        (["--topic", "a"], "nobody is named: give --allow-principal or --deny-principal"),
        (["--topic", "a", "--allow-principal", "alice"], "--allow-principal alice: a principal is written Type:name"),
        (["--topic", "a", "--allow-host", "h"], "--allow-host needs a --allow-principal"),
        (["--topic", "a", "--allow-principal", "User:a", "--operation", "Fly"], "--operation Fly is none of All, Read"),
        (
            ["--group", "g", "--allow-principal", "User:a", "--operation", "Write"],
            "Write is not done to a group, only Read, Describe, Delete, DescribeConfigs, AlterConfigs, All",
        ),
        (["--topic", "a", "--resource-pattern-type", "match"], "--resource-pattern-type match is not for adding"),
        (["--topic", "a", "--resource-pattern-type", "regex"], "invalid choice: 'regex'"),
        (["--producer", "--allow-principal", "User:a"], "--producer needs a --topic"),
        (["--consumer", "--topic", "a"], "--consumer needs a --topic and a --group"),
        (["--topic", "a", "--idempotent"], "--idempotent is for --producer"),
        (["--topic", "a", "--producer", "--operation", "Read"], "do not go with --operation"),
    ],
)
def test_flags_that_do_not_go_together_are_one_line(
    admin: MagicMock, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert main(["acls", "add", *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("kavka acls add: ")
    assert message in line
    admin.create_acls.assert_not_called()


def test_entries_are_listed_once_each_in_order(admin: MagicMock, capsys: pytest.CaptureFixture[str]) -> None:
    denied = READ._replace(principal="User:\x1bbob", permission=AclPermissionType.DENY)
    admin.describe_acls.return_value = [denied, READ]
    words = ["acls", "list", "--topic", "orders", "--group", "g", "--principal", "User:alice"]
    assert main([*words, "--resource-pattern-type", "match"]) == 0
    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert shown == [
        ["RESOURCE-TYPE", "RESOURCE-NAME", "PATTERN-TYPE", "PRINCIPAL", "HOST", "OPERATION", "PERMISSION"],
        ["TOPIC", "orders", "LITERAL", "User:\\x1bbob", "*", "READ", "DENY"],
        ["TOPIC", "orders", "LITERAL", "User:alice", "*", "READ", "ALLOW"],
    ]
    assert [call.args[0] for call in admin.describe_acls.call_args_list] == [
        AclBindingFilter(kind, name, "User:alice", pattern_type=PatternType.MATCH)
        for kind, name in ((ResourceType.TOPIC, "orders"), (ResourceType.GROUP, "g"))
    ]
    assert main(["acls", "list", "--output", "json"]) == 0
    assert_golden("acls", capsys.readouterr().out)


def test_entries_are_removed_by_force_and_one_that_stays_is_a_failure(
    admin: MagicMock, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = DeletedAcl(READ._replace(principal="User:eve"), api_errors.UnknownServerError("kept"))
    whole = AclBindingFilter(ResourceType.TOPIC, "orders", pattern_type=PatternType.LITERAL)
    admin.delete_acls.return_value = {whole: [DeletedAcl(READ, None), kept]}
    assert main(["acls", "remove", "--topic", "orders", "--force"]) == 1
    admin.delete_acls.assert_called_once_with([whole])
    printed = capsys.readouterr()
    assert "User:alice" in printed.out
    assert "User:eve" not in printed.out
    assert printed.err == "kavka acls remove: kept\n"


def test_nothing_is_removed_where_nobody_can_be_asked(admin: MagicMock, capsys: pytest.CaptureFixture[str]) -> None:
    admin.describe_acls.return_value = [READ]
    assert main(["acls", "remove", "--topic", "orders"]) == 2
    admin.delete_acls.assert_not_called()
    assert capsys.readouterr().err == (
        "kavka acls remove: nobody can be asked, as standard input is no terminal; --force asks nobody\n"
    )


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 1), ("", 1)])
def test_who_is_asked_decides(
    admin: MagicMock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], answer: str, code: int
) -> None:
    admin.describe_acls.return_value = [READ]
    admin.delete_acls.return_value = {}
    terminal = MagicMock(**{"isatty.return_value": True, "readline.return_value": answer})
    monkeypatch.setattr("sys.stdin", terminal)
    assert main(["acls", "remove", "--topic", "orders"]) == code
    assert admin.delete_acls.called == (code == 0)
    assert capsys.readouterr().err == "Remove 1 entry? (y/n) "


def test_of_several_entries_those_that_are_refused_are_a_line_each(
    admin: MagicMock, capsys: pytest.CaptureFixture[str]
) -> None:
    create = READ._replace(operation=AclOperation.WRITE)
    refused = {create: api_errors.ClusterAuthorizationError("Cluster authorization failed.")}
    admin.create_acls.side_effect = ItemErrors("creating ACLs", refused, {READ: None})
    words = ["--allow-principal", "User:alice", "--topic", "orders", "--operation", "Read", "--operation", "Write"]
    assert main(["acls", "add", *words]) == 4
    printed = capsys.readouterr()
    assert len(printed.out.splitlines()) == 2
    (line,) = printed.err.splitlines()
    assert "Cluster authorization failed" in line
