"""Whatever goes wrong with a command is said on one line, with an exit code that scripts can trust."""

import socket
from collections.abc import Hashable, Iterator
from pathlib import Path
from unittest.mock import MagicMock, create_autospec

import pytest

from kavka.cli.connecting import BOOTSTRAP, client_settings
from kavka.cli.failing import reported
from kavka.cli.main import main
from kavka.cli.parsing import Parser
from kavka.cli.tree import commands
from kavka.client.admin import (
    AclBinding,
    AclOperation,
    Admin,
    ClientQuotaEntity,
    ConfigResource,
    ConfigResourceType,
    ItemErrors,
    ResourceType,
    TopicListing,
)
from kavka.client.api_errors import (
    ClusterAuthorizationError,
    KafkaTimeoutError,
    TopicAuthorizationError,
    UnknownTopicOrPartitionError,
)
from kavka.client.consumer.consumer import Consumer
from kavka.client.producer.producer import Producer
from kavka.client.topic_partition import TopicPartition
from tests.unit.cli.asking_commands import ASKING, takes_a_broker, words_of

ALL = [" ".join(command.words) for command in commands()]


def test_each_command_that_asks_a_cluster_is_in_the_table() -> None:
    assert {" ".join(command.words) for command in commands() if takes_a_broker(command)} == ASKING.keys()


@pytest.mark.parametrize("name", ALL)
def test_a_wrong_flag_is_one_line(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*name.split(), "--no-such-flag"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"kavka {name}: ")
    assert line.endswith(f"; see kavka {name} --help")


@pytest.mark.parametrize("name", sorted(ASKING))
def test_a_file_of_settings_that_is_not_there_is_one_line(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words_of(name, tmp_path), "--command-config", "/no/such/file"]) == 1
    assert capsys.readouterr().err == f"kavka {name}: --command-config /no/such/file: No such file or directory\n"


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port at which nobody listens, and nobody else can."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield reserved.getsockname()[1]


@pytest.mark.parametrize("name", sorted(ASKING))
def test_an_unreachable_broker_is_one_line(
    name: str, closed_port: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--bootstrap-server", f"127.0.0.1:{closed_port}", "--timeout-ms", "200"]
    assert main([*words_of(name, tmp_path), *where]) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"kavka {name}: ")
    assert line.endswith("; is a broker listening there? name one with --bootstrap-server")


def test_who_is_not_answered_by_what_listens_may_speak_another_protocol(capsys: pytest.CaptureFixture[str]) -> None:
    assert reported("kavka topics list", KafkaTimeoutError("not asked in time")) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("kavka topics list: not asked in time; is a broker listening there, and by this security.p")


def refusing(client: MagicMock, kind: type) -> None:
    """Whatever is asked of the client, the answer is that one may not."""
    for method in {each for area in kind.__mro__ for each in vars(area)}:
        if not method.startswith("_") and method not in ("close", "settings", "metrics"):
            getattr(client, method).side_effect = ClusterAuthorizationError()


@pytest.mark.parametrize("name", sorted(ASKING))
def test_an_answer_that_one_may_not_is_one_line(
    name: str,
    admin: MagicMock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    refusing(admin, Admin)
    for place, kind in (("consumer.consumer.Consumer", Consumer), ("producer.producer.Producer", Producer)):
        client = create_autospec(kind, instance=True)
        client.__enter__.return_value = client
        refusing(client, kind)
        monkeypatch.setattr(f"kavka.client.{place}", lambda *_, client=client: client)
    assert main(words_of(name, tmp_path)) == 4
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"kavka {name}: ")
    assert line.endswith("; the principal may not do this: an ACL has to allow it (kavka acls)")


def test_what_succeeded_is_shown_and_each_failure_is_a_line(
    admin: MagicMock, capsys: pytest.CaptureFixture[str]
) -> None:
    errors = {"a": UnknownTopicOrPartitionError("gone"), "b": TopicAuthorizationError("not you")}
    admin.delete_topics.side_effect = ItemErrors("deleting", errors, {"c": None})
    assert main(["topics", "delete", "a", "b", "c"]) == 1
    printed = capsys.readouterr()
    assert printed.out == "DELETED\nc\n"
    assert printed.err.splitlines() == [
        "kavka topics delete: a: gone",
        "kavka topics delete: b: not you; the principal may not do this: an ACL has to allow it (kavka acls)",
    ]
    assert main(["topics", "delete", "a", "b", "c", "--if-exists"]) == 4


@pytest.mark.parametrize(
    ("item", "text"),
    [
        ("billing", "billing"),
        (7, "7"),
        (TopicPartition("orders", 0), "orders-0"),
        (ConfigResource(ConfigResourceType.TOPIC, "orders"), "topic orders"),
        (ClientQuotaEntity.of(user="alice", client_id=None), "client-id <default> user alice"),
        (
            AclBinding(ResourceType.TOPIC, "orders", "User:alice", AclOperation.READ),
            "TOPIC orders User:alice READ ALLOW * LITERAL",
        ),
    ],
)
def test_a_failure_of_one_item_alone_names_it(
    item: Hashable, text: str, admin: MagicMock, capsys: pytest.CaptureFixture[str]
) -> None:
    error = UnknownTopicOrPartitionError("gone")
    error.item = item
    admin.list_topics.side_effect = error
    assert main(["topics", "list"]) == 1
    assert capsys.readouterr().err == f"kavka topics list: {text}: gone\n"


