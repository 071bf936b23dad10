"""Adopting the directory that a real Apache Kafka 3.9.2 on ZooKeeper left behind."""

import shutil
from pathlib import Path

import pytest

from kavka.config.topic_config import KEPT
from kavka.storage.adoption import COMPACTED, AdoptionError, survey
from kavka.storage.files import Files
from kavka.storage.log_directories import LogDirectories
from kavka.storage.log_loading import DuplicatePartitionError
from kavka.storage.meta_properties import KRaftDirectoryError, MetaProperties
from kavka.storage.partition_metadata import topic_id_text
from tests.support.kafka_directory import extract_kafka_directory

UNIQUE = "0f6ce1d2" * 4


@pytest.fixture
def kafka_dir(tmp_path: Path) -> Path:
    return extract_kafka_directory(tmp_path / "kafka-logs")


def test_topics_partitions_and_ids_are_found(kafka_dir: Path) -> None:
    topics = {topic.name: topic for topic in survey([kafka_dir], Files())}
    assert set(topics) == {"visits", "keyed.table", "__transaction_state"}
    visits = topics["visits"]
    assert visits.partition_count == 3
    assert topic_id_text(visits.topic_id or b"") == "eCJGIu38RpaXgC4jZdKGbQ"
    assert visits.leader_epochs == {0: 1, 1: 1, 2: 1}


def test_what_kafka_compacted_stays_compacted_and_the_rest_is_kept(kafka_dir: Path) -> None:
    topics = {topic.name: topic for topic in survey([kafka_dir], Files())}
    assert topics["visits"].config == KEPT
    assert topics["keyed.table"].config == COMPACTED
    assert topics["__transaction_state"].config["cleanup.policy"] == "compact"


def test_the_owner_is_found(kafka_dir: Path) -> None:
    directories = LogDirectories([kafka_dir], Files(), lambda _: None)
    try:
        assert directories.lock() == MetaProperties(7, "kUQyOIRDRHCGZDSoBTOOxA")
    finally:
        directories.unlock()


def test_topics_spread_over_two_directories_are_one(kafka_dir: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    shutil.move(kafka_dir / "visits-2", other)
    topics = {topic.name: topic for topic in survey([kafka_dir, other], Files())}
    assert topics["visits"].leader_epochs == {0: 1, 1: 1, 2: 1}


def test_partitions_of_other_brokers_are_counted_and_have_no_epoch(kafka_dir: Path) -> None:
    shutil.rmtree(kafka_dir / "visits-1")
    topics = {topic.name: topic for topic in survey([kafka_dir], Files())}
    assert topics["visits"].partition_count == 3
    assert topics["visits"].leader_epochs == {0: 1, 2: 1}


def test_the_next_epoch_is_higher_than_any_known(kafka_dir: Path) -> None:
    (kafka_dir / "visits-0" / "leader-epoch-checkpoint").write_text("0\n2\n3 0\n41 12\n")
    topics = {topic.name: topic for topic in survey([kafka_dir], Files())}
    assert topics["visits"].leader_epochs[0] == 42


def test_a_kafka_older_than_topic_ids_and_epochs(kafka_dir: Path) -> None:
    for partition in range(3):
        (kafka_dir / f"visits-{partition}" / "partition.metadata").unlink()
        (kafka_dir / f"visits-{partition}" / "leader-epoch-checkpoint").unlink()
    topics = {topic.name: topic for topic in survey([kafka_dir], Files())}
    assert topics["visits"].topic_id is None
    assert topics["visits"].leader_epochs == {0: 0, 1: 0, 2: 0}


def test_folders_of_two_topics_with_one_name_are_refused(kafka_dir: Path) -> None:
    shutil.copy(kafka_dir / "keyed.table-0" / "partition.metadata", kafka_dir / "visits-1")
    with pytest.raises(AdoptionError, match=r"different topics; .*visits-1 has"):
        survey([kafka_dir], Files())


@pytest.mark.parametrize("name", ["leader-epoch-checkpoint", "partition.metadata"])
def test_a_corrupt_file_is_refused_by_name(kafka_dir: Path, name: str) -> None:
    (kafka_dir / "visits-1" / name).write_bytes(b"\xff\x00garbage")
    with pytest.raises(AdoptionError, match=rf"visits-1/{name}"):
        survey([kafka_dir], Files())


def test_a_corrupt_cleaner_checkpoint_is_refused(kafka_dir: Path) -> None:
    (kafka_dir / "cleaner-offset-checkpoint").write_bytes(b"7\n")
    with pytest.raises(AdoptionError, match="which topics are compacted"):
        survey([kafka_dir], Files())


def test_a_partition_in_two_directories_is_refused(kafka_dir: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(kafka_dir, other)
    with pytest.raises(DuplicatePartitionError, match=r"lies in two log\.dirs"):
        survey([kafka_dir, other], Files())


def test_folders_that_are_no_logs_are_left_out(kafka_dir: Path) -> None:
    for name in (f"visits-3.{UNIQUE}-delete", f"visits-4.{UNIQUE}-stray", "visits-5", "lost+found"):
        (kafka_dir / name).mkdir()
    (kafka_dir / "notes-2").write_text("a file, no folder")
    topics = {topic.name: topic for topic in survey([kafka_dir], Files())}
    assert set(topics) == {"visits", "keyed.table", "__transaction_state"}
    assert topics["visits"].partition_count == 3


def test_a_kraft_directory_is_refused_and_let_go(kafka_dir: Path) -> None:
    (kafka_dir / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=Qiv73oR_Q2yY6Sd4GtGjwQ\n")
    for _ in range(2):
        with pytest.raises(KRaftDirectoryError):
            LogDirectories([kafka_dir], Files(), lambda _: None).lock()


def test_a_copy_under_another_name_is_refused(kafka_dir: Path) -> None:
    shutil.copytree(kafka_dir / "visits-0", kafka_dir / "visits.old-0")
    with pytest.raises(AdoptionError, match=r"visits and visits\.old have one topic id, eCJGIu38RpaXgC4jZdKGbQ"):
        survey([kafka_dir], Files())
