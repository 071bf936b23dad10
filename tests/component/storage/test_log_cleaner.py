"""Which log is compacted when, what becomes of one that can't be, and how the threads share work and rate."""

import errno
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kavka.protocol.records.batch import Record, build_batch
from kavka.storage.cleaner.jobs import BROKEN, CleaningFailed, CleanJob, Reply
from kavka.storage.cleaner.log_cleaner import MOST_FAILURES
from kavka.storage.cleaner.rounds import Outcome
from kavka.storage.cleaner.rounds import clean as run_round
from kavka.storage.cleaner.selection import filthiest, look_at
from kavka.storage.cleaner.worker_process import WorkerDiedError
from kavka.storage.files import Files
from kavka.storage.offset_checkpoint import OffsetCheckpoint
from kavka.storage.partition_log import PartitionLog
from tests.support.cleaner_stage import TIMEOUT_S, FullDisk, Stage, fill
from tests.support.compaction import InlineWorker, records_of, roll
from tests.support.partition_logs import batch_of, spoil
from tests.support.processes import wait_until
from tests.support.running_broker import threads

NOW_MS = 1_700_000_000_000


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path)
    yield made
    made.cleaner.stop()
    made.manager.close()


def test_the_filthiest_log_that_is_dirty_enough_is_taken(stage: Stage) -> None:
    half = stage.log("half", min_cleanable_dirty_ratio="0.4")
    fill(half, 4)
    half.clean_offset = half.published[3][2]
    dirty = stage.log("dirty")
    fill(dirty)
    fill(stage.log("too-clean", min_cleanable_dirty_ratio="1"))
    empty = stage.log("empty")

    looked_at = [look_at(log, NOW_MS) for log in stage.manager.all_logs()]

    assert {each.log.topic: round(each.dirty_ratio, 1) for each in looked_at} == {
        "half": 0.5,
        "dirty": 1.0,
        "too-clean": 1.0,
        "empty": 0.0,
    }
    found = filthiest(looked_at)
    assert found is not None
    assert found.log is dirty
    again = filthiest(each for each in looked_at if each.log is not dirty)
    assert again is not None
    assert again.log is half
    assert filthiest([look_at(empty, NOW_MS)]) is None


@pytest.mark.parametrize(("high_watermark", "end"), [(0, 0), (2, 0), (3, 3), (5, 3), (6, 6)])
def test_what_is_not_replicated_is_not_cleanable(stage: Stage, high_watermark: int, end: int) -> None:
    log = stage.log("t")
    fill(log)
    log.set_high_watermark(high_watermark)
    assert look_at(log, NOW_MS).end_offset == end


def test_records_are_left_for_their_least_lag_and_forced_after_their_longest(stage: Stage) -> None:
    log = stage.log("t", min_compaction_lag_ms="1000", max_compaction_lag_ms="5000", min_cleanable_dirty_ratio="1")
    fill(log, 1, NOW_MS)
    fill(log, 1, NOW_MS + 3000)

    def seen(after_ms: int) -> tuple[int, bool]:
        found = look_at(log, NOW_MS + after_ms)
        return found.end_offset, found.is_due

    assert seen(500) == (0, False)
    assert seen(1000) == (3, False)
    assert seen(4000) == (6, False)
    assert seen(5001) == (6, True)


