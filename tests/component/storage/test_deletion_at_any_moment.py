"""A topic is deleted, and made again at once, at each step of whatever works in its log's folder: no disk is blamed.

The deletion runs in a thread of its own. It is let go as far as it gets before the step goes on.
"""

import errno
import logging
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from kavka.protocol.records.batch import Record, build_batch
from kavka.storage.cleaner.log_cleaner import LogCleaner
from kavka.storage.files import AnyPath
from kavka.storage.partition_log import PartitionLog
from tests.support.compaction import InlineWorker, roll
from tests.support.log_managers import ID, FailingFiles, ManagerRig, create_log, read_values
from tests.support.processes import wait_until

TIMEOUT_S = 60.0
OTHER_ID = bytes(reversed(ID))
SETTINGS = {"cleanup.policy": "compact,delete", "segment.bytes": "300", "index.interval.bytes": "50"}


class SteppedFiles(FailingFiles):
    """Calls `before_step(operation, path)` before each operation in a log's folder, from any thread.

    Nothing is fsynced: no power fails here, and there are many steps.
    """

    def __init__(self) -> None:
        super().__init__()
        self.before_step: Callable[[str, str], object] | None = None
        self.fsync = self._on_descriptor("fsync", lambda _: None)  # type: ignore[assignment]  # a double of one instance
        self.exists = self._on_path("exists", Path.exists)  # type: ignore[assignment]  # a double of one instance

    def fsync_directory(self, path: AnyPath) -> None:
        self._check("fsync_directory", str(path))
        if not Path(path).is_dir():
            raise FileNotFoundError(errno.ENOENT, "no such folder", str(path))

    def sync_file_system(self, path: AnyPath, witness: int = -1) -> bool:
        return True

    def _check(self, operation: str, path: str) -> None:
        if self.before_step is not None and "visits-" in path:
            self.before_step(operation, path)
        super()._check(operation, path)

    def _on_path(self, name: str, function: Callable[..., object]) -> Callable[..., object]:
        if name != "exists":
            return super()._on_path(name, function)

        def call(path: AnyPath) -> object:
            self._check(name, str(path))
            return Path(path).exists()

        return call


class Scene:
    """A log that can be flushed, compacted and shortened, and somebody who deletes it at a step of that."""

    def __init__(self, path: Path, step: int) -> None:
        self.files = SteppedFiles()
        self.rig = ManagerRig([path / "a", path / "b"], files=self.files)
        self.rig.overrides["visits"] = SETTINGS
        self.background: list[Callable[[], None]] = []
        self.rig.background = self.background.append
        self.manager = self.rig.start()
        self.log = create_log(self.manager, "visits", 0, ID, is_new=True)
        self.folder = self.log.directory
        self.steps_left = step
        self.deleter: threading.Thread | None = None
        self.again: PartitionLog | None = None
        for number in range(4):
            self.append(self.log, b"key-%d" % (number % 2))
            roll(self.log)

    def append(self, log: PartitionLog, key: bytes) -> None:
        batch = bytearray(build_batch([Record(0, self.rig.now_ms, key, b"of " + log.topic_id)]))
        log.append_as_leader(batch, leader_epoch=0, now_ms=self.rig.now_ms)

    def arm(self) -> None:
        self.files.before_step = self._step

    def _step(self, operation: str, path: str) -> None:
        self.steps_left -= 1
        if self.steps_left or self.deleter is not None:
            return
        self.deleter = threading.Thread(target=self._delete_and_make_again)
        self.deleter.start()
        # A step under the log's lock ends before anything else can be done to the log.
        wait_until(lambda: self.log.lock.locked() or self._deletion_is_on_its_way(), TIMEOUT_S, "no deletion")

    def _deletion_is_on_its_way(self) -> bool:
        assert self.deleter is not None
        return not self.deleter.is_alive() or (self.log.deleting and self.log.flush_lock.locked())

    def _delete_and_make_again(self) -> None:
        assert self.manager.delete([("visits", 0)]) == {}
        self.again = create_log(self.manager, "visits", 0, OTHER_ID, is_new=True)

    def run_background(self) -> None:
        while self.background:
            self.background.pop(0)()


def flush(scene: Scene) -> None:
    scene.log.flush()


def roll_and_flush_in_the_background(scene: Scene) -> None:
    for _ in range(6):
        scene.append(scene.log, b"key")
        scene.run_background()


def flush_each_message(scene: Scene) -> None:
    scene.manager.update_topic_config("visits", SETTINGS | {"flush.messages": "1"})
    scene.append(scene.log, b"key")


def compact(scene: Scene) -> None:
    cleaner = LogCleaner(
        scene.manager,
        scene.rig.broker_config(),
        now_ms=lambda: scene.rig.now_ms,
        start_worker=lambda: InlineWorker(scene.files),
    )
    found = cleaner._take_filthiest()
    if found is not None:
        cleaner._clean(0, found)


def make_topic_ids_durable(scene: Scene) -> None:
    scene.run_background()


def delete_old_segments(scene: Scene) -> None:
    scene.rig.now_ms += 10 * 86_400_000
    scene.manager.retention_pass()


def passes(scene: Scene) -> None:
    scene.manager.update_topic_config("visits", SETTINGS | {"flush.ms": "1000"})
    scene.rig.now_ms += 120_000
    scene.manager.flush_due()
    scene.manager.expire_producers()
    scene.manager.checkpoint_recovery_points()
    scene.manager.checkpoint_high_watermarks()
    scene.manager.checkpoint_clean_offsets(scene.manager.directory_of(scene.log))
    scene.manager.delete_pending()


