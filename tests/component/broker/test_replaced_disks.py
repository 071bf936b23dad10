"""A broker whose disk was replaced leads nothing that it may have had, until it has it again (KAFKA-14139)."""

import errno
import shutil
from pathlib import Path

import pytest

from kavka.broker.partitions.replica_manager import ReplicaManager
from kavka.broker.partitions.role import RECOVERED, RECOVERING
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from kavka.protocol.messages.stop_replica import StopReplicaPartitionState, StopReplicaRequest, StopReplicaTopicState
from kavka.storage.files import Files
from kavka.storage.log_directories import NEW_MARK
from kavka.storage.meta_properties import META_PROPERTIES_FILE
from tests.support.broker_handlers import topic_id_of
from tests.support.log_managers import FailingFiles, ManagerRig
from tests.support.partition_logs import batch_of

ME, OTHER, NOBODY = 1, 2, -1
CLUSTER_ID = "Qiv73oR_Q2yY6Sd4GtGjwQ"


class Rig:
    """A broker over several starts, in a cluster that has the partitions of `existing`."""

    def __init__(
        self, directory: Path, directories: int = 1, *, is_replicated: bool = True, files: Files | None = None
    ) -> None:
        self.paths = [directory / f"data-{number}" for number in range(directories)]
        self.logs = ManagerRig(self.paths, files=files)
        self.topic_id = topic_id_of("visits")
        self.existing: set[int] = set()
        self.epoch = 0
        self.start(is_replicated=is_replicated)

    def start(self, *, is_replicated: bool = True) -> None:
        existing, topic_id = frozenset(self.existing), self.topic_id
        manager = self.logs.make()
        manager.lock_directories()
        manager.load(
            lambda topic, index: topic_id if index in existing else None,
            [("visits", index) for index in existing],
        )
        manager.claim(ME, CLUSTER_ID, is_replicated=is_replicated)
        self.replicas = ReplicaManager(ME, manager)

    def restart(self, *, clean: bool = True, replaced: int | None = None) -> None:
        """After a stop, in which the disk of that number may have been replaced by an empty one."""
        self.logs.manager.close(clean=clean)
        if replaced is not None:
            shutil.rmtree(self.paths[replaced])
        self.start()

    def order(
        self,
        leader: int,
        index: int = 0,
        *,
        replicas: tuple[int, ...] = (ME, OTHER),
        isr: tuple[int, ...] | None = None,
        recovery_state: int = RECOVERED,
        is_new: bool = False,
        adding: tuple[int, ...] = (),
    ) -> ErrorCode:
        self.epoch += 1
        state = LeaderAndIsrPartitionState(
            partition_index=index,
            controller_epoch=1,
            leader=leader,
            leader_epoch=self.epoch,
            isr=list(replicas if isr is None else isr),
            partition_epoch=self.epoch,
            replicas=list(replicas),
            adding_replicas=list(adding),
            is_new=is_new,
            leader_recovery_state=recovery_state,
        )
        states = [LeaderAndIsrTopicState(topic_name="visits", topic_id=self.topic_id, partition_states=[state])]
        request = LeaderAndIsrRequest(
            controller_id=OTHER, controller_epoch=1, broker_epoch=1, topic_states=states, live_leaders=[]
        )
        self.existing.add(index)
        answer = self.replicas.leader_and_isr(request)
        return ErrorCode(answer.topics[0].partition_errors[0].error_code)

    def delete(self, index: int) -> None:
        state = StopReplicaPartitionState(partition_index=index, leader_epoch=-2, delete_partition=True)
        topics = [StopReplicaTopicState(topic_name="visits", partition_states=[state])]
        self.replicas.stop_replica(
            StopReplicaRequest(controller_id=OTHER, controller_epoch=1, broker_epoch=1, topic_states=topics)
        )
        self.existing.discard(index)

    def catch_up(self, index: int = 0) -> None:
        partition = self.replicas.partitions["visits", index]
        partition.note_caught_up(partition.role.leader_epoch)

    def is_unproven(self, index: int = 0) -> bool:
        log = self.logs.manager.get("visits", index)
        assert log is not None
        return log.is_unproven

    def is_marked(self) -> bool:
        return any("=".join(NEW_MARK) in (path / META_PROPERTIES_FILE).read_text() for path in self.paths)


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    """One that has led a partition and was stopped."""
    made = Rig(tmp_path)
    assert made.order(ME, is_new=True) is ErrorCode.NONE
    made.replicas.note_recovery()
    return made


def test_a_directory_that_stays_leads_on(rig: Rig) -> None:
    for clean in (True, False):
        rig.restart(clean=clean)
        assert rig.order(ME) is ErrorCode.NONE


