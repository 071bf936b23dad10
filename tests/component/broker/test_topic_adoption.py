"""What lies in log.dirs at a start: a stopped Kafka's topics, logs that nobody knows, and other things."""

import contextlib
import errno
import logging
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kavka.broker.partitions.topic_adoption import enter_topics, find_topics, known_partitions
from kavka.broker.server import StartError
from kavka.cli.main import main
from kavka.cluster.broker_registration import prepare_tree
from kavka.cluster.registry.embedded import FILE_NAME, EmbeddedRegistry
from kavka.cluster.topic_ids import ZERO_ID
from kavka.protocol.messages.delete_topics import DeleteTopicsRequest
from kavka.protocol.messages.metadata import MetadataRequest
from kavka.storage.adoption import AdoptionError
from kavka.storage.files import Files
from kavka.storage.log_directories import LogDirectories
from tests.support.kafka_directory import extract_kafka_directory
from tests.support.log_managers import FailingFiles
from tests.support.running_broker import HOST, RunningBroker
from tests.support.wire import RawClient

KAFKAS_ID = "7"
TOPICS = {"visits": 3, "keyed.table": 1, "__transaction_state": 2}


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[EmbeddedRegistry]:
    registry = EmbeddedRegistry(tmp_path / "registry", lambda: 0)
    prepare_tree(registry)
    yield registry
    registry.close()


def locked(*paths: Path) -> LogDirectories:
    directories = LogDirectories(paths, Files(), lambda _: None)
    directories.lock()
    directories.unlock()
    return directories


def beneath_a_file(tmp_path: Path) -> Path:
    """Where no directory can be made."""
    (tmp_path / "file").touch()
    return tmp_path / "file" / "logs"


def broker_of(*directories: Path) -> RunningBroker:
    return RunningBroker(directories[0], {"log.dirs": ",".join(map(str, directories)), "broker.id": KAFKAS_ID})


def topics_of(running: RunningBroker) -> dict[str, int]:
    with RawClient(HOST, running.port) as client:
        return {topic.name: len(topic.partitions) for topic in client.ask(MetadataRequest(topics=None), 9).topics}


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_empty_directories_bring_no_topics(registry: EmbeddedRegistry, tmp_path: Path) -> None:
    assert find_topics(locked(tmp_path / "a", tmp_path / "b"), Files(), registry) == []


@pytest.mark.parametrize("asked", [False, True])
def test_a_first_look_needs_all_directories_where_somebody_was(
    registry: EmbeddedRegistry, tmp_path: Path, asked: bool
) -> None:
    directories = locked(tmp_path / "empty", beneath_a_file(tmp_path))
    assert find_topics(directories, Files(), registry, asked=asked) == []

    kafka = extract_kafka_directory(tmp_path / "kafka-logs")
    (tmp_path / "empty" / "meta.properties").write_bytes((kafka / "meta.properties").read_bytes())
    directories = locked(tmp_path / "empty", beneath_a_file(tmp_path))
    with pytest.raises(AdoptionError, match=f"{beneath_a_file(tmp_path)} cannot be used"):
        find_topics(directories, Files(), registry, asked=asked)

    enter_topics(registry, 1, find_topics(locked(tmp_path / "empty"), Files(), registry))
    assert find_topics(directories, Files(), registry, asked=asked) == []


def test_a_first_look_needs_a_kafkas_directory_that_cannot_be_held(registry: EmbeddedRegistry, tmp_path: Path) -> None:
    kafka = extract_kafka_directory(tmp_path / "kafka-logs")
    (kafka / ".lock").unlink(missing_ok=True)
    (kafka / ".lock").mkdir()
    with pytest.raises(AdoptionError, match=f"{kafka} cannot be used"):
        find_topics(locked(tmp_path / "new", kafka), Files(), registry)


@pytest.mark.parametrize(("error", "refused"), [(errno.EACCES, True), (errno.EIO, False)])
def test_a_first_look_needs_what_nobody_may_read_but_not_a_broken_disk(
    registry: EmbeddedRegistry, tmp_path: Path, error: int, refused: bool
) -> None:
    files = FailingFiles()
    for operation in ("makedirs", "listdir"):
        files.fail(operation, "shut", error)
    directories = LogDirectories([tmp_path / "new", tmp_path / "shut"], files, lambda _: None)
    directories.lock()
    directories.unlock()
    with pytest.raises(AdoptionError, match="cannot be used") if refused else contextlib.nullcontext():
        assert find_topics(directories, files, registry) == []


def test_topics_are_looked_for_once_unless_the_operator_asks(registry: EmbeddedRegistry, tmp_path: Path) -> None:
    kafka = extract_kafka_directory(tmp_path / "kafka-logs")
    shutil.copytree(kafka / "visits-0", tmp_path / "visits-0")
    found = find_topics(locked(kafka), Files(), registry)
    assert {topic.name for topic in found} == set(TOPICS)
    enter_topics(registry, 7, found)
    shutil.copytree(tmp_path / "visits-0", kafka / "later-0")
    with pytest.raises(AdoptionError, match="visits and later have one topic id"):
        find_topics(locked(kafka), Files(), registry, asked=True)
    (kafka / "later-0" / "partition.metadata").unlink()

    assert find_topics(locked(kafka), Files(), registry) == []
    [later] = find_topics(locked(kafka), Files(), registry, asked=True)
    assert later.name == "later"
    with pytest.raises(AdoptionError, match="an adoption needs all"):
        find_topics(locked(kafka, beneath_a_file(tmp_path)), Files(), registry, asked=True)


