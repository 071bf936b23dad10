"""`kavka tokens ...`: by scripted answers, as brokers give tokens to clients alone that say who they are."""

import io
from unittest.mock import MagicMock

import pytest

from kavka.cli.main import main
from kavka.client import api_errors
from kavka.client.admin import DelegationToken, KafkaPrincipal
from tests.support.json_documents import assert_golden

ALICE, CAROL = KafkaPrincipal("User", "alice"), KafkaPrincipal("User", "carol")
TOKEN = DelegationToken("t1", b"secret", ALICE, ALICE, 1_700_000_000_000, 1_700_000_060_000, 2**62, (CAROL,))


def test_a_token_is_created_and_shown_with_its_hmac(admin: MagicMock, capsys: pytest.CaptureFixture[str]) -> None:
    admin.create_delegation_token.return_value = TOKEN
    words = ["--owner-principal", "User:alice", "--renewer-principal", "User:carol", "--max-life-time-period", "60000"]
    assert main(["tokens", "create", *words]) == 0
    admin.create_delegation_token.assert_called_once_with(renewers=[CAROL], owner=ALICE, max_lifetime_ms=60_000)
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["TOKEN-ID", "HMAC", "OWNER", "REQUESTER", "RENEWERS", "ISSUED", "EXPIRES", "AT-MOST-UNTIL"],
        f"t1 c2VjcmV0 User:alice User:alice User:carol 2023-11-14T22:13:20Z 2023-11-14T22:14:20Z {2**62}".split(),
    ]


def test_tokens_are_described_by_their_owners(admin: MagicMock, capsys: pytest.CaptureFixture[str]) -> None:
    admin.describe_delegation_tokens.return_value = [TOKEN]
    assert main(["tokens", "describe", "--owner-principal", "User:alice", "--output", "json"]) == 0
    admin.describe_delegation_tokens.assert_called_once_with([ALICE])
    assert_golden("tokens", capsys.readouterr().out)
    assert main(["tokens", "describe"]) == 0
    admin.describe_delegation_tokens.assert_called_with(None)


def test_tokens_are_renewed_and_expired_by_their_hmac(
    admin: MagicMock, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    admin.renew_delegation_token.return_value = 1_700_000_000_000
    assert main(["tokens", "renew", "--hmac", "c2VjcmV0", "--renew-time-period", "5000"]) == 0
    admin.renew_delegation_token.assert_called_once_with(b"secret", renew_time_period_ms=5000)
    monkeypatch.setattr("sys.stdin", io.StringIO("c2VjcmV0\n"))
    admin.expire_delegation_token.return_value = -1
    assert main(["tokens", "expire", "--hmac-file", "-"]) == 0
    admin.expire_delegation_token.assert_called_once_with(b"secret", expiry_time_period_ms=-1)
    assert capsys.readouterr().out == "expires 2023-11-14T22:13:20Z\nit is gone already\n"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["create", "--owner-principal", "alice"], 2, "'alice': a principal is written Type:name, such as User:alice"),
        (["create", "--max-life-time-period", "1h"], 2, "'1h' is no number of milliseconds, nor -1"),
        (["renew"], 2, "nobody can be asked for the HMAC"),
        (["renew", "--hmac", "a", "--hmac-file", "b"], 2, "--hmac and --hmac-file do not go together"),
        (["expire", "--hmac", "!"], 2, "the HMAC is no base64"),
        (["expire", "--hmac", "c2VjcmV0"], 1, "gone"),
    ],
)
def test_what_is_wrong_is_one_line(
    admin: MagicMock, capsys: pytest.CaptureFixture[str], words: list[str], code: int, message: str
) -> None:
    admin.expire_delegation_token.side_effect = api_errors.DelegationTokenNotFoundError("gone")
    assert main(["tokens", *words]) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"kavka tokens {words[0]}: ")
    assert message in line
