"""A truncation, and what is written behind it, at each step of a compaction round: the log holds what it was given.

A round works from a look at the log. Segments that are cut and filled again meanwhile may begin where they began
before, so their base offsets don't tell that what was cleaned is not what is there now.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from kavka.protocol.records.batch import Record, build_batch
from kavka.storage.files import AnyPath
from kavka.storage.partition_log import PartitionLog
from tests.support.compaction import InlineWorker, compact, records_of, roll
from tests.support.log_managers import FailingFiles
from tests.support.partition_logs import START_MS, Jobs, append_batch, open_log

RECORDS = 12
KEYS = 3
SEGMENT_RECORDS = 4
CUTS = (0, 6, 2 * SEGMENT_RECORDS, RECORDS)
"""Offsets to truncate to: at and within segments. All are below the high watermark, as after an unclean election."""
Given = dict[int, tuple[bytes | None, bytes | None]]
"""Key and value by offset."""


class Steps(FailingFiles):
    """Counts the operations on files outside of the log's lock, and calls `act` before one of them."""

    def __init__(self) -> None:
        super().__init__()
        self.log: PartitionLog | None = None
        self.act: Callable[[], object] | None = None
        self.at = -1
        self.count = 0

    def step(self) -> None:
        """Where something else may come between."""
        if self.log is None or self.log.lock.locked():
            return
        self.count += 1
        if self.count == self.at and self.act is not None:
            log, self.log = self.log, None
            self.act()
            self.log = log

    def fsync_directory(self, path: AnyPath) -> None:
        self._check("fsync_directory", str(path))

    def _check(self, operation: str, path: str) -> None:
        self.step()
        super()._check(operation, path)


class Scene:
    """A log of three full segments, and what was given to it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.files = Steps()
        self.files.fsync = lambda _: None
        self.jobs = Jobs()
        self.log = self._open()
        self.given: Given = {}
        self.fill(RECORDS, b"old")

    def reopened(self) -> "Scene":
        """As after the broker was killed."""
        self.log.close(clean=False)
        self.log = self._open(clean=False)
        return self

    def fill(self, end_offset: int, value: bytes) -> None:
        """Append up to there, with a roll after every fourth record. New records have new keys: no round drops them."""
        while (offset := self.log.log_end_offset) < end_offset:
            key = offset if value == b"new" else offset % KEYS
            record = Record(0, START_MS + offset, value + b"-key-%d" % key, value + b"-%d" % offset)
            append_batch(self.log, bytearray(build_batch([record])))
            self.given[offset] = (record.key, record.value)
            if self.log.log_end_offset % SEGMENT_RECORDS == 0:
                roll(self.log)

    def cut_and_fill(self, offset: int) -> None:
        self.log.truncate_to(offset)
        self.given = {each: record for each, record in self.given.items() if each < self.log.log_end_offset}
        self.fill(RECORDS + SEGMENT_RECORDS, b"new")

    def start_anew(self, offset: int) -> None:
        self.log.truncate_fully_and_start_at(offset)
        self.given = {}
        self.fill(RECORDS + SEGMENT_RECORDS, b"new")

    def round_with(self, act: Callable[[], object] | None, at: int) -> int:
        """Compact, with `act` before the step of that number; how many steps there were."""
        self.files.log, self.files.act, self.files.at, self.files.count = self.log, act, at, 0
        compact(self.log, worker=InlineWorker(self.files, before_reply=lambda _: self.files.step()))
        self.files.log = None
        return self.files.count

    def _open(self, *, clean: bool = True) -> PartitionLog:
        return open_log(
            self.directory, files=self.files, jobs=self.jobs, clean=clean, cleanup_policy="compact", segment_bytes=10000
        )


def kept_by_the_round(given: Given) -> set[int]:
    """The offsets that a round over all that was given would keep."""
    newest = {key: offset for offset, (key, _) in sorted(given.items())}
    return set(newest.values())


@pytest.mark.parametrize("how", ["cut_and_fill", "start_anew"])
@pytest.mark.parametrize("offset", CUTS)
def test_a_truncation_at_any_step_of_a_round_is_final_and_costs_no_other_record(
    tmp_path: Path, how: str, offset: int
) -> None:
    steps = Scene(tmp_path / "counted").round_with(None, -1)
    assert steps > 20

    for at in range(1, steps + 1):
        scene = Scene(tmp_path / f"step-{at}")
        kept = kept_by_the_round(scene.given)
        before = dict(scene.given)

        scene.round_with(lambda scene=scene: getattr(scene, how)(offset), at)  # type: ignore[misc]  # bound at once

        for each in (scene, scene.reopened()):
            found = {record.offset: (record.key, record.value) for record in records_of(each.log)}
            assert found.items() <= scene.given.items(), f"step {at}: something came back"
            wanted = {o for o, record in scene.given.items() if before.get(o) != record or o in kept}
            assert found.keys() >= wanted, f"step {at}: something is missing"
            assert each.log.log_end_offset == max(scene.given) + 1
        scene.log.close()
