"""The runtime over real partitions and logs: what fails on disk, and leaderships that come and go."""

import errno
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kavka.broker.coordination.coordinated_log import CoordinatedLog
from kavka.broker.partitions.partition import Partition
from kavka.broker.partitions.partition_waits import committed
from kavka.broker.partitions.replica_manager import ReplicaManager
from kavka.broker.waiting.purgatory import DelayedOperation, Purgatory, WatchList
from kavka.broker.waiting.timer import Timer
from kavka.coordinator.runtime.batches import batch_of
from kavka.coordinator.runtime.result import Producer, Result
from kavka.coordinator.runtime.shard_runner import ShardState
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from kavka.protocol.messages.stop_replica import StopReplicaPartitionState, StopReplicaRequest, StopReplicaTopicState
from kavka.protocol.records.header import NO_SEQUENCE
from kavka.storage.environment import at_once
from tests.support.broker_handlers import topic_id_of
from tests.support.log_managers import FailingFiles, ManagerRig
from tests.support.tiny_shard import NOW_MS, Answers, TinyWorld, answer_with, not_refused, record_of

TOPIC = "__consumer_offsets"
ME, OTHER = 1, 2
COMMIT_TIMEOUT_MS = 5000


class Rig:
    """A runtime that hears of leaderships from a replica manager over logs in a directory."""

    def __init__(self, directory: Path, *settings: str, files: FailingFiles | None = None, **configs: str) -> None:
        self.directory, self.settings = directory, settings
        self.files = files or FailingFiles()
        self.configs = {"cleanup.policy": "compact"} | {name.replace("_", "."): text for name, text in configs.items()}
        self.start()

    def start(self) -> None:
        self.logs = ManagerRig([self.directory], *self.settings, files=self.files)
        self.logs.overrides[TOPIC] = self.configs
        self.world = TinyWorld()
        self.purgatory = Purgatory(Timer(self.world.died.append))
        self.coordinated: dict[Partition, CoordinatedLog] = {}
        self.replicas = ReplicaManager(ME, self.logs.start(), self._leadership_changed)
        self.epoch = 0

    def _leadership_changed(self, partition: Partition, is_leader: bool) -> None:
        if not is_leader:
            self.world.runtime.resigns(partition.index)
            return
        coordinated = self.coordinated.setdefault(
            partition,
            CoordinatedLog(
                partition, self.purgatory, lambda: NOW_MS, lambda: COMMIT_TIMEOUT_MS, self.world.jobs.append
            ),
        )
        self.world.runtime.leads(partition.index, partition.role.leader_epoch, coordinated)

    def order(self, leader: int, isr: tuple[int, ...] = (ME,)) -> None:
        """The controller gives partition 0 to `leader`, under the next epoch."""
        self.epoch += 1
        state = LeaderAndIsrPartitionState(
            partition_index=0,
            controller_epoch=1,
            leader=leader,
            leader_epoch=self.epoch,
            isr=list(isr),
            partition_epoch=0,
            replicas=list(isr),
        )
        topic = LeaderAndIsrTopicState(topic_name=TOPIC, topic_id=topic_id_of(TOPIC), partition_states=[state])
        self.replicas.leader_and_isr(
            LeaderAndIsrRequest(
                controller_id=ME, controller_epoch=1, broker_epoch=1, topic_states=[topic], live_leaders=[]
            )
        )

    def lead(self, *isr: int) -> None:
        self.order(ME, isr or (ME,))
        self.world.wait_for(ShardState.ACTIVE)

    @property
    def partition(self) -> Partition:
        return self.replicas.partitions[TOPIC, 0]

    def kill_and_restart(self) -> None:
        """Load anew from what is on disk."""
        self.world.runtime.stop()
        self.logs.kill()
        self.start()
        self.lead()

    def stop(self) -> None:
        self.world.runtime.stop()
        self.logs.manager.close()


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Rig]]:
    rigs: list[Rig] = []

    def make_one(*settings: str, **configs: str) -> Rig:
        rig = Rig(tmp_path / "data", *settings, **dict[str, Any](configs))
        rigs.append(rig)
        return rig

    yield make_one
    for rig in rigs:
        rig.stop()


