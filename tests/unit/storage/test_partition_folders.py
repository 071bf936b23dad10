"""Names of partition folders: which are logs, which are on their way out, which are none of ours."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka.storage.partition_folders import (
    FolderKind,
    PartitionFolder,
    deleted_folder_name,
    folder_name,
    parse_folder_name,
)

UNIQUE = "0f6ce1d2" * 4
TOPICS = st.text("abcXYZ019._-", min_size=1, max_size=249).filter(lambda topic: topic not in {".", ".."})
PARTITIONS = st.integers(0, (1 << 31) - 1)


@given(TOPICS, PARTITIONS)
def test_every_legal_topic_is_read_back_from_its_folder(topic: str, partition: int) -> None:
    assert parse_folder_name(folder_name(topic, partition)) == PartitionFolder(topic, partition, FolderKind.LOG)


@given(TOPICS, PARTITIONS)
def test_a_deleted_folder_is_known_as_deleted_and_fits_a_file_name(topic: str, partition: int) -> None:
    name = deleted_folder_name(topic, partition)
    folder = parse_folder_name(name)
    assert len(name) <= 255
    assert folder is not None
    assert folder.kind is FolderKind.DELETED
    assert folder.partition == partition
    assert topic.startswith(folder.topic)


def test_deleted_names_of_one_partition_differ() -> None:
    assert deleted_folder_name("a", 0) != deleted_folder_name("a", 0)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (f"visits-3.{UNIQUE}-delete", PartitionFolder("visits", 3, FolderKind.DELETED)),
        (f"visits-3.{UNIQUE}-future", PartitionFolder("visits", 3, FolderKind.FUTURE)),
        (f"visits-3.{UNIQUE}-stray", PartitionFolder("visits", 3, FolderKind.STRAY)),
        ("to-delete-0", PartitionFolder("to-delete", 0, FolderKind.LOG)),
        ("v.1-delete-0", PartitionFolder("v.1-delete", 0, FolderKind.LOG)),
        ("__consumer_offsets-49", PartitionFolder("__consumer_offsets", 49, FolderKind.LOG)),
    ],
)
def test_kafkas_names(name: str, expected: PartitionFolder) -> None:
    assert parse_folder_name(name) == expected


@pytest.mark.parametrize(
    "name",
    [
        "lost+found",
        "remote-log-index-cache",
        "visits",
        "-0",
        "visits-",
        "visits--1x",
        "visits-01",
        "visits-1.5",
        "visits-2147483648",
        "visits-99999999999999999999",
        "visits-\u0663",
        "vi sits-0",
        "vi/sits-0",
        "..-0",
        "notes-2.v1-delete",
        f"notes-2.{UNIQUE.upper()}-delete",
        "a" * 250 + "-0",
        ".lock",
        "",
    ],
)
def test_other_names_are_none_of_ours(name: str) -> None:
    assert parse_folder_name(name) is None
