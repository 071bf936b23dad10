"""Shells complete commands, flags, choices, and topics while a broker answers."""

from unittest.mock import MagicMock

import pytest

from kavka.cli.main import main
from kavka.client.admin import TopicListing
from kavka.client.api_errors import KafkaTimeoutError


def _found(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert main(["completion", "bash", "--words", *words]) == 0
    return capsys.readouterr().out.split()


def test_commands_flags_and_choices_are_completed(admin: MagicMock, capsys: pytest.CaptureFixture[str]) -> None:
    assert "topics" in _found(capsys, "")
    assert _found(capsys, "topi") == ["topics"]
    assert _found(capsys, "topics", "de") == ["delete", "describe"]
    assert _found(capsys, "topics", "list", "--ex") == ["--exclude-internal"]
    assert _found(capsys, "topics", "list", "--output", "") == ["json", "text"]
    assert _found(capsys, "nothing", "") == []


def test_topics_are_completed_while_a_broker_answers(admin: MagicMock, capsys: pytest.CaptureFixture[str]) -> None:
    names = ("orders", "payments")
    admin.list_topics.return_value = {name: TopicListing(name, bytes(16), is_internal=False) for name in names}
    assert _found(capsys, "topics", "describe", "--bootstrap-server", "there:1", "o") == ["orders"]
    assert admin.settings["bootstrap.servers"] == "there:1"
    assert int(admin.settings["default.api.timeout.ms"]) < 1000
    assert _found(capsys, "topics", "list", "--topic", "") == ["orders", "payments"]
    admin.list_topics.side_effect = KafkaTimeoutError("nobody there")
    assert _found(capsys, "topics", "delete", "o") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script_that_asks_the_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert f"kavka completion {shell} --words" in capsys.readouterr().out