def test_what_was_answered_is_there_after_a_kill(make: Callable[..., Rig]) -> None:
    rig = make()
    rig.lead()
    for number in range(50):
        assert rig.world.put(f"g{number % 7}", number).replies == [number]
    rig.world.put("g3", None)
    before = dict(rig.world.offsets())

    rig.kill_and_restart()

    assert rig.world.offsets() == before
    assert "g3" not in before


def test_a_full_disk_leaves_memory_equal_to_the_log(make: Callable[..., Rig]) -> None:
    rig = make()
    rig.lead()
    rig.world.put("g", 1)
    rig.files.fail("pwrite", ".log", errno.ENOSPC)

    refused = rig.world.put("g", 2)
    told = Answers()
    failed = rig.world.put("g", 3, failed=lambda error: Result(replies=[(told.reply, error.code)]))

    assert refused.errors == [ErrorCode.NOT_COORDINATOR]
    assert (failed.replies, failed.errors, told.replies) == ([], [], [ErrorCode.NOT_COORDINATOR])
    assert rig.world.offsets() == {"g": 1}
    rig.files.heal()
    assert rig.world.put("g", 4).replies == [4]
    rig.kill_and_restart()
    assert rig.world.offsets() == {"g": 4}


def test_records_that_are_too_large_are_refused_and_forgotten(make: Callable[..., Rig]) -> None:
    rig = make(max_message_bytes="200")
    rig.lead()

    refused = rig.world.put("g" * 300, 1)

    assert refused.errors == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert rig.world.offsets() == {}
    assert rig.world.put("g", 1).replies == [1]


def test_an_append_whose_flush_fails_counts_as_appended_but_is_not_acknowledged(make: Callable[..., Rig]) -> None:
    rig = make(flush_messages="1")
    rig.lead()
    rig.files.fail("fsync", ".log", errno.EIO)

    answers = rig.world.put("g", 1)
    assert (answers.replies, answers.errors, rig.world.offsets()) == ([], [], {"g": 1})
    assert rig.partition.leader_log().log_end_offset == 1
    rig.world.run_jobs()
    assert (answers.replies, answers.errors) == ([], [])
    # The log directory has failed by that, which the broker hears of a moment later.
    rig.replicas.directory_failed([rig.directory])

    assert (answers.replies, answers.errors) == ([], [ErrorCode.NOT_COORDINATOR])


def test_the_shard_works_on_while_its_log_is_flushed_and_nobody_is_answered_before(make: Callable[..., Rig]) -> None:
    rig = make(flush_messages="1")
    rig.lead()

    first = rig.world.put("g", 1)
    synced = rig.files.calls["fsync"]
    second, read = rig.world.put("h", 2), rig.world.get("g")
    assert rig.files.calls["fsync"] == synced
    assert [each.replies for each in (first, second, read)] == [[], [], []]
    assert len(rig.world.jobs) == 1, "one flush is enough for all"

    rig.world.run_jobs()
    assert [each.replies for each in (first, second, read)] == [[1], [2], [1]]
    assert rig.files.calls["fsync"] > synced
    assert rig.world.get("h").replies == [2]
    assert rig.world.jobs == []


def test_a_flush_of_a_log_that_is_being_deleted_ends_and_so_does_what_waits_for_it(make: Callable[..., Rig]) -> None:
    rig = make(flush_messages="1")
    rig.lead()
    answers = rig.world.put("g", 1)
    assert len(rig.world.jobs) == 1

    rig.partition.leader_log().begin_deletion()
    rig.world.jobs.pop(0)()

    assert rig.world.jobs == []
    assert (answers.replies, answers.errors) == ([], [ErrorCode.NOT_COORDINATOR])


