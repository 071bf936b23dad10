"""A log manager and a cleaner whose workers are doubles, and what makes it work."""

import errno
from collections.abc import Iterator
from pathlib import Path

from kavka.protocol.records.batch import Record, build_batch
from kavka.storage.cleaner.jobs import CleaningFailed, CleanJob, Reply
from kavka.storage.cleaner.log_cleaner import LogCleaner
from kavka.storage.files import Files
from kavka.storage.partition_log import PartitionLog
from tests.support.compaction import InlineWorker, roll
from tests.support.log_managers import ID, ManagerRig, create_log

NOW_MS = 1_700_000_000_000
TIMEOUT_S = 60.0


class Stage:
    """A log manager, and a cleaner whose workers are doubles."""

    def __init__(self, path: Path, *settings: str) -> None:
        self.rig = ManagerRig([path], "log.cleaner.backoff.ms=20", *settings)
        self.manager = self.rig.start()
        self.workers: list[InlineWorker] = []
        self.make_worker = InlineWorker
        self.deaths: list[BaseException] = []
        self.cleaner = LogCleaner(
            self.manager,
            self.rig.broker_config(*self.rig.settings),
            now_ms=lambda: self.rig.now_ms,
            start_worker=self._start_worker,
            on_death=self.deaths.append,
        )

    def log(self, topic: str, **overrides: str) -> PartitionLog:
        self.rig.overrides[topic] = {"cleanup.policy": "compact"} | {
            name.replace("_", "."): value for name, value in overrides.items()
        }
        return create_log(self.manager, topic, 0, ID, is_new=True)

    def _start_worker(self) -> InlineWorker:
        self.workers.append(self.make_worker(Files()))
        return self.workers[-1]


class FullDisk(InlineWorker):
    error = errno.ENOSPC

    def run(self, job: CleanJob) -> Iterator[Reply]:
        self.jobs.append(job)
        yield CleaningFailed("disk", "no space", self.error)


def fill(log: PartitionLog, segments: int = 2, timestamp_ms: int = NOW_MS) -> None:
    for number in range(segments * 3):
        batch = bytearray(build_batch([Record(0, timestamp_ms, b"key", b"%d" % number)]))
        log.append_as_leader(batch, leader_epoch=0, now_ms=timestamp_ms)
        if number % 3 == 2:
            roll(log)