def test_logs_that_nothing_calls_a_kafkas_are_taken_over_only_when_asked(
    registry: EmbeddedRegistry, tmp_path: Path
) -> None:
    kafka = extract_kafka_directory(tmp_path / "kafka-logs")
    (kafka / "meta.properties").unlink()
    with pytest.raises(AdoptionError, match=r"visits-0.*no meta\.properties.*kavka storage adopt"):
        find_topics(locked(kafka), Files(), registry)
    assert len(find_topics(locked(kafka), Files(), registry, asked=True)) == len(TOPICS)


@pytest.mark.parametrize("asked", [False, True])
def test_an_implausible_number_is_refused_by_the_folders_name(
    registry: EmbeddedRegistry, tmp_path: Path, asked: bool
) -> None:
    kafka = extract_kafka_directory(tmp_path / "kafka-logs")
    shutil.copytree(kafka / "visits-0", kafka / "backup-20261122")
    with pytest.raises(AdoptionError, match=r"backup-20261122 would make backup a topic of 20261123 partitions"):
        find_topics(locked(kafka), Files(), registry, asked=asked)


def test_known_are_the_partitions_of_the_registry(registry: EmbeddedRegistry, tmp_path: Path) -> None:
    kafka = extract_kafka_directory(tmp_path / "kafka-logs")
    enter_topics(registry, 7, find_topics(locked(kafka), Files(), registry))
    known = known_partitions(registry)
    assert known("visits", 3) is known("visit", 0) is None
    assert known("visits", 2) == known("visits", 0) != known("keyed.table", 0)
    registry.set("/brokers/topics/visits", b'{"version":1,"partitions":{"0":[7]}}')
    assert known_partitions(registry)("visits", 0) == ZERO_ID
    registry.set("/brokers/topics/visits", b"{")
    assert known_partitions(registry)("visits", 0) is None


def test_a_first_start_takes_over_a_kafkas_topics_and_nothing_else(tmp_path: Path) -> None:
    kafka = extract_kafka_directory(tmp_path / "kafka-logs")
    elsewhere = tmp_path / "elsewhere"
    for folder, name in ((kafka / "photos-3", "wedding.jpg"), (kafka / "release-2026", "a/b.txt"), (elsewhere, "x")):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text("precious")
    (kafka / "backup-20261122").mkdir()
    (kafka / "link-0").symlink_to(elsewhere)
    with broker_of(kafka) as running:
        assert topics_of(running) == TOPICS
        with RawClient(HOST, running.port) as client:
            client.ask(DeleteTopicsRequest(topic_names=["photos", "release", "link"], timeout_ms=10_000), 5)
        running.restart()
    assert contents(kafka / "photos-3") == {"wedding.jpg": b"precious"}
    assert contents(kafka / "release-2026") == {"a/b.txt": b"precious"}
    assert contents(elsewhere) == {"x": b"precious"}
    assert list((kafka / "backup-20261122").iterdir()) == []


def test_a_log_that_the_registry_does_not_know_is_left_as_it_is_until_the_operator_asks(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kafka = extract_kafka_directory(tmp_path / "kafka-logs")
    shutil.move(kafka / "visits-1", tmp_path / "visits-1")
    namesake = tmp_path / "namesake"
    shutil.copytree(kafka / "keyed.table-0", namesake)
    with broker_of(kafka) as running:
        running.broker.stop()
        shutil.rmtree(kafka / "visits-1")
        shutil.move(namesake, kafka / "visits-1")
        shutil.copytree(tmp_path / "visits-1", kafka / "orders-0")
        shutil.copytree(tmp_path / "visits-1", kafka / "visits-9")
        (kafka / "orders-0" / "partition.metadata").unlink()
        before = {name: contents(kafka / name) for name in ("visits-1", "orders-0", "visits-9")}
        running.errors.expect("visits-1 is there.*move it away", "cannot host . replicas")
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            running.start()
        assert topics_of(running) == TOPICS
        running.broker.stop()
        assert {name: contents(kafka / name) for name in before} == before
        lines = [record.getMessage() for record in caplog.records if "left alone" in record.getMessage()]
        assert any("['orders-0', 'visits-9']" in line and "kavka storage adopt" in line for line in lines)
        assert any("['visits-1']" in line for line in lines)
        shutil.rmtree(kafka / "visits-9")
        shutil.rmtree(kafka / "visits-1")
        assert main(["storage", "adopt", "--override", f"log.dirs={kafka}"]) == 0
        running.start()
        assert topics_of(running) == {**TOPICS, "orders": 1}


def test_a_first_start_without_a_directory_can_be_repeated_with_it(tmp_path: Path) -> None:
    kafka = extract_kafka_directory(tmp_path / "b")
    running = broker_of(tmp_path / "a", kafka)
    (tmp_path / "a").mkdir()
    shutil.copy(kafka / "meta.properties", tmp_path / "a")
    shutil.move(kafka, tmp_path / "away")
    kafka.touch()
    running.errors.expect("goes offline")
    with pytest.raises(StartError, match="a first start needs all"), running:
        pass
    assert sorted(path.name for path in (tmp_path / "a").iterdir() if not path.name.startswith(FILE_NAME)) == [
        ".lock",
        "meta.properties",
    ]

    kafka.unlink()
    shutil.move(tmp_path / "away", kafka)
    with running:
        assert topics_of(running) == TOPICS
