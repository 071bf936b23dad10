"""The controller's orders: old ones are refused, deleted partitions go, failed directories take theirs offline."""

import errno
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kavka.broker.partitions.partition import Partition
from kavka.broker.partitions.replica_manager import ReplicaManager
from kavka.broker.waiting.purgatory import DelayedOperation
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicState,
)
from kavka.protocol.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from kavka.storage.partition_log import PartitionLog
from tests.support.broker_handlers import topic_id_of
from tests.support.log_managers import FailingFiles, ManagerRig, append, read_values
from tests.support.processes import wait_until

ME, OTHER = 1, 2
TIMEOUT_S = 60.0


class Rig:
    def __init__(self, directory: Path) -> None:
        self.paths = [directory / "a", directory / "b"]
        self.files = FailingFiles()
        self.logs = ManagerRig(self.paths, files=self.files)
        self.changes: list[tuple[int, bool]] = []
        self.replicas = ReplicaManager(
            ME, self.logs.start(), lambda partition, leads: self.changes.append((partition.index, leads))
        )

    def order(
        self, *partitions: tuple[int, int, int], controller_epoch: int = 1, topic_id: bytes | None = None
    ) -> LeaderAndIsrResponse:
        """(index, leader, leader epoch) of each."""
        states = [
            LeaderAndIsrPartitionState(
                partition_index=index,
                controller_epoch=controller_epoch,
                leader=leader,
                leader_epoch=epoch,
                isr=[leader],
                partition_epoch=0,
                replicas=[ME, OTHER],
            )
            for index, leader, epoch in partitions
        ]
        topic = LeaderAndIsrTopicState(
            topic_name="visits", topic_id=topic_id or topic_id_of("visits"), partition_states=states
        )
        return self.replicas.leader_and_isr(
            LeaderAndIsrRequest(
                controller_id=ME,
                controller_epoch=controller_epoch,
                broker_epoch=1,
                topic_states=[topic],
                live_leaders=[],
            )
        )

    def stop(self, index: int, epoch: int, *, delete: bool = True, controller_epoch: int = 1) -> Any:
        state = StopReplicaPartitionState(partition_index=index, leader_epoch=epoch, delete_partition=delete)
        return self.replicas.stop_replica(
            StopReplicaRequest(
                controller_id=ME,
                controller_epoch=controller_epoch,
                broker_epoch=1,
                topic_states=[StopReplicaTopicState(topic_name="visits", partition_states=[state])],
            )
        )

    def directory_of(self, index: int) -> Path:
        log = self.partition(index).log
        assert log is not None
        return log.directory.parent

    def fail(self, path: Path) -> None:
        """The disk breaks, and the broker hears of it."""
        directory = next(each for each in self.logs.manager.directories if each.path == path)
        self.logs.manager.directories.fail(directory, OSError(errno.EIO, "broken"))
        self.replicas.directory_failed([path])

    def partition(self, index: int) -> Partition:
        return self.replicas.partitions["visits", index]

    def leaders_log(self, index: int = 0) -> PartitionLog:
        return self.partition(index).leader_log()


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.logs.manager.close()


def codes(response: LeaderAndIsrResponse) -> list[int]:
    return [each.error_code for topic in response.topics for each in topic.partition_errors]


def test_partitions_are_led_and_followed_as_ordered(rig: Rig) -> None:
    response = rig.order((0, ME, 0), (1, OTHER, 0))

    assert (response.error_code, codes(response)) == (0, [0, 0])
    assert [rig.partition(index).role.is_leader for index in (0, 1)] == [True, False]
    assert rig.changes == [(0, True), (1, False)]
    assert (rig.replicas.leader_count, rig.replicas.under_replicated_count, rig.replicas.offline_count) == (1, 1, 0)


def test_an_order_of_an_old_controller_changes_nothing(rig: Rig) -> None:
    rig.order((0, ME, 0), controller_epoch=5)

    assert rig.order((0, OTHER, 9), controller_epoch=4).error_code == ErrorCode.STALE_CONTROLLER_EPOCH
    assert rig.stop(0, 9, controller_epoch=4).error_code == ErrorCode.STALE_CONTROLLER_EPOCH

    assert rig.partition(0).role.is_leader


def test_an_order_of_an_old_leadership_changes_that_partition_not(rig: Rig) -> None:
    rig.order((0, ME, 5))

    assert codes(rig.order((0, OTHER, 4), (1, ME, 0))) == [ErrorCode.STALE_CONTROLLER_EPOCH, 0]

    assert (rig.partition(0).role.leader_epoch, rig.partition(0).role.is_leader) == (5, True)
    assert rig.partition(1).role.is_leader