def test_what_existed_before_is_not_led_from_a_new_disk(rig: Rig) -> None:
    rig.restart(replaced=0)

    assert rig.order(ME) is ErrorCode.KAFKA_STORAGE_ERROR
    assert rig.order(ME) is ErrorCode.KAFKA_STORAGE_ERROR

    assert ("visits", 0) not in rig.replicas.partitions
    assert rig.logs.manager.get("visits", 0) is None


def test_the_controller_is_to_look_again_who_leads(rig: Rig) -> None:
    rig.restart(replaced=0)
    rig.order(ME)

    assert rig.replicas.retry_refused()
    assert not rig.replicas.retry_refused()

    assert rig.order(OTHER) is ErrorCode.NONE


def test_one_new_disk_of_two_is_enough(tmp_path: Path) -> None:
    rig = Rig(tmp_path, directories=2)
    for index in (0, 1):
        rig.order(ME, index, is_new=True)
    rig.replicas.note_recovery()
    lost = rig.replicas.partitions["visits", 1].log
    assert lost is not None
    rig.restart(replaced=rig.paths.index(lost.directory.parent))

    assert (rig.order(ME, 0), rig.order(ME, 1)) == (ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR)


def test_who_follows_leads_again_only_when_it_has_caught_up(rig: Rig) -> None:
    rig.restart(replaced=0)
    assert rig.order(OTHER) is ErrorCode.NONE

    assert rig.order(ME) is ErrorCode.KAFKA_STORAGE_ERROR
    assert rig.replicas.partitions["visits", 0].role.leader_id == OTHER
    rig.replicas.partitions["visits", 0].note_caught_up(rig.epoch - 2)
    assert rig.order(ME) is ErrorCode.KAFKA_STORAGE_ERROR
    rig.catch_up()

    assert rig.order(ME) is ErrorCode.NONE


def test_who_is_not_in_sync_may_lead_when_a_leader_has_added_it_again(rig: Rig) -> None:
    rig.restart(replaced=0)
    assert rig.order(OTHER, isr=(OTHER,)) is ErrorCode.NONE

    assert rig.order(ME) is ErrorCode.NONE


@pytest.mark.parametrize("clean", [True, False])
def test_a_second_start_knows_of_the_new_disk(rig: Rig, clean: bool) -> None:
    rig.restart(replaced=0)
    rig.restart(clean=clean)
    assert rig.order(ME) is ErrorCode.KAFKA_STORAGE_ERROR

    rig.replicas.note_recovery()
    rig.restart(clean=clean)

    assert rig.order(ME) is ErrorCode.KAFKA_STORAGE_ERROR


def test_a_disk_is_new_until_all_that_belongs_there_has_a_log_again(rig: Rig) -> None:
    rig.order(ME, 1, is_new=True)
    rig.restart(replaced=0)
    for index in (0, 1):
        rig.replicas.note_recovery()
        assert rig.is_marked(), "not all of what belongs here was ordered"
        rig.order(OTHER, index)
    rig.catch_up(1)
    rig.replicas.note_recovery()

    assert not rig.is_marked(), "each log has its own mark by now"
    rig.restart()
    assert (rig.order(ME, 0), rig.order(ME, 1)) == (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE)


def test_what_is_deleted_need_not_come_back(rig: Rig) -> None:
    rig.restart(replaced=0)
    rig.order(ME)
    rig.replicas.note_recovery()
    assert rig.is_marked()

    rig.delete(0)
    rig.replicas.note_recovery()

    assert not rig.is_marked()


def test_nobody_else_has_what_an_only_replica_lost(rig: Rig) -> None:
    rig.restart(replaced=0)

    assert rig.order(ME, replicas=(ME,)) is ErrorCode.NONE
    assert not rig.is_unproven()


def test_an_unclean_election_takes_the_loss(rig: Rig) -> None:
    rig.restart(replaced=0)

    assert rig.order(ME, recovery_state=RECOVERING) is ErrorCode.NONE


def test_what_is_made_after_the_start_is_led(rig: Rig) -> None:
    rig.restart(replaced=0)

    assert rig.order(ME, 7) is ErrorCode.NONE
    assert rig.order(ME, 8, is_new=True) is ErrorCode.NONE


def test_a_broker_that_stands_alone_marks_nothing(tmp_path: Path) -> None:
    assert not Rig(tmp_path, is_replicated=False).is_marked()


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("leader", [OTHER, NOBODY])
def test_the_log_that_is_made_in_its_place_proves_nothing_at_any_later_start(
    rig: Rig, leader: int, clean: bool
) -> None:
    rig.restart(replaced=0)
    assert rig.order(leader) is ErrorCode.NONE

    for _ in range(3):
        rig.replicas.note_recovery()
        rig.restart(clean=clean)
        assert rig.order(ME) is ErrorCode.KAFKA_STORAGE_ERROR
        assert rig.order(NOBODY) is ErrorCode.NONE

    assert rig.order(OTHER) is ErrorCode.NONE
    rig.catch_up()
    rig.restart(clean=clean)
    assert rig.order(ME) is ErrorCode.NONE