def truncate(scene: Scene) -> None:
    scene.log.truncate_to(2)


def start_anew(scene: Scene) -> None:
    scene.log.truncate_fully_and_start_at(100)


WORK = [
    flush,
    roll_and_flush_in_the_background,
    flush_each_message,
    compact,
    make_topic_ids_durable,
    delete_old_segments,
    passes,
    truncate,
    start_anew,
]


@pytest.mark.parametrize("work", WORK, ids=lambda work: work.__name__)
def test_a_deletion_at_any_step_blames_no_disk_and_leaves_the_namesake_alone(
    tmp_path: Path, work: Callable[[Scene], None], caplog: pytest.LogCaptureFixture
) -> None:
    step = 0
    while True:
        step += 1
        scene = Scene(tmp_path / str(step), step)
        scene.arm()
        with caplog.at_level(logging.WARNING):
            work(scene)
        scene.files.before_step = None
        if scene.deleter is None:
            scene.manager.close()
            break
        scene.deleter.join()
        scene.run_background()

        assert scene.rig.failures == [], f"step {step}"
        assert caplog.messages == [], f"step {step}"
        assert scene.again is not None, f"step {step}"
        new, fresh = scene.again, {"00000000000000000000.log", "partition.metadata"}
        assert {path.name for path in new.directory.iterdir()} == fresh, f"step {step}"
        scene.append(new, b"key")
        new.flush()
        scene.manager.close()

        again = scene.rig.start()
        log = again.get("visits", 0)
        assert log is not None
        assert (log.topic_id, read_values(log)) == (OTHER_ID, [b"of " + OTHER_ID]), f"step {step}"
        again.delete_pending()
        assert [path.name for place in scene.rig.paths for path in place.glob("visits*")] == ["visits-0"]
        again.close()
    assert step > 1


class Turns:
    """A round and a deletion that rest in turn; each waits until the other does, or has ended.

    The deletion begins as the round is to write its first file. At the `step` of it from making the namesake's folder
    on, the round writes, and finds that the log is gone; one step later it takes away what it has written.
    """

    def __init__(self, scene: Scene, step: int) -> None:
        self.scene = scene
        self.steps_left = step
        self.is_made = False
        self._changed = threading.Condition()
        self._resting: threading.Thread | None = None
        self._one_has_ended = False
        scene.files.before_step = self._step

    def end(self) -> None:
        with self._changed:
            self._one_has_ended = True
            self._changed.notify_all()

    def _step(self, operation: str, path: str) -> None:
        if threading.current_thread() is self.scene.deleter:
            self.is_made |= operation == "mkdir"
            self.steps_left -= self.is_made
            if self.is_made and self.steps_left in {0, -1}:
                self._rest()
        elif path.endswith(".cleaned"):
            if operation == "open" and self.scene.deleter is None:
                self.scene.deleter = threading.Thread(target=self._delete)
                with self._changed:
                    self.scene.deleter.start()
                    self._rest()
            elif operation == "unlink":
                self._rest()

    def _rest(self) -> None:
        me = threading.current_thread()
        with self._changed:
            self._resting = me
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: self._resting is not me or self._one_has_ended, TIMEOUT_S)

    def _delete(self) -> None:
        try:
            self.scene._delete_and_make_again()
        finally:
            self.end()


def test_a_round_that_ends_in_the_namesakes_folder_keeps_nobody_from_making_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    step = 0
    while True:
        step += 1
        scene = Scene(tmp_path / str(step), 0)
        turns = Turns(scene, step)
        compact(scene)
        turns.end()
        assert scene.deleter is not None
        scene.deleter.join()
        scene.files.before_step = None

        assert (scene.rig.failures, caplog.messages) == ([], []), f"step {step}"
        assert scene.again is not None, f"step {step}"
        assert scene.again.directory == scene.folder, f"step {step}"
        fresh = {"00000000000000000000.log", "partition.metadata"}
        assert {path.name for path in scene.again.directory.iterdir()} == fresh, f"step {step}"
        scene.manager.close()
        if turns.steps_left > 0:
            break
    assert step > 1


def test_a_deletion_waits_for_an_fsync_without_holding_up_changes_of_settings(tmp_path: Path) -> None:
    scene = Scene(tmp_path, 1)
    at_fsync, go_on = threading.Event(), threading.Event()

    def wait_once(operation: str, path: str) -> None:
        if not at_fsync.is_set():
            at_fsync.set()
            assert go_on.wait(TIMEOUT_S)

    scene.files.before_step = wait_once
    flusher = threading.Thread(target=scene.log.flush)
    flusher.start()
    assert at_fsync.wait(TIMEOUT_S)
    deleter = threading.Thread(target=scene._delete_and_make_again)
    deleter.start()
    wait_until(lambda: scene.log.deleting, TIMEOUT_S, "no deletion")

    scene.manager.update_topic_config("visits", SETTINGS | {"retention.ms": "1000"})

    assert deleter.is_alive()
    assert scene.folder.exists()
    recovery_point = scene.log.recovery_point
    go_on.set()
    for thread in (flusher, deleter):
        thread.join()
    assert scene.log.recovery_point == recovery_point
    assert scene.rig.failures == []
    scene.manager.close()
