"""Orders of the controller that a disk refuses for a while: the broker makes up for them without a restart."""

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

from kavka.broker import membership
from kavka.broker.partitions.disk_notices import DiskNotices
from kavka.broker.partitions.replica_manager import ReplicaManager
from kavka.cluster.registry.base import RegistryUnavailableError
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.delete_topics import DeleteTopicsRequest
from kavka.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from kavka.protocol.messages.find_coordinator import FindCoordinatorRequest
from kavka.protocol.messages.offset_fetch import OffsetFetchRequest
from tests.support.log_managers import FailingFiles
from tests.support.processes import wait_until
from tests.support.running_broker import HOST, RunningBroker
from tests.support.wire import RawClient, batch_of, produce

TIMEOUT_S = 60.0
PARTITIONS = 3
REFUSED = ("cannot host topic=", "cannot host . replicas")


@pytest.fixture
def files() -> FailingFiles:
    return FailingFiles()


@pytest.fixture
def running(tmp_path: Path, files: FailingFiles, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningBroker]:
    monkeypatch.setattr(membership, "RETRY_MS", 50)
    settings = {"offsets.topic.num.partitions": str(PARTITIONS), "offsets.topic.replication.factor": "1"}
    with RunningBroker(tmp_path, settings, files=files) as running:
        yield running


def codes(client: RawClient) -> set[int]:
    """What appends to the topic's partitions are answered with."""
    return {
        produce(client, "visits", batch_of([b"x"], timestamp_ms=1), partition=number).error_code
        for number in range(PARTITIONS)
    }


def delete(client: RawClient) -> int:
    request = DeleteTopicsRequest(topics=[], topic_names=["visits"], timeout_ms=5_000)
    code: int = client.ask(request, 4).responses[0].error_code
    return code


def is_created(client: RawClient) -> bool:
    try:
        client.create_topic("visits", PARTITIONS)
    except AssertionError:
        return False
    return True


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EMFILE])
def test_a_topic_that_could_not_be_made_is_led_once_the_disk_lets_it(
    running: RunningBroker, files: FailingFiles, error: int
) -> None:
    running.errors.expect(*REFUSED)
    files.fail("open", "/visits-", error)
    with RawClient(HOST, running.port) as client:
        with pytest.raises(AssertionError, match="without a leader yet"):
            client.create_topic("visits", PARTITIONS)
        assert ErrorCode.NONE not in codes(client)

        files.heal()

        wait_until(lambda: codes(client) == {ErrorCode.NONE}, TIMEOUT_S, "the topic has no leader")
        described = client.ask(DescribeLogDirsRequest(topics=None), 4).results
    assert [each.error_code for each in described] == [ErrorCode.NONE]


def test_a_topic_that_could_not_be_made_can_be_deleted_meanwhile(running: RunningBroker, files: FailingFiles) -> None:
    running.errors.expect(*REFUSED)
    files.fail("open", "/visits-", errno.ENOSPC)
    with RawClient(HOST, running.port) as client:
        with pytest.raises(AssertionError, match="without a leader yet"):
            client.create_topic("visits", PARTITIONS)
        assert delete(client) == ErrorCode.NONE
        files.heal()
        client.create_topic("visits", PARTITIONS)
        wait_until(lambda: codes(client) == {ErrorCode.NONE}, TIMEOUT_S, "the topic has no leader")


def test_groups_find_their_coordinator_once_the_disk_lets_its_topic_be_made(
    running: RunningBroker, files: FailingFiles
) -> None:
    running.errors.expect(*REFUSED)
    files.fail("open", "/__consumer_offsets", errno.EMFILE)
    with RawClient(HOST, running.port) as client:

        def found() -> int:
            code: int = client.ask(FindCoordinatorRequest(key="g", key_type=0), 3).error_code
            return code

        assert found() != ErrorCode.NONE
        files.heal()
        wait_until(lambda: found() == ErrorCode.NONE, TIMEOUT_S, "the group has no coordinator")

        def offsets() -> int:
            code: int = client.ask(OffsetFetchRequest(group_id="g", topics=None), 5).error_code
            return code

        wait_until(lambda: offsets() == ErrorCode.NONE, TIMEOUT_S, "the coordinator does not load")


def test_a_deletion_that_was_refused_is_done_once_the_disk_lets_it(
    running: RunningBroker, files: FailingFiles, tmp_path: Path
) -> None:
    with RawClient(HOST, running.port) as client:
        client.create_topic("visits", PARTITIONS)
        files.fail("rename", "/visits-0", errno.ENOSPC)
        assert delete(client) == ErrorCode.NONE
        assert not is_created(client)
        assert (tmp_path / "visits-0").exists()

        files.heal()

        wait_until(lambda: is_created(client), TIMEOUT_S, "the name does not become free")
        wait_until(lambda: codes(client) == {ErrorCode.NONE}, TIMEOUT_S, "the topic has no leader")


class _Replicas(ReplicaManager):
    """Has made up for something once."""

    def __init__(self) -> None:
        self.healed = [True]

    def retry_refused(self) -> bool:
        return bool(self.healed and self.healed.pop())

    def note_recovery(self) -> None:
        """Nothing was lost."""


def test_the_controller_is_told_even_if_the_registry_refuses_at_first() -> None:
    refusals = [RegistryUnavailableError("full"), RegistryUnavailableError("full")]
    told = []

    def publish() -> None:
        if refusals:
            raise refusals.pop()
        told.append(True)

    notices = DiskNotices(_Replicas(), publish)
    for _ in range(5):
        notices.retry()
    assert told == [True]