def listing(include_internal: bool = False) -> dict[str, TopicListing]:
    topics = {"orders": TopicListing("orders", bytes(16), False)}
    if include_internal:
        topics["__consumer_offsets"] = TopicListing("__consumer_offsets", bytes(16), True)
    return topics


def test_a_pattern_deletes_no_internal_topic(admin: MagicMock) -> None:
    admin.list_topics.side_effect = listing
    admin.delete_topics.side_effect = dict.fromkeys
    assert main(["topics", "delete", "--topic", ".*"]) == 0
    admin.delete_topics.assert_called_once_with(["orders"])

    assert main(["topics", "delete", "__consumer_offsets"]) == 0
    admin.delete_topics.assert_called_with(["__consumer_offsets"])


@pytest.mark.parametrize("words", ["topics delete", "topics alter --partitions 60"])
def test_a_pattern_that_only_internal_topics_match_says_how_these_are_meant(
    words: str, admin: MagicMock, capsys: pytest.CaptureFixture[str]
) -> None:
    admin.list_topics.side_effect = listing
    assert main([*words.split(), "--topic", "__consumer_offsets"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("an internal one is named without --topic")
    admin.delete_topics.assert_not_called()
    admin.create_partitions.assert_not_called()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("topics create a --replica-assignment 1:1", "partition 0 has a broker twice"),
        ("topics create a --replica-assignment 1:2,1", "partition 1 has another number of brokers"),
        ("topics create a --replica-assignment 1,x", "partition 1 has x; broker ids are expected"),
        ("topics create a --replica-assignment 1 --partitions 2", "says how many partitions"),
        ("topics create a --partitions 0", "'0' is no number from 1 on"),
        ("topics create a --config retention.ms", "is not of the form NAME=VALUE"),
        ("topics create", "no topic is named"),
        ("topics delete", "no topic is named"),
        ("topics list --topic (", "a regular expression is expected"),
        ("topics list --timeout-ms 0", "is no number of milliseconds"),
        ("topics describe --topic-id x", "'x' is no topic id"),
        ("configs describe", "whose settings?"),
        ("configs describe --broker one", "one is no broker's id"),
        ("configs describe --topic a --broker 1", "topics and brokers cannot be named together"),
        ("configs describe --entity-type topics --entity-default", "topics have no default"),
        ("configs alter --topic a", "nothing is to be changed"),
        ("configs alter --topic a --add-config b=1 --delete-config b", "b cannot be set and deleted at once"),
        ("configs alter --client a --add-config b=x", "b=x: a quota is a number"),
        ("configs alter --entity-type topics --add-config b=x", "whose settings? one is to be named"),
        ("diff topics a", "a is compared with what?"),
        ("elect --election-type preferred --all-topic-partitions --partition 1", "--partition is for --topic"),
        ("logdirs describe --broker-list a", "'a' is no list of broker ids"),
    ],
)
def test_what_makes_no_sense_is_wrong_usage(
    words: str, said: str, admin: MagicMock, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words.split()) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


def _settings(words: list[str]) -> dict[str, str]:
    from kavka.cli.connecting import add_connection_arguments

    parser = Parser("kavka", "")
    add_connection_arguments(parser)
    return client_settings(parser.parse_args(words))


def test_a_flag_counts_over_a_file_over_a_profile_over_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("KAVKA_BOOTSTRAP_SERVER", "environment:1")
    assert _settings([])[BOOTSTRAP] == "environment:1"
    folder = tmp_path / "kavka"
    folder.mkdir()
    (folder / "config.toml").write_text(
        'profile = "one"\n[profiles.one]\nbootstrap.servers = ["one:1", "one:2"]\nretries = 3\n[profiles.two]\n'
        '"client.id" = "two"\n'
    )
    assert _settings([]) == {BOOTSTRAP: "one:1,one:2", "retries": "3"}
    assert _settings(["--profile", "two"]) == {BOOTSTRAP: "environment:1", "client.id": "two"}
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=file:1\nretries: 4\n")
    assert _settings(["--command-config", str(file)]) == {BOOTSTRAP: "file:1", "retries": "4"}
    given = ["--command-config", str(file), "--broker-list", "flag:1"]
    assert _settings(given) == {BOOTSTRAP: "flag:1", "retries": "4"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "there is no profile x"),
        ("[profiles.y]\n", "there is no profile x; "),
        ("[profiles.", "config.toml: "),
        ("profiles = 3\n", "there is no profile x; "),
    ],
)
def test_a_profile_that_is_not_there_is_one_line(
    text: str | None, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    if text is not None:
        (tmp_path / "kavka").mkdir()
        (tmp_path / "kavka" / "config.toml").write_text(text)
    assert main(["topics", "list", "--profile", "x"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line