def test_half_of_a_copy_is_in_doubt_after_a_kill(rig: Rig) -> None:
    rig.restart(replaced=0)
    rig.order(OTHER)
    log = rig.logs.manager.get("visits", 0)
    assert log is not None
    log.append_as_follower(bytes(batch_of(b"copied", base_offset=0, leader_epoch=rig.epoch)), rig.epoch)
    rig.replicas.note_recovery()

    rig.restart(clean=False)

    assert rig.order(ME) is ErrorCode.KAFKA_STORAGE_ERROR


def test_an_order_for_something_else_says_nothing_of_what_is_missing(rig: Rig) -> None:
    rig.restart(replaced=0)
    rig.order(ME, 7, is_new=True)
    rig.replicas.note_recovery()

    assert rig.is_marked()
    rig.restart()
    assert rig.order(ME) is ErrorCode.KAFKA_STORAGE_ERROR


def test_the_next_replacement_is_one_more(rig: Rig) -> None:
    rig.restart(replaced=0)
    rig.order(OTHER)
    rig.catch_up()
    rig.replicas.note_recovery()
    assert not rig.is_marked()

    rig.restart(replaced=0)

    assert rig.order(ME) is ErrorCode.KAFKA_STORAGE_ERROR


def test_a_replica_that_the_controller_still_calls_new_has_lost_its_records_all_the_same(rig: Rig) -> None:
    """As it does while a reassignment goes on that adds it, though it is in sync by now."""
    rig.restart(replaced=0)

    assert rig.order(ME, is_new=True) is ErrorCode.KAFKA_STORAGE_ERROR
    assert rig.order(OTHER, is_new=True) is ErrorCode.NONE
    assert rig.is_unproven()


@pytest.mark.parametrize("restarts", [False, True])
def test_a_topic_that_is_made_anew_has_nothing_to_lack(rig: Rig, restarts: bool) -> None:
    rig.restart(replaced=0)
    rig.order(OTHER)
    rig.delete(0)
    if restarts:
        rig.restart()

    rig.topic_id = bytes(range(2, 18))
    assert rig.order(ME, is_new=True) is ErrorCode.NONE

    assert not rig.is_unproven()


def test_an_order_for_another_topic_of_the_name_leaves_a_log_in_doubt(rig: Rig) -> None:
    rig.restart(replaced=0)
    rig.order(OTHER)

    rig.topic_id = bytes(range(2, 18))
    assert rig.order(ME, replicas=(ME,)) is ErrorCode.INCONSISTENT_TOPIC_ID

    assert rig.is_unproven()


@pytest.mark.parametrize(("index", "isr"), [(0, (OTHER,)), (7, (ME, OTHER))])
def test_what_nobody_counts_on_is_not_marked(rig: Rig, index: int, isr: tuple[int, ...]) -> None:
    rig.restart(replaced=0)

    assert rig.order(OTHER, index, isr=isr) is ErrorCode.NONE

    assert not rig.is_unproven(index)


def test_a_replica_that_left_the_isr_is_in_no_doubt_after_a_restart(rig: Rig) -> None:
    rig.restart(replaced=0)
    rig.order(OTHER)
    rig.order(OTHER, isr=(OTHER,))

    rig.restart(clean=False)

    assert rig.order(ME) is ErrorCode.NONE


def test_what_a_full_disk_kept_from_being_made_is_in_doubt_when_it_is_made(tmp_path: Path) -> None:
    files = FailingFiles()
    rig = Rig(tmp_path, files=files)
    rig.order(ME, is_new=True)
    rig.restart(replaced=0)
    files.fail("mkdir", "visits-0", errno.ENOSPC)
    assert rig.order(OTHER) is ErrorCode.KAFKA_STORAGE_ERROR
    files.heal()

    assert rig.replicas.retry_refused()

    assert rig.is_unproven()


def test_who_may_not_note_that_it_may_lead_does_not(tmp_path: Path) -> None:
    files = FailingFiles()
    rig = Rig(tmp_path, files=files)
    rig.order(ME, is_new=True)
    rig.restart(replaced=0)
    rig.order(OTHER)
    files.fail("unlink", "kavka-unproven", errno.ENOSPC)

    assert rig.order(ME, recovery_state=RECOVERING) is ErrorCode.KAFKA_STORAGE_ERROR
    assert not rig.replicas.partitions["visits", 0].role.is_leader
    files.heal()
    assert rig.replicas.retry_refused(), "the controller is to look again"

    assert rig.order(ME, recovery_state=RECOVERING) is ErrorCode.NONE


def test_a_log_without_a_mark_in_a_directory_that_has_an_owner_is_whole(tmp_path: Path) -> None:
    rig = Rig(tmp_path, is_replicated=False)
    rig.order(ME, replicas=(ME,), is_new=True)

    rig.restart()

    assert rig.order(ME) is ErrorCode.NONE
