"""Replicas move between the log directories of a broker, as AlterReplicaLogDirs asks (KIP-113)."""

import errno
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kavka.protocol.messages.delete_topics import DeleteTopicsRequest
from kavka.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from tests.support.processes import wait_until
from tests.support.running_broker import HOST, RunningBroker, threads
from tests.support.wire import RawClient, batch_of, produce, read_values

TOPIC, TIMEOUT_S = "visits", 60.0
RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
VALUE_BYTES = 1000
COUNT = 300


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningBroker]:
    directories = ",".join(str(tmp_path / name) for name in ("a", "b"))
    with RunningBroker(tmp_path, {"log.dirs": directories, "num.partitions": "1"}) as made:
        yield made


@pytest.fixture
def client(running: RunningBroker) -> Iterator[RawClient]:
    with RawClient(HOST, running.port) as made:
        yield made


def fill(client: RawClient, count: int = COUNT) -> None:
    now_ms = int(time.time() * 1000)
    for number in range(count):
        produce(client, TOPIC, batch_of([b"%d" % number * VALUE_BYTES], timestamp_ms=now_ms))


def alter(client: RawClient, path: Path | str, topic: str = TOPIC, index: int = 0, version: int = 2) -> ErrorCode:
    topics = [AlterReplicaLogDirTopic(name=topic, partitions=[index])]
    answer = client.ask(AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=str(path), topics=topics)]), version)
    ((result,),) = ([*each.partitions] for each in answer.results)
    assert result.partition_index == index
    return ErrorCode(result.error_code)


def described(client: RawClient) -> dict[str, list[tuple[str, int, bool]]]:
    """By directory: its replicas' topics, their lags, and whether they are on their way there."""
    answer = client.ask(DescribeLogDirsRequest(topics=None), 4)
    return {
        Path(each.log_dir).name: [
            (topic.name, part.offset_lag, part.is_future_key) for topic in each.topics for part in topic.partitions
        ]
        for each in answer.results
    }


def place(running: RunningBroker) -> Path:
    log = running.broker.services.logs.get(TOPIC, 0)
    assert log is not None
    return log.directory


def other(running: RunningBroker) -> Path:
    """The directory that the replica does not lie in."""
    return next(Path(each) for each in running.settings["log.dirs"].split(",") if Path(each) != place(running).parent)


def wait_until_moved(running: RunningBroker, target: Path) -> None:
    wait_until(lambda: place(running) == target / f"{TOPIC}-0", TIMEOUT_S, lambda: f"it lies in {place(running)}")


def throttle(running: RunningBroker, rate: str | None) -> None:
    answer: Any = running.alter({RATE: rate}, name="")
    assert answer.error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", range(3))
def test_a_replica_moves_and_its_bytes_are_the_same(running: RunningBroker, client: RawClient, version: int) -> None:
    client.create_topic(TOPIC)
    fill(client)
    source, target = place(running), other(running)
    records = (source / "00000000000000000000.log").read_bytes()
    assert alter(client, target, version=version) is ErrorCode.NONE
    wait_until_moved(running, target)
    assert (target / f"{TOPIC}-0" / "00000000000000000000.log").read_bytes() == records
    assert not source.exists()
    fill(client, 3)
    assert len(read_values(client, TOPIC)) == COUNT + 3
    assert described(client) == {source.parent.name: [], target.name: [(TOPIC, 0, False)]}
    wait_until(lambda: threads("ReplicaAlterLogDirsThread") == 0, TIMEOUT_S, "a thread without work goes on")
    assert alter(client, target) is ErrorCode.NONE


def test_a_throttled_move_is_shown_cancelled_and_taken_up_again_after_a_restart(running: RunningBroker) -> None:
    with RawClient(HOST, running.port) as client:
        client.create_topic(TOPIC)
        fill(client)
        source, target = place(running), other(running)
        throttle(running, "10000")
        assert alter(client, target) is ErrorCode.NONE
        (moving,) = described(client)[target.name]
        assert moving[0] == TOPIC
        assert 0 < moving[1] <= COUNT
        assert moving[2]
        assert described(client)[source.parent.name] == [(TOPIC, 0, False)]
        assert alter(client, source.parent) is ErrorCode.NONE
        assert described(client) == {source.parent.name: [(TOPIC, 0, False)], target.name: []}
        assert alter(client, target) is ErrorCode.NONE
        fill(client, 1)
    running.restart()
    assert place(running) == source
    with RawClient(HOST, running.port) as client:
        assert [future for _, _, future in described(client)[target.name]] == [True]
        throttle(running, None)
        wait_until_moved(running, target)
        assert len(read_values(client, TOPIC)) == COUNT + 1


def test_a_topic_is_deleted_with_its_copies(running: RunningBroker, client: RawClient) -> None:
    client.create_topic(TOPIC)
    fill(client)
    target = other(running)
    throttle(running, "10000")
    assert alter(client, target) is ErrorCode.NONE
    client.ask(DeleteTopicsRequest(topic_names=[TOPIC], timeout_ms=30_000), 5)
    wait_until(lambda: described(client) == {"a": [], "b": []}, TIMEOUT_S, lambda: str(described(client)))
    wait_until(lambda: threads("ReplicaAlterLogDirsThread") == 0, TIMEOUT_S, "a thread without work goes on")


def test_a_directory_for_a_partition_that_is_yet_to_be_made_is_remembered(
    running: RunningBroker, client: RawClient, tmp_path: Path
) -> None:
    for index in range(4):
        assert alter(client, tmp_path / "b", index=index) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    client.create_topic(TOPIC, 4)
    assert len(described(client)["b"]) == 4


def test_what_can_not_be_moved_is_refused(running: RunningBroker, client: RawClient, tmp_path: Path) -> None:
    client.create_topic(TOPIC)
    assert alter(client, tmp_path / "c") is ErrorCode.LOG_DIR_NOT_FOUND
    assert alter(client, "b") is ErrorCode.LOG_DIR_NOT_FOUND
    assert alter(client, tmp_path / "b", "x" * 249) is ErrorCode.INVALID_TOPIC_EXCEPTION
    target = other(running)
    running.errors.expect("log directory goes offline")
    directories = running.broker.services.logs.directories
    broken = next(each for each in directories if each.path == target)
    directories.fail(broken, OSError(errno.EIO, "broken"))
    assert alter(client, target) is ErrorCode.KAFKA_STORAGE_ERROR
    assert alter(client, place(running).parent) is ErrorCode.NONE
