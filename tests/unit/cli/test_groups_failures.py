"""What goes wrong with `kavka groups`, each verb alike: one line, and an exit code for scripts."""

from unittest.mock import MagicMock

import pytest

from kavka.cli.main import main
from kavka.client.api_errors import GroupAuthorizationError
from kavka.client.kafka_error import KafkaError, KafkaTimeoutError

VERBS = {
    "list": [],
    "describe": ["--group", "g"],
    "reset-offsets": ["--group", "g", "--all-topics", "--to-earliest"],
    "delete": ["--group", "g"],
    "delete-offsets": ["--group", "g", "--topic", "t"],
    "remove-members": ["--group", "g", "--all-members"],
    "watch": ["--group", "g"],
}


def refuse_everything(admin: MagicMock, error: KafkaError) -> None:
    for name in (
        "list_groups",
        "describe_consumer_groups",
        "delete_groups",
        "describe_topics",
        "remove_group_members",
    ):
        getattr(admin, name).side_effect = error


@pytest.mark.parametrize(
    ("error", "code"), [(KafkaTimeoutError("nobody answers"), 3), (GroupAuthorizationError("not yours"), 4)]
)
@pytest.mark.parametrize("verb", VERBS)
def test_who_is_not_answered_or_not_allowed_gets_a_line(
    admin: MagicMock, capsys: pytest.CaptureFixture[str], verb: str, error: KafkaError, code: int
) -> None:
    refuse_everything(admin, error)
    assert main(["groups", verb, *VERBS[verb]]) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"kavka groups {verb}: ")
    assert str(error) in line


@pytest.mark.parametrize("verb", VERBS)
def test_flags_and_files_that_are_not_there_are_a_line(
    admin: MagicMock, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    assert main(["groups", verb, *VERBS[verb], "--nonsense"]) == 2
    assert main(["groups", verb, *VERBS[verb], "--command-config", "/nonexistent/file"]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 2


def test_a_port_where_nobody_listens(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--bootstrap-server", "127.0.0.1:1", "--timeout-ms", "200"]
    assert main(["groups", "describe", "--group", "g", *words]) == 3
    assert len(capsys.readouterr().err.splitlines()) == 1
