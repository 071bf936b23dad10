"""Files of reassignments: what Kafka's tool writes is read, and what it would refuse is refused in one line."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka.cli.reassign.json_files import (
    FileError,
    parse_reassignment,
    parse_topics,
    read_reassignment,
    reassignment_text,
)
from kavka.client.admin import TopicPartition, TopicPartitionReplica

KAFKAS = (
    '{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[3,1],"log_dirs":["/data/a","any"]},'
    '{"topic":"orders","partition":1,"replicas":[2],"log_dirs":["any"]}]}'
)


def test_what_kafka_writes_is_read_and_written_as_it_was() -> None:
    found = parse_reassignment(KAFKAS, "plan.json")
    assert found.replicas == {TopicPartition("orders", 0): (3, 1), TopicPartition("orders", 1): (2,)}
    assert found.log_dirs == {TopicPartitionReplica("orders", 0, 3): "/data/a"}
    assert reassignment_text(found.replicas, found.log_dirs) == KAFKAS


def test_log_dirs_and_the_version_may_be_left_out() -> None:
    text = '{"partitions": [{"topic": "a", "partition": 7, "replicas": [1]}]}'
    assert parse_reassignment(text, "f") == ({TopicPartition("a", 7): (1,)}, {})


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"topic": "a", "partition": 0, "replicas": []}, "replicas of a-0 are to be a list of broker ids"),
        ({"topic": "a", "partition": 0, "replicas": [1, 1]}, "replicas of a-0 name a broker twice"),
        ({"topic": "a", "partition": 0, "replicas": [True]}, "replicas of a-0 are to be a list of broker ids"),
        ({"topic": "a", "partition": "0", "replicas": [1]}, "partition is to be a number"),
        ({"partition": 0, "replicas": [1]}, "topic is to be a text"),
        ({"topic": "a", "partition": 0, "replicas": [1], "log_dirs": []}, "a-0 has 1 replicas and 0 log_dirs"),
        ({"topic": "a", "partition": 0, "replicas": [1], "log_dirs": [1]}, "log_dirs of a-0 are to be a list of texts"),
    ],
)
def test_a_row_that_is_wrong_is_named(row: dict[str, object], message: str) -> None:
    with pytest.raises(FileError, match=f"^f: {message}"):
        parse_reassignment(json.dumps({"version": 1, "partitions": [row]}), "f")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "f: no JSON"),
        ("[]", "f: a JSON object is expected"),
        ('{"version": 2, "partitions": []}', "f: version 2 is not known, only 1"),
        ("{}", "f: it names no partitions"),
        ('{"partitions": {}}', "f: partitions is to be a list of objects"),
        ("[" * 100_000, "f: no JSON"),
    ],
)
def test_a_file_that_is_no_reassignment_is_refused(text: str, message: str) -> None:
    with pytest.raises(FileError, match=message):
        parse_reassignment(text, "f")


def test_a_partition_that_is_there_twice_is_refused() -> None:
    row = {"topic": "a", "partition": 0, "replicas": [1]}
    with pytest.raises(FileError, match="f: a-0 is there twice"):
        parse_reassignment(json.dumps({"partitions": [row, row]}), "f")


def test_topics_are_read_and_doubled_ones_refused() -> None:
    assert parse_topics('{"version": 1, "topics": [{"topic": "a"}, {"topic": "b"}]}', "f") == ["a", "b"]
    with pytest.raises(FileError, match="f: topics are there twice: a"):
        parse_topics('{"topics": [{"topic": "a"}, {"topic": "a"}]}', "f")


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_bytes(b'{"\xff')
    with pytest.raises(FileError, match="no UTF-8 at byte 2"):
        read_reassignment(str(file))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["version", "partitions", "topic", "partition", "replicas", "log_dirs"]), inner, max_size=6
        )
    ),
    max_leaves=20,
)


@given(JSON)
def test_whatever_the_json_it_is_read_or_refused(document: object) -> None:
    try:
        found = parse_reassignment(json.dumps(document), "f")
    except FileError:
        return
    assert all(replicas for replicas in found.replicas.values())