def test_an_order_of_the_same_leader_epoch_changes_nothing(rig: Rig) -> None:
    rig.order((0, ME, 1))
    role = rig.partition(0).role

    # A controller that was elected since says the same again, or what it has read from elsewhere.
    assert codes(rig.order((0, ME, 1), controller_epoch=2)) == [ErrorCode.STALE_CONTROLLER_EPOCH]
    assert codes(rig.order((0, OTHER, 1), controller_epoch=2)) == [ErrorCode.STALE_CONTROLLER_EPOCH]

    assert rig.partition(0).role is role
    rig.order((0, OTHER, 2), controller_epoch=2)
    rig.order((0, OTHER, 3), controller_epoch=2)
    assert rig.changes == [(0, True), (0, False), (0, False)]


def test_an_order_for_another_topic_is_refused_as_such_whatever_its_epoch(rig: Rig) -> None:
    rig.order((0, ME, 5))

    for epoch in (0, 5, 6):
        response = rig.order((0, OTHER, epoch), topic_id=topic_id_of("another"))
        assert codes(response) == [ErrorCode.INCONSISTENT_TOPIC_ID]

    assert rig.partition(0).role.is_leader


def test_readers_keep_the_table_that_they_took(rig: Rig) -> None:
    rig.order((0, ME, 0))
    taken = rig.replicas.partitions

    rig.order((1, ME, 0))
    rig.stop(0, -2)

    assert list(taken) == [("visits", 0)]
    assert list(rig.replicas.partitions) == [("visits", 1)]


@pytest.mark.parametrize(("epoch", "stopped"), [(4, False), (5, True), (6, True), (-1, True), (-2, True)])
def test_a_replica_stops_unless_the_order_is_old(rig: Rig, epoch: int, stopped: bool) -> None:
    rig.order((0, ME, 5))
    log = rig.partition(0).log
    assert log is not None
    append(log, b"kept", leader_epoch=5)

    (answer,) = rig.stop(0, epoch, delete=False).partition_errors

    assert answer.error_code == (ErrorCode.NONE if stopped else ErrorCode.FENCED_LEADER_EPOCH)
    assert (("visits", 0) in rig.replicas.partitions) is not stopped
    kept = rig.logs.manager.get("visits", 0)
    assert kept is not None
    assert read_values(kept) == [b"kept"]


def test_a_deleted_partition_takes_its_log_along_and_may_come_back_empty(rig: Rig) -> None:
    rig.order((0, ME, 0))
    partition = rig.partition(0)
    assert partition.log is not None
    append(partition.log, b"gone")

    rig.stop(0, -2)

    assert rig.logs.manager.get("visits", 0) is None
    with pytest.raises(BrokerError):
        partition.append(memoryview(b""), 1, 9, 0)
    assert ("visits", 0) not in rig.replicas.partitions
    assert codes(rig.order((0, ME, 0), topic_id=topic_id_of("another"))) == [0]
    again = rig.partition(0).log
    assert again is not None
    assert (again.log_end_offset, again.topic_id) == (0, topic_id_of("another"))


def test_stopping_what_is_not_here_is_no_error(rig: Rig) -> None:
    (answer,) = rig.stop(3, 0).partition_errors

    assert answer.error_code == 0


def test_an_order_for_a_topic_of_the_same_name_but_another_id_is_refused(rig: Rig) -> None:
    rig.order((0, ME, 0))

    response = rig.order((0, ME, 1), topic_id=topic_id_of("another"))

    assert codes(response) == [ErrorCode.INCONSISTENT_TOPIC_ID]
    assert rig.partition(0).role.leader_epoch == 0


def test_a_failed_directory_takes_its_partitions_offline_and_no_others(rig: Rig) -> None:
    rig.order(*[(index, ME, 0) for index in range(4)])
    places = {index: log.directory.parent for index in range(4) if (log := rig.partition(index).log) is not None}
    assert set(places.values()) == set(rig.paths)

    hit = rig.replicas.directory_failed([rig.paths[0]])

    expected = [index for index, place in places.items() if place == rig.paths[0]]
    assert sorted(partition.index for partition in hit) == expected
    assert rig.replicas.offline_count == len(expected)
    for partition in hit:
        with pytest.raises(BrokerError) as refused:
            partition.leader_log()
        assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert rig.replicas.directory_failed([rig.paths[0]]) == []


def test_who_waits_is_woken_with_no_lock_held(rig: Rig) -> None:
    rig.order((0, ME, 0))
    was_free: list[bool] = []

    class Looker(DelayedOperation):
        def is_satisfied(self) -> bool:
            free = rig.replicas._lock.acquire(blocking=False)
            if free:
                rig.replicas._lock.release()
            was_free.append(free)
            return False

        def respond(self) -> None:
            raise AssertionError("it is never satisfied")

    rig.partition(0).data_arrived.operations[Looker()] = None
    rig.order((0, ME, 1))
    assert was_free
    looks = len(was_free)
    rig.fail(rig.directory_of(0))

    assert len(was_free) > looks
    assert all(was_free)


