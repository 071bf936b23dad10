"""`meta.properties`: whose directory it is, and which directories are refused."""

import random
from pathlib import Path

import pytest

from kavka.storage.files import Files
from kavka.storage.meta_properties import (
    KRaftDirectoryError,
    MetaProperties,
    MetaPropertiesError,
    agree,
    decode_meta_properties,
    encode_meta_properties,
    read_meta_properties,
    write_meta_properties,
)

KAFKA_3_9 = b"#\n#Sat Nov 21 11:26:07 UTC 2026\nbroker.id=7\nversion=0\ncluster.id=kUQyOIRDRHCGZDSoBTOOxA\n"
KRAFT = b"node.id=1\ndirectory.id=5eRLUcLVTSyKCRlYNXw-qg\nversion=1\ncluster.id=Qiv73oR_Q2yY6Sd4GtGjwQ\n"


def test_reads_the_file_of_a_kafka_on_zookeeper() -> None:
    assert decode_meta_properties(KAFKA_3_9) == MetaProperties(7, "kUQyOIRDRHCGZDSoBTOOxA")


@pytest.mark.parametrize(
    "properties",
    [
        MetaProperties(0, "kUQyOIRDRHCGZDSoBTOOxA"),
        MetaProperties(None, None),
        MetaProperties((1 << 31) - 1, "with = and : and \\ and space", (("directory.id", "5eRLUcLVTSyKCRlYNXw-qg"),)),
    ],
)
def test_what_is_written_is_read_back(tmp_path: Path, properties: MetaProperties) -> None:
    write_meta_properties(tmp_path, Files(), properties)
    assert read_meta_properties(tmp_path, Files()) == properties


def test_a_new_directory_has_no_owner(tmp_path: Path) -> None:
    assert read_meta_properties(tmp_path, Files()) is None


def test_a_kraft_directory_is_refused_by_its_version(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_bytes(KRAFT)
    with pytest.raises(KRaftDirectoryError, match=r"meta.properties: version=1, .*KRaft"):
        read_meta_properties(tmp_path, Files())


def test_a_kraft_directory_is_refused_by_its_metadata_log(tmp_path: Path) -> None:
    (tmp_path / "__cluster_metadata-0").mkdir()
    with pytest.raises(KRaftDirectoryError, match="__cluster_metadata-0"):
        read_meta_properties(tmp_path, Files())


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "no version"),
        (b"broker.id=1\n", "no version"),
        (b"version=2\n", "found '2'"),
        (b"version=0\nbroker.id=x\n", "broker.id"),
        (b"version=0\nbroker.id=-1\n", "broker.id"),
        (b"version=0\nbroker.id=2147483648\n", "broker.id"),
        (b"version=0\nbroker.id=" + b"9" * 5000, "broker.id"),
        (b"version=0\ncluster.id=\n", "cluster.id"),
        (b"version=0\ncluster.id=" + b"c" * 256, "cluster.id"),
        (b"version=0\ngarbage\n", "line 2 is not name=value"),
        (b"version=0\n=1\n", "line 2 is not name=value"),
        (b"version=0\nx=\x00\n", "line 2 is not name=value"),
    ],
)
def test_a_corrupt_file_is_refused_with_its_reason(tmp_path: Path, data: bytes, reason: str) -> None:
    (tmp_path / "meta.properties").write_bytes(data)
    with pytest.raises(MetaPropertiesError, match=rf"{tmp_path}/meta.properties: .*{reason}"):
        read_meta_properties(tmp_path, Files())


@pytest.mark.parametrize("length", range(len(KAFKA_3_9)))
def test_a_file_cut_short_never_names_another_broker(length: int) -> None:
    try:
        properties = decode_meta_properties(KAFKA_3_9[:length])
    except MetaPropertiesError:
        return
    assert properties.broker_id == 7
    assert "kUQyOIRDRHCGZDSoBTOOxA".startswith(properties.cluster_id or "")


def test_random_bytes_are_refused_and_never_crash() -> None:
    generator = random.Random(11)
    for _ in range(2_000):
        data = generator.randbytes(generator.randrange(80))
        with pytest.raises(MetaPropertiesError):
            decode_meta_properties(data)


def test_a_huge_file_is_refused_unread(tmp_path: Path) -> None:
    with (tmp_path / "meta.properties").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(MetaPropertiesError, match="has at most"):
        read_meta_properties(tmp_path, Files())


def test_directories_agree_on_their_owner() -> None:
    found = {Path("/a"): MetaProperties(1, None), Path("/b"): MetaProperties(None, "c"), Path("/new"): None}
    assert agree(found) == MetaProperties(1, "c")


@pytest.mark.parametrize(
    ("other", "name"), [(MetaProperties(2, "c"), "broker.id"), (MetaProperties(1, "d"), "cluster.id")]
)
def test_directories_of_two_brokers_are_refused(other: MetaProperties, name: str) -> None:
    with pytest.raises(MetaPropertiesError, match=rf"{name} differs: /a has .*, /b has"):
        agree({Path("/a"): MetaProperties(1, "c"), Path("/b"): other})


def test_encoding_is_stable_for_an_adopted_file() -> None:
    assert encode_meta_properties(decode_meta_properties(KAFKA_3_9)) == (
        b"version=0\nbroker.id=7\ncluster.id=kUQyOIRDRHCGZDSoBTOOxA\n"
    )