def open_transaction(stage: Stage, log: PartitionLog) -> None:
    records = [Record(0, NOW_MS, b"open", b"")]
    batch = build_batch(records, producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    log.append_as_leader(bytearray(batch), leader_epoch=0, now_ms=NOW_MS)


def young_records(stage: Stage, log: PartitionLog) -> None:
    stage.rig.overrides["t"]["min.compaction.lag.ms"] = "1000"
    stage.manager.update_topic_config("t", stage.rig.overrides["t"])


@pytest.mark.parametrize("hold", [open_transaction, young_records], ids=lambda hold: hold.__name__)
@pytest.mark.parametrize("ended", ["DeleteRecords", "a full map"])
def test_a_segment_that_is_dirty_from_its_middle_on_waits_until_it_is_cleanable_to_its_end(
    stage: Stage, hold: Callable[[Stage, PartitionLog], None], ended: str
) -> None:
    log = stage.log("t", cleanup_policy="compact,delete", retention_ms="-1", max_compaction_lag_ms="1000000")
    for number in range(5):
        log.append_as_leader(batch_of(b"%d" % number, timestamp_ms=NOW_MS), leader_epoch=0, now_ms=NOW_MS)
    hold(stage, log)
    roll(log)
    fill(log)
    if ended == "DeleteRecords":
        log.delete_records_before(3)
    else:
        log.clean_offset = 3

    found = look_at(log, NOW_MS)

    assert (found.first_dirty_offset, found.end_offset, found.cleanable_bytes) == (3, 0, 0)
    assert filthiest([found]) is None


def test_a_truncation_between_the_look_and_the_round_costs_that_round(stage: Stage) -> None:
    log = stage.log("t", min_cleanable_dirty_ratio="0.01")
    fill(log)
    found = look_at(log, NOW_MS)
    log.truncate_to(4)
    fill(log)

    ended = run_round(found, InlineWorker(log.files), stage.rig.broker_config(), NOW_MS, float("inf"))

    assert ended.outcome is Outcome.PASSED


@pytest.mark.parametrize(("clean", "first_dirty"), [(None, 2), (1, 2), (4, 4), (6, 6), (7, 2)])
def test_a_checkpoint_outside_the_log_is_not_believed(stage: Stage, clean: int | None, first_dirty: int) -> None:
    log = stage.log("t", cleanup_policy="compact,delete")
    fill(log)
    log.delete_records_before(2)
    log.clean_offset = clean
    assert look_at(log, NOW_MS).first_dirty_offset == first_dirty


def test_logs_are_compacted_and_the_checkpoint_says_how_far(stage: Stage, tmp_path: Path) -> None:
    log = stage.log("t")
    fill(log)
    stage.log("not-compacted", cleanup_policy="delete")

    stage.cleaner.start()

    wait_until(lambda: log.clean_offset == 6, TIMEOUT_S, "not compacted")
    checkpoint = OffsetCheckpoint(tmp_path / "cleaner-offset-checkpoint", Files())
    wait_until(lambda: checkpoint.read() == {("t", 0): 6}, TIMEOUT_S, "no checkpoint")
    assert [record.value for record in records_of(log)] == [b"5"]
    assert len(stage.workers) == 1
    stage.cleaner.stop()
    assert stage.workers[0].stopped
    [last] = stage.cleaner.last_rounds()
    assert last.result.records_kept == 1

    stage.manager.close()
    reopened = stage.rig.start().get("t", 0)
    assert reopened is not None
    assert reopened.clean_offset == 6


def test_no_worker_is_started_without_need(stage: Stage) -> None:
    stage.log("t")
    stage.cleaner.start()
    wait_until(lambda: stage.cleaner.looked_at_ms == stage.rig.now_ms, TIMEOUT_S, "not looked at")
    assert stage.workers == []


def test_a_corrupt_log_is_given_up_once_and_the_others_go_on(stage: Stage, tmp_path: Path) -> None:
    corrupt, sound = stage.log("corrupt"), stage.log("sound")
    fill(corrupt)
    fill(sound)
    spoil(tmp_path / "corrupt-0" / f"{0:020d}.log", 70)

    stage.cleaner.start()

    wait_until(lambda: sound.clean_offset == 6, TIMEOUT_S, "the sound log isn't compacted")
    wait_until(lambda: stage.cleaner.uncleanable_partitions() == [corrupt], TIMEOUT_S, "not given up")
    assert stage.cleaner.uncleanable_bytes() == corrupt.size_bytes > 0
    jobs = sum(job.topic == "corrupt" for worker in stage.workers for job in worker.jobs)
    fill(sound)
    wait_until(lambda: sound.clean_offset == 12, TIMEOUT_S, "the sound log isn't compacted")
    assert jobs == sum(job.topic == "corrupt" for worker in stage.workers for job in worker.jobs) == 1


class Dying(InlineWorker):
    def run(self, job: CleanJob) -> Iterator[Reply]:
        self.jobs.append(job)
        raise WorkerDiedError("gone")


class Wrong(InlineWorker):
    def run(self, job: CleanJob) -> Iterator[Reply]:
        self.jobs.append(job)
        yield CleaningFailed(BROKEN, "a mistake")


def test_a_worker_that_fails_again_and_again_is_not_asked_for_ever(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kavka.storage.cleaner.log_cleaner.LEAST_PAUSE_MS", 1)
    stage.make_worker = Wrong
    log = stage.log("t")
    fill(log)

    stage.cleaner.start()

    wait_until(lambda: stage.cleaner.uncleanable_partitions() == [log], TIMEOUT_S, "tried for ever")
    assert sum(len(worker.jobs) for worker in stage.workers) == MOST_FAILURES
    assert len(stage.workers) == 1


def test_a_worker_that_dies_is_replaced_and_each_time_later(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kavka.storage.cleaner.log_cleaner.LEAST_PAUSE_MS", 1)
    times: list[float] = []

    class Noting(Dying):
        """Notes when it is asked, so that nobody has to look in time."""

        def run(self, job: CleanJob) -> Iterator[Reply]:
            times.append(time.monotonic())
            return super().run(job)

    stage.make_worker = Noting
    log = stage.log("t")
    fill(log)
    stage.cleaner.start()

    wait_until(lambda: len(times) >= 4, TIMEOUT_S, "no other worker")
    stage.make_worker = InlineWorker

    wait_until(lambda: log.clean_offset == 6, TIMEOUT_S, "not compacted")
    # The backoff of 20 ms, doubled; a busy machine adds to it.
    assert all(times[number + 1] - times[number] >= 0.02 * 2**number for number in range(3))
    assert all(worker.stopped for worker in stage.workers[:4])


class BrokenDisk(FullDisk):
    error = errno.EIO


def test_a_full_disk_passes(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kavka.storage.cleaner.log_cleaner.LEAST_PAUSE_MS", 1)
    stage.make_worker = FullDisk
    log = stage.log("t")
    fill(log)

    stage.cleaner.start()

    wait_until(lambda: stage.workers and len(stage.workers[0].jobs) > 2 * MOST_FAILURES, TIMEOUT_S, "given up")
    assert stage.rig.failures == []
    assert stage.cleaner.uncleanable_partitions() == []
    stage.workers[0].run = InlineWorker(Files()).run  # type: ignore[method-assign]  # there is room again
    wait_until(lambda: log.clean_offset == 6, TIMEOUT_S, "not compacted")


def test_a_broken_disk_takes_the_directory_offline(stage: Stage) -> None:
    stage.make_worker = BrokenDisk
    fill(stage.log("t"))
    stage.cleaner.start()
    wait_until(lambda: bool(stage.rig.failures), TIMEOUT_S, "the directory is still online")


def test_a_disk_that_cannot_be_read_when_logs_are_looked_at_takes_the_directory_offline(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(*_: object) -> None:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr("kavka.storage.cleaner.log_cleaner.look_at", unreadable)
    fill(stage.log("t"))
    stage.cleaner.start()
    wait_until(lambda: bool(stage.rig.failures), TIMEOUT_S, "the directory is still online")


def test_the_rate_is_shared_by_the_workers_that_work(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "log.cleaner.threads=2", "log.cleaner.io.max.bytes.per.second=1000")
    seen: list[float] = []

    class Meeting(InlineWorker):
        """Ends its job only when both are at work, and one has been told so."""

        def run(self, job: CleanJob) -> Iterator[Reply]:
            seen.append(job.bytes_per_second)
            wait_until(lambda: len(stage.workers) == 2 and 500.0 in self.rates, TIMEOUT_S, "the other doesn't come")
            yield from super().run(job)

    stage.make_worker = Meeting
    logs = [stage.log("a"), stage.log("b")]
    for log in logs:
        fill(log)
    stage.cleaner.start()
    wait_until(lambda: all(log.clean_offset == 6 for log in logs), TIMEOUT_S, "not compacted")
    stage.cleaner.reconfigure(stage.rig.broker_config("log.cleaner.io.max.bytes.per.second=77"))
    stage.cleaner.stop()
    stage.manager.close()
    assert sorted(seen) in ([500.0, 1000.0], [500.0, 500.0])


def test_threads_end_when_fewer_are_wanted(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "log.cleaner.threads=3")
    stage.cleaner.start()
    stage.cleaner.reconfigure(stage.rig.broker_config("log.cleaner.threads=1", "log.cleaner.backoff.ms=20"))
    log = stage.log("t")
    fill(log)
    wait_until(lambda: log.clean_offset == 6, TIMEOUT_S, "not compacted")
    alive = ("log-cleaner-1", "log-cleaner-2")
    wait_until(lambda: not any(each.name in alive for each in threading.enumerate()), TIMEOUT_S, "still there")
    assert stage.cleaner.dead_threads == 0
    stage.cleaner.stop()
    stage.manager.close()


def test_what_is_prepared_counts_only_when_it_is_applied(stage: Stage) -> None:
    more = stage.rig.broker_config(
        "log.cleaner.threads=2", "log.cleaner.backoff.ms=20", "log.cleaner.io.max.bytes.per.second=77"
    )
    log = stage.log("t")
    stage.cleaner.start()

    stage.cleaner.prepare(more)

    fill(log)
    wait_until(lambda: log.clean_offset == 6, TIMEOUT_S, "not compacted")
    [worker] = stage.workers
    assert 77.0 not in [*worker.rates, *(job.bytes_per_second for job in worker.jobs)]
    stage.cleaner.keep_only([stage.rig.broker_config()])
    wait_until(lambda: not threads("log-cleaner-1"), TIMEOUT_S, "still there")
    stage.cleaner.prepare(more)
    assert threads("log-cleaner-1")
    stage.cleaner.reconfigure(more)
    fill(log)
    wait_until(lambda: log.clean_offset == 12, TIMEOUT_S, "not compacted")
    assert {job.bytes_per_second for each in stage.workers for job in each.jobs[-1:]} & {77.0}


def test_a_thread_that_is_wanted_again_while_it_ends_is_there(stage: Stage) -> None:
    more, fewer = (stage.rig.broker_config(f"log.cleaner.threads={count}") for count in (2, 1))
    stage.cleaner.start()
    for _ in range(200):
        stage.cleaner.keep_only([fewer])
        stage.cleaner.prepare(more)
    stage.cleaner.reconfigure(more)
    assert threads("log-cleaner-1")
    stage.cleaner.stop()
    assert not threads("log-cleaner-1")


def test_a_round_is_logged_with_what_its_passes_took(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    log = stage.log("t")
    fill(log)
    stage.cleaner.start()
    line = re.compile(r"log compacted partition=t-0 from=0 to=6 .* map_seconds=\d+\.\d{3} clean_seconds=\d+\.\d{3}\n")
    wait_until(lambda: line.search(caplog.text) is not None, TIMEOUT_S, "nothing is logged")


def test_nothing_is_compacted_where_the_cleaner_is_off(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "log.cleaner.enable=false")
    log = stage.log("t")
    fill(log)
    stage.cleaner.start()
    stage.cleaner.reconfigure(stage.rig.broker_config("log.cleaner.enable=false", "log.cleaner.threads=2"))
    stage.cleaner.stop()
    stage.manager.close()
    assert stage.workers == []
    assert log.clean_offset is None
