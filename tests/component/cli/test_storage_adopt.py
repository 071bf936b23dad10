"""`kavka storage adopt` on the directory that a real Kafka 3.9 left behind."""

from pathlib import Path

import pytest

from kavka.cli.main import main
from kavka.storage.files import Files
from kavka.storage.log_directory import LogDirectory
from tests.support.kafka_directory import extract_kafka_directory

Output = pytest.CaptureFixture[str]


@pytest.fixture
def kafka_dir(tmp_path: Path) -> Path:
    return extract_kafka_directory(tmp_path / "kafka-logs")


def adopt(directory: Path, *arguments: str) -> int:
    return main(["storage", "adopt", "--override", f"log.dirs={directory}", *arguments])


def test_topics_are_kept_for_ever_until_told_otherwise(kafka_dir: Path, capsys: Output) -> None:
    assert adopt(kafka_dir) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "visits: cleanup.policy=delete, retention.bytes=-1, retention.ms=-1" in lines
    assert "keyed.table: cleanup.policy=compact" in lines


def test_configurations_are_set_removed_and_remembered(kafka_dir: Path, capsys: Output) -> None:
    assert adopt(kafka_dir, "--config", "visits:retention.ms=60000", "--config", "visits:retention.bytes=") == 0
    assert "visits: cleanup.policy=delete, retention.ms=60000" in capsys.readouterr().out
    assert adopt(kafka_dir, "--config", "visits:retention.ms=", "--config", "visits:cleanup.policy=") == 0
    assert "visits: defaults" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("visits:retention.ms=soon", "retention.ms"),
        ("visits:no.such.setting=1", "no.such.setting"),
        ("visitors:retention.ms=1", "visitors"),
        ("visits", "TOPIC:NAME=VALUE"),
        ("visits:retention.ms", "TOPIC:NAME=VALUE"),
        (":retention.ms=1", "TOPIC:NAME=VALUE"),
    ],
)
def test_a_wrong_setting_changes_nothing(kafka_dir: Path, capsys: Output, setting: str, reason: str) -> None:
    assert adopt(kafka_dir, "--config", "visits:retention.ms=60000") == 0
    capsys.readouterr()
    assert adopt(kafka_dir, "--config", "visits:retention.ms=70000", "--config", setting) == 1
    assert reason in capsys.readouterr().err
    assert adopt(kafka_dir) == 0
    assert "retention.ms=60000" in capsys.readouterr().out


def test_a_directory_in_use_is_refused(kafka_dir: Path, capsys: Output) -> None:
    directory = LogDirectory(kafka_dir, Files())
    directory.lock()
    assert adopt(kafka_dir) == 1
    assert "in use" in capsys.readouterr().err
    directory.unlock()
    assert adopt(kafka_dir) == 0


def test_a_kraft_directory_is_refused_by_name(kafka_dir: Path, capsys: Output) -> None:
    (kafka_dir / "__cluster_metadata-0").mkdir()
    assert adopt(kafka_dir) == 1
    assert "__cluster_metadata-0" in capsys.readouterr().err
    assert not list(kafka_dir.glob("*.sqlite"))


def test_another_brokers_id_is_refused(kafka_dir: Path, capsys: Output) -> None:
    assert adopt(kafka_dir, "--override", "broker.id=8") == 1
    assert "broker.id is 8, but meta.properties" in capsys.readouterr().err


def test_a_directory_that_is_not_there_is_named_and_not_made(kafka_dir: Path, tmp_path: Path, capsys: Output) -> None:
    mistyped = tmp_path / "kafka-lgos"
    assert main(["storage", "adopt", "--override", f"log.dirs={kafka_dir},{mistyped}"]) == 1
    assert capsys.readouterr().err == (
        f"kavka storage adopt: {mistyped}: no such directory; log.dirs must name the stopped Kafka's directories\n"
    )
    assert not mistyped.exists()
    assert not list(kafka_dir.glob("*.sqlite"))


def test_a_directory_of_something_else_is_left_as_it_is(tmp_path: Path, capsys: Output) -> None:
    (tmp_path / "photos-3").mkdir()
    (tmp_path / "photos-3" / "wedding.jpg").touch()
    assert adopt(tmp_path) == 1
    assert f"{tmp_path}: no Kafka's log directory" in capsys.readouterr().err
    assert [path.name for path in tmp_path.rglob("*")] == ["photos-3", "wedding.jpg"]


def test_a_kafka_without_topics_has_nothing_to_configure(tmp_path: Path, capsys: Output) -> None:
    (tmp_path / "meta.properties").write_text("version=0\nbroker.id=7\ncluster.id=MkU3OEVBNTcwNTJENDM2Qg\n")
    assert adopt(tmp_path, "--config", "visits:retention.ms=1") == 1
    assert "no topic was found" in capsys.readouterr().err
    assert adopt(tmp_path) == 0
    assert capsys.readouterr().out == "no topics\n"


def test_a_wrong_zookeeper_address_is_named(kafka_dir: Path, capsys: Output) -> None:
    assert adopt(kafka_dir, "--zookeeper", "one:two:three") == 1
    (complaint,) = capsys.readouterr().err.splitlines()
    assert complaint.startswith("kavka storage adopt: --zookeeper one:two:three: expected HOST:PORT")
