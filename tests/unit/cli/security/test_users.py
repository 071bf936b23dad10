"""`kavka users ...`: passwords come from a prompt, standard input or a file, and are shown nowhere."""

import io
from pathlib import Path
from unittest.mock import MagicMock, call

import pytest

from kavka.cli.main import main
from kavka.client import api_errors
from kavka.client.admin import (
    ItemErrors,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from tests.support.json_documents import assert_golden

SHA_256, SHA_512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512
NOBODY = api_errors.ResourceNotFoundError("Attempt to describe a user credential that does not exist: alice")


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "password"
    path.write_text("geheim \nsecond line\n")
    return str(path)


def test_users_are_listed_with_their_mechanisms(admin: MagicMock, capsys: pytest.CaptureFixture[str]) -> None:
    infos = (ScramCredentialInfo(SHA_256, 8192), ScramCredentialInfo(SHA_512, 4096))
    admin.describe_user_scram_credentials.return_value = {"bob": infos[:1], "alice": infos}
    assert main(["users", "list"]) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["USER", "MECHANISM", "ITERATIONS"],
        ["alice", "SCRAM-SHA-256", "8192"],
        ["alice", "SCRAM-SHA-512", "4096"],
        ["bob", "SCRAM-SHA-256", "8192"],
    ]
    assert main(["users", "list", "--output", "json"]) == 0
    assert_golden("users-list", capsys.readouterr().out)


def test_a_user_that_is_not_there_is_a_line_and_the_others_are_shown(
    admin: MagicMock, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {"bob": (ScramCredentialInfo(SHA_256, 8192),)}
    admin.describe_user_scram_credentials.side_effect = ItemErrors("describing", {"alice": NOBODY}, found)
    assert main(["users", "list", "--user", "alice", "--user", "bob"]) == 1
    printed = capsys.readouterr()
    assert printed.out.count("bob") == 1
    assert printed.err.startswith("kavka users list: alice: ")


def test_a_password_is_the_first_line_of_a_file_or_of_standard_input(
    admin: MagicMock, file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    admin.describe_user_scram_credentials.side_effect = NOBODY
    words = ["users", "add", "--user", "alice", "--password-file"]
    assert main([*words, file, "--mechanism", "SCRAM-SHA-256", "--iterations", "8192"]) == 0
    admin.alter_user_scram_credentials.assert_called_with(
        [UserScramCredentialUpsertion("alice", SHA_256, "geheim ", 8192)]
    )
    monkeypatch.setattr("sys.stdin", io.StringIO("piped\n"))
    assert main([*words, "-"]) == 0
    admin.alter_user_scram_credentials.assert_called_with([UserScramCredentialUpsertion("alice", SHA_512, "piped")])
    assert capsys.readouterr() == ("", "")


def test_a_password_is_typed_twice(
    admin: MagicMock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    admin.describe_user_scram_credentials.return_value = {"alice": (ScramCredentialInfo(SHA_256, 4096),)}
    monkeypatch.setattr("sys.stdin", MagicMock(**{"isatty.return_value": True}))
    typed = iter(["one", "one", "one", "two", ""])
    monkeypatch.setattr("getpass.getpass", lambda _prompt: next(typed))
    words = ["users", "alter", "--user", "alice"]
    assert main(words) == 0
    # Of the mechanism that the user has one for.
    admin.alter_user_scram_credentials.assert_called_once_with([UserScramCredentialUpsertion("alice", SHA_256, "one")])
    assert [main(words), main(words)] == [1, 1]
    assert capsys.readouterr().err.splitlines() == [
        "kavka users alter: the two are not the same",
        "kavka users alter: no password was typed",
    ]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (
            ["add", "--user", "a"],
            2,
            "nobody can be asked for the password, as standard input is no terminal; --",
        ),
        (["add", "--user", "a", "--password-file", "/none"], 1, "/none: No such file or directory"),
        (["add", "--user", "a", "--password-file", "/dev/null"], 1, "no password in /dev/null"),
        (["add", "--user", "a", "--password", "p"], 2, "unrecognized arguments: --password p"),
        (["add", "--user", "a", "--iterations", "10"], 2, "--iterations 10 is not from 4096 to 16384"),
        (["add", "--user", "a", "--mechanism", "PLAIN"], 2, "invalid choice: 'PLAIN'"),
        (["add"], 2, "arguments are required: --user"),
        (["alter", "--user", "a"], 1, "user a has no password; kavka users add gives it one"),
        (["delete", "--user", "a"], 2, "arguments are required: --mechanism"),
    ],
)
def test_what_is_wrong_is_one_line(
    admin: MagicMock, capsys: pytest.CaptureFixture[str], words: list[str], code: int, message: str
) -> None:
    admin.describe_user_scram_credentials.side_effect = NOBODY
    assert main(["users", *words]) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"kavka users {words[0]}: ")
    assert message in line
    admin.alter_user_scram_credentials.assert_not_called()


def test_a_password_that_is_there_is_not_added_over(
    admin: MagicMock, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    admin.describe_user_scram_credentials.return_value = {"alice": (ScramCredentialInfo(SHA_512, 4096),)}
    assert main(["users", "add", "--user", "alice", "--password-file", file]) == 1
    assert capsys.readouterr().err == (
        "kavka users add: user alice has a password for SCRAM-SHA-512; kavka users alter changes it\n"
    )
    assert main(["users", "alter", "--user", "alice", "--mechanism", "SCRAM-SHA-256", "--password-file", file]) == 1
    admin.alter_user_scram_credentials.assert_not_called()


def test_passwords_are_taken_away_by_mechanism(admin: MagicMock) -> None:
    words = ["--mechanism", "SCRAM-SHA-256", "--mechanism", "SCRAM-SHA-512"]
    assert main(["users", "delete", "--user", "alice", *words]) == 0
    # Kafka's controller in KRaft refuses two changes of a user in one request.
    assert admin.alter_user_scram_credentials.mock_calls == [
        call(deletions=[UserScramCredentialDeletion("alice", each)]) for each in (SHA_256, SHA_512)
    ]