def test_a_partition_of_a_failed_directory_is_kept_whatever_the_controller_orders(rig: Rig) -> None:
    rig.order(*[(index, ME, 0) for index in range(4)])
    lost = next(index for index in range(4) if rig.directory_of(index) == rig.paths[0])
    rig.fail(rig.paths[0])
    offline = rig.replicas.offline_count
    assert offline

    for delete in (False, True):
        (answer,) = rig.stop(lost, -2, delete=delete).partition_errors
        assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert codes(rig.order((lost, ME, 7))) == [ErrorCode.KAFKA_STORAGE_ERROR]

    assert (rig.replicas.offline_count, len(rig.replicas.partitions)) == (offline, 4)
    with pytest.raises(BrokerError) as refused:
        rig.partition(lost).leader_log()
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR


def test_a_partition_that_may_lie_in_a_failed_directory_is_known_to_be_offline(rig: Rig) -> None:
    rig.fail(rig.paths[0])

    assert codes(rig.order((0, ME, 3))) == [ErrorCode.KAFKA_STORAGE_ERROR]

    assert (rig.replicas.offline_count, rig.replicas.leader_count) == (1, 0)
    (answer,) = rig.stop(0, -2).partition_errors
    assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_partition_that_a_full_disk_refused_is_hosted_when_there_is_room(rig: Rig) -> None:
    rig.files.fail("mkdir", "visits-0", errno.ENOSPC)
    assert codes(rig.order((0, ME, 0))) == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert rig.replicas.offline_count == 0
    rig.files.heal()

    assert codes(rig.order((0, ME, 0))) == [0]

    assert rig.partition(0).role.is_leader


def test_a_leadership_that_begins_while_its_directory_fails_does_not_stand(rig: Rig) -> None:
    failing: list[threading.Thread] = []
    create: Any = rig.logs.manager.create

    def create_and_fail(*arguments: Any, **options: Any) -> Any:
        made = create(*arguments, **options)
        failing.append(threading.Thread(target=rig.fail, args=(made["visits", 0].directory.parent,)))
        failing[0].start()
        wait_until(lambda: rig.logs.failures, TIMEOUT_S, "the directory does not fail")
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rig.logs.manager, "create", create_and_fail)
        rig.order((0, ME, 0))
    failing[0].join()

    assert rig.partition(0).is_offline
    assert rig.changes[-1] == (0, False)


def test_what_a_disk_refused_is_made_by_a_retry(rig: Rig) -> None:
    rig.files.fail("open", "visits-0", errno.ENOSPC)
    assert codes(rig.order((0, ME, 0), (1, ME, 0))) == [ErrorCode.KAFKA_STORAGE_ERROR, 0]
    assert not rig.replicas.retry_refused()

    rig.files.heal()

    assert rig.replicas.retry_refused()
    assert rig.logs.manager.get("visits", 0) is not None
    assert not rig.replicas.retry_refused()
    assert codes(rig.order((0, ME, 1))) == [0]
    assert rig.partition(0).role.is_leader


def test_what_a_disk_refused_is_not_made_when_the_controller_has_deleted_it(rig: Rig) -> None:
    rig.files.fail("open", "visits-0", errno.ENOSPC)
    rig.order((0, ME, 0))
    assert rig.stop(0, -2).partition_errors[0].error_code == ErrorCode.NONE

    rig.files.heal()

    assert not rig.replicas.retry_refused()
    assert rig.logs.manager.get("visits", 0) is None


def test_what_was_given_up_and_not_deleted_is_still_made_by_a_retry(rig: Rig) -> None:
    rig.files.fail("open", "visits-0", errno.ENOSPC)
    rig.order((0, ME, 0))
    # So a controller answers a refusal: the replica is offline.
    rig.stop(0, 0, delete=False)
    rig.files.heal()

    assert rig.replicas.retry_refused()

    assert rig.logs.manager.get("visits", 0) is not None


def test_a_deletion_that_a_disk_refused_is_done_by_a_retry(rig: Rig) -> None:
    rig.order((0, ME, 0))
    path = rig.directory_of(0) / "visits-0"
    rig.files.fail("rename", "visits-0", errno.ENOSPC)
    assert rig.stop(0, -2).partition_errors[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert not rig.replicas.retry_refused()

    rig.files.heal()

    assert rig.replicas.retry_refused()
    assert not path.exists()
    assert rig.stop(0, -2).partition_errors[0].error_code == ErrorCode.NONE


def test_a_partition_that_is_to_be_hosted_again_is_not_deleted_by_a_retry(rig: Rig) -> None:
    rig.order((0, ME, 0))
    rig.files.fail("rename", "visits-0", errno.ENOSPC)
    rig.stop(0, -2)
    rig.order((0, ME, 1))
    rig.files.heal()

    assert not rig.replicas.retry_refused()

    assert rig.logs.manager.get("visits", 0) is rig.partition(0).log


def test_what_a_failed_directory_took_is_not_tried_again(rig: Rig) -> None:
    rig.order((0, ME, 0), (1, ME, 0))
    rig.fail(rig.directory_of(0))
    assert codes(rig.order((0, ME, 1))) == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert rig.stop(0, -2).partition_errors[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    before = dict(rig.files.calls)

    assert not rig.replicas.retry_refused()

    assert rig.files.calls == before
    assert rig.partition(0).is_offline
