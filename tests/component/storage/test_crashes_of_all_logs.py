"""A broker's directories after a power failure or a kill -9 at any moment: what was flushed is there, and no more than
what was appended; a clean stop loses nothing.
"""

import random
from pathlib import Path

import pytest

from kavka.storage.log_closing import SYNC_AT_ONCE_FROM
from kavka.storage.log_directory import CLEAN_SHUTDOWN_FILE
from kavka.storage.offset_checkpoint import HIGH_WATERMARK_FILE, OffsetCheckpoint
from tests.support.crash_tree import CrashTree, SnapshotTree
from tests.support.log_managers import ID, ManagerRig, append, create_log, read_values

PARTITIONS = 3
MANY = SYNC_AT_ONCE_FROM + 4


class Story:
    """What happened to a broker: the values that each partition took, and how many of them were flushed."""

    def __init__(self, rig: ManagerRig, chance: random.Random, partitions: int) -> None:
        self.rig = rig
        self.chance = chance
        self.appended: list[list[bytes | None]] = [[] for _ in range(partitions)]
        self.flushed = [0] * partitions

    def begin(self) -> None:
        manager = self.rig.start()
        manager.create([("visits", partition, ID) for partition in range(len(self.appended))])

    def step(self) -> None:
        manager = self.rig.manager
        partition = self.chance.randrange(len(self.appended))
        log = create_log(manager, "visits", partition, ID)
        self.rig.now_ms += 700
        action = self.chance.random()
        if action < 0.6:
            value = b"%d" % len(self.appended[partition])
            append(log, value, timestamp_ms=self.rig.now_ms)
            self.appended[partition].append(value)
            log.advance_high_watermark(log.log_end_offset)
        elif action < 0.75:
            log.flush()
            self.flushed[partition] = len(self.appended[partition])
        elif action < 0.9:
            manager.checkpoint_recovery_points()
        else:
            manager.checkpoint_high_watermarks()

    def check(self, *, nothing_lost: bool) -> None:
        """What the next start finds; the story goes on from there."""
        manager = self.rig.start()
        assert self.rig.failures == []
        for partition, appended in enumerate(self.appended):
            log = create_log(manager, "visits", partition, ID)
            found = read_values(log)
            assert found == appended[: len(found)]
            assert len(found) >= (len(appended) if nothing_lost else self.flushed[partition])
            assert log.log_start_offset <= log.high_watermark <= log.log_end_offset == len(found)
            self.appended[partition] = found
            self.flushed[partition] = min(self.flushed[partition], len(found))


@pytest.mark.parametrize("seed", range(25))
def test_a_power_failure_keeps_what_was_flushed(tmp_path: Path, seed: int) -> None:
    story = _story(tmp_path, seed)
    for _ in range(3):
        for _ in range(story.chance.randrange(60)):
            story.step()
        files = story.rig.files
        assert isinstance(files, CrashTree)
        after = files.crash(story.chance)
        story.rig.kill()
        story.rig.files = after
        story.check(nothing_lost=False)


@pytest.mark.parametrize("seed", range(10))
def test_a_kill_loses_nothing(tmp_path: Path, seed: int) -> None:
    story = _story(tmp_path, seed)
    for _ in range(3):
        for _ in range(story.chance.randrange(60)):
            story.step()
        files = story.rig.files
        assert isinstance(files, CrashTree)
        after = files.kill()
        story.rig.kill()
        story.rig.files = after
        story.check(nothing_lost=True)


@pytest.mark.parametrize("partitions", [PARTITIONS, MANY])
@pytest.mark.parametrize("seed", range(10))
def test_a_power_failure_after_a_clean_stop_loses_nothing(tmp_path: Path, seed: int, partitions: int) -> None:
    story = _story(tmp_path, seed, partitions)
    for _ in range(story.chance.randrange(20 * partitions)):
        story.step()
    story.rig.manager.close()
    files = story.rig.files
    assert isinstance(files, CrashTree)
    story.rig.files = files.crash(story.chance)
    story.check(nothing_lost=True)
    assert all(log.recovered_segments == 0 for log in story.rig.manager.all_logs())
    story.rig.manager.close()


@pytest.mark.parametrize("seed", range(6))
def test_a_power_failure_in_the_middle_of_a_stop_keeps_what_was_flushed_and_with_the_mark_everything(
    tmp_path: Path, seed: int
) -> None:
    files = SnapshotTree(random.Random(seed))
    story = _story(tmp_path, seed, MANY, files)
    for _ in range(100):
        story.step()
    files.snapshots.clear()
    story.rig.manager.close()
    appended, flushed = story.appended, story.flushed
    marked = [after.exists(tmp_path / CLEAN_SHUTDOWN_FILE) for after in files.snapshots]
    assert marked[-1]
    for moment in {marked.index(True), *story.chance.sample(range(len(marked)), 8)}:
        story.appended, story.flushed = [list(values) for values in appended], list(flushed)
        story.rig.files = files.snapshots[moment]
        story.check(nothing_lost=marked[moment])
        story.rig.kill()


@pytest.mark.parametrize("seed", range(20))
def test_a_checkpoint_is_the_old_one_or_the_new_one(tmp_path: Path, seed: int) -> None:
    files = SnapshotTree(random.Random(seed))
    path = tmp_path / HIGH_WATERMARK_FILE
    checkpoint = OffsetCheckpoint(path, files)
    for offset in range(3):
        files.snapshots.clear()
        checkpoint.write({("visits", partition): offset for partition in range(50)})
        assert len(files.snapshots) >= 4
        for after in files.snapshots:
            found = OffsetCheckpoint(path, after).read()
            assert set(found.values()) <= {offset - 1, offset}
            assert len(found) == 50 or offset == 0
        assert set(OffsetCheckpoint(path, files.crash(files.chance)).read().values()) == {offset}


def _story(tmp_path: Path, seed: int, partitions: int = PARTITIONS, files: CrashTree | None = None) -> Story:
    rig = ManagerRig([tmp_path], files=files or CrashTree())
    rig.overrides["visits"] = {"segment.ms": "10000", "retention.ms": "-1"}
    story = Story(rig, random.Random(seed), partitions)
    story.begin()
    return story