def test_a_flush_that_is_carried_out_at_once_goes_on_while_the_log_is_written_to(
    make: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = make(flush_messages="1")
    rig.lead()
    source = rig.partition.leader_log()
    rounds = sys.getrecursionlimit() // 2
    fsync = rig.files.fsync

    def written_to_meanwhile(fd: int) -> None:
        if source.log_end_offset < rounds and source.log_end_offset - source.recovery_point < 2:
            rig.world.put("g", source.log_end_offset)
        fsync(fd)

    answers = rig.world.put("g", 0)
    monkeypatch.setattr(rig.files, "fsync", written_to_meanwhile)
    monkeypatch.setattr(rig.coordinated[rig.partition], "_execute", at_once)
    rig.world.run_jobs()

    assert source.recovery_point == source.log_end_offset >= rounds
    assert answers.replies == [0]


def test_after_a_flush_that_failed_nobody_is_answered_by_a_later_one(make: Callable[..., Rig]) -> None:
    rig = make(flush_messages="1")
    rig.lead()
    rig.files.fail("fsync", ".log", errno.EIO)
    first = rig.world.put("g", 1)
    rig.world.run_jobs()
    assert (first.replies, first.errors) == ([], [])

    rig.files.heal()
    second = rig.world.put("g", 2)
    rig.world.run_jobs()
    assert (first.replies, second.replies, second.errors) == ([], [], [ErrorCode.NOT_COORDINATOR])


def test_with_more_messages_a_flush_only_the_last_of_them_waits(make: Callable[..., Rig]) -> None:
    rig = make(flush_messages="3")
    rig.lead()
    answers = [rig.world.put("g", number) for number in range(3)]
    assert [each.replies for each in answers] == [[0], [1], []]
    rig.world.run_jobs()
    assert answers[2].replies == [2]


def test_who_waits_for_a_flush_is_answered_when_somebody_else_has_just_made_it(make: Callable[..., Rig]) -> None:
    """As a marker, for which nobody has asked for a flush before it waits."""
    rig = make(flush_messages="1")
    rig.lead()
    source = rig.partition.leader_log()

    class PurgatoryAtFlush(Purgatory):
        def park(self, operation: DelayedOperation, watching: Sequence[WatchList], timeout_ms: float) -> bool:
            ended = super().park(operation, watching, timeout_ms)
            source.flush()
            return ended

    purgatory = PurgatoryAtFlush(Timer(rig.world.died.append))
    coordinated = CoordinatedLog(
        rig.partition, purgatory, lambda: NOW_MS, lambda: COMMIT_TIMEOUT_MS, rig.world.jobs.append
    )
    end_offset = coordinated.append(batch_of([record_of("g", 1)], NOW_MS), rig.epoch)
    answers = Answers()

    coordinated.when_committed(end_offset, answers.end)

    assert (answers.replies, answers.errors, rig.world.jobs, purgatory.size) == ([None], [], [], 0)


def test_a_lost_leadership_answers_what_waits_and_a_regained_one_loads(make: Callable[..., Rig]) -> None:
    rig = make()
    rig.lead()
    rig.world.put("g", 1)
    waiting = Answers()
    rig.world.runtime.run(0, lambda shard: shard.wait(waiting.reply), waiting.refuse)

    rig.order(OTHER, (OTHER, ME))
    rig.world.run_jobs()
    assert (waiting.replies, rig.world.put("g", 2).errors) == (
        [ErrorCode.NOT_COORDINATOR],
        [ErrorCode.NOT_COORDINATOR],
    )

    rig.lead()
    assert rig.world.offsets() == {"g": 1}
    assert rig.world.put("g", 3).replies == [3]


def test_a_partition_that_is_stopped_or_deleted_is_coordinated_no_more(make: Callable[..., Rig]) -> None:
    rig = make()
    rig.lead()
    rig.world.put("g", 1)
    state = StopReplicaPartitionState(partition_index=0, leader_epoch=-2, delete_partition=True)

    rig.replicas.stop_replica(
        StopReplicaRequest(
            controller_id=ME,
            controller_epoch=1,
            broker_epoch=1,
            topic_states=[StopReplicaTopicState(topic_name=TOPIC, partition_states=[state])],
        )
    )

    assert rig.world.put("g", 2).errors == [ErrorCode.NOT_COORDINATOR]
    rig.lead()
    assert rig.world.offsets() == {}


def test_a_failed_directory_takes_its_shards_along(make: Callable[..., Rig]) -> None:
    rig = make()
    rig.lead()

    rig.replicas.directory_failed([rig.directory])

    assert rig.world.put("g", 2).errors == [ErrorCode.NOT_COORDINATOR]


def test_too_few_replicas_in_sync_refuse_and_never_more_are_asked_for_than_there_are(make: Callable[..., Rig]) -> None:
    rig = make(min_insync_replicas="2")
    rig.lead(ME)
    assert rig.world.put("g", 1).replies == [1]

    rig.lead(ME, OTHER)
    rig.partition.role = rig.partition.role._replace(isr=(ME,), maximal_isr=(ME,))

    assert rig.world.put("g", 2).errors == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert rig.world.offsets() == {"g": 1}


def test_answers_wait_for_the_replicas(make: Callable[..., Rig]) -> None:
    rig = make()
    rig.lead(ME, OTHER)

    written, read = rig.world.put("g", 1), rig.world.get("g")
    assert (written.replies, read.replies, rig.purgatory.size) == ([], [], 2)
    assert rig.partition.follower_fetched(OTHER, 1, leader_epoch=rig.partition.role.leader_epoch, leader_end_offset=1)
    committed((rig.partition,))

    assert (written.replies, read.replies, rig.purgatory.size) == ([1], [1], 0)


def test_answers_that_wait_too_long_or_lose_their_leader_are_refused(make: Callable[..., Rig]) -> None:
    rig = make()
    rig.lead(ME, OTHER)
    late = rig.world.put("g", 1)
    rig.purgatory.expire_all()
    assert late.errors == [ErrorCode.COORDINATOR_NOT_AVAILABLE]

    deposed = rig.world.put("g", 2)
    rig.order(OTHER, (OTHER, ME))

    assert deposed.errors == [ErrorCode.NOT_COORDINATOR]


def test_transactional_offsets_survive_with_their_fate(make: Callable[..., Rig]) -> None:
    rig = make()
    rig.lead()
    ended = Answers()
    for producer_id, group in ((1, "kept"), (2, "dropped"), (3, "open")):
        guard = rig.partition.leader_log().verify(producer_id, 0, NO_SEQUENCE, NOW_MS, has_own_epoch=False)
        result = Result([record_of(group, 5)], producer=Producer(producer_id, 0), guard=guard)
        rig.world.runtime.run(0, partial(answer_with, result), not_refused)
    assert rig.partition.leader_log().last_stable_offset == 0
    rig.world.runtime.end_transaction(0, Producer(1, 0), 0, True, ended.end)
    rig.world.runtime.end_transaction(0, Producer(2, 0), 0, False, ended.end)

    rig.kill_and_restart()

    (shard,) = rig.world.runtime.shards()
    assert (shard.offsets, shard.pending) == ({"kept": 5}, {3: {"open": 5}})
    assert ended.replies == [None, None]
    assert rig.partition.leader_log().last_stable_offset == 2


def test_a_hundred_thousand_records_load_in_slices(make: Callable[..., Rig]) -> None:
    rig = make(segment_bytes="1000000")
    rig.lead()
    for first in range(0, 100_000, 1000):
        records = [record_of(f"g{number % 777}", number) for number in range(first, first + 1000)]
        rig.world.runtime.run(0, partial(answer_with, Result(records)), not_refused)

    rig.kill_and_restart()

    assert rig.world.offsets() == {f"g{number % 777}": number for number in range(99_223, 100_000)}
    (shard,) = rig.world.runtime.shards()
    assert shard.replayed == 100_000
    assert rig.world.runtime.load_times.count == 1
