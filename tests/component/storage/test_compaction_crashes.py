"""Compaction struck by crashes at every step; random histories of keys against a dictionary. Seeds name the cases."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kavka.protocol.records.batch import Record, build_batch
from kavka.protocol.records.compression import Codec
from kavka.storage.cleaner.rounds import Outcome
from kavka.storage.partition_log import PartitionLog
from tests.support.compaction import batches_of, compact, records_of, roll
from tests.support.crash_files import CrashFiles
from tests.support.partition_logs import Clock, Jobs, append, append_batch, end_transaction, open_log

FOLDER = Path("/crash/visits-0")
SETTINGS: dict[str, Any] = {
    "cleanup_policy": "compact",
    "segment_bytes": 1500,
    "index_interval_bytes": 200,
    "delete_retention_ms": 5000,
}
SEEDS = 6
"""Each takes every sixth step."""
PRODUCERS = (None, None, 7, 8, 9)


class History:
    """A log that is written to and compacted. `latest` is what a reader of committed data must find: key -> value."""

    def __init__(self, seed: int, files: CrashFiles | None = None) -> None:
        self.chance = random.Random(seed)
        self.files = files or CrashFiles()
        self.jobs = Jobs()
        self.clock = Clock()
        self.latest: dict[bytes, tuple[int, bytes | None]] = {}
        self.written: dict[int, tuple[bytes | None, bytes | None]] = {}
        self.pending: dict[int, dict[bytes, tuple[int, bytes | None]]] = {}
        self.sequences = dict.fromkeys((7, 8, 9), 0)
        self.log = self.open(clean=True)

    def open(self, *, clean: bool, recovery_point: int = 0) -> PartitionLog:
        return open_log(
            FOLDER,
            files=self.files,
            jobs=self.jobs,
            clock=self.clock,
            clean=clean,
            recovery_point=recovery_point,
            **SETTINGS,
        )

    def write(self, batches: int) -> None:
        for _ in range(batches):
            producer = self.chance.choice(PRODUCERS)
            if producer is not None and producer in self.pending and self.chance.random() < 0.4:
                self.end(producer)
            else:
                self.append(producer)
            self.clock.ms += self.chance.randrange(200)

    def append(self, producer: int | None) -> None:
        pairs = [(b"key-%d" % self.chance.randrange(12), self.value()) for _ in range(self.chance.choice((1, 1, 2, 5)))]
        fields: dict[str, Any] = {"codec": self.chance.choice(list(Codec))}
        if producer is not None:
            fields |= {"producer_id": producer, "producer_epoch": 0, "base_sequence": self.sequences[producer]}
            fields["transactional"] = True
            self.sequences[producer] += len(pairs)
        records = [Record(0, self.clock.ms, key, value) for key, value in pairs]
        first = append_batch(self.log, bytearray(build_batch(records, **fields))).first_offset
        found = {key: (first + number, value) for number, (key, value) in enumerate(pairs)}
        self.written.update({first + number: pair for number, pair in enumerate(pairs)})
        if producer is None:
            self.decide(found)
        else:
            self.pending.setdefault(producer, {}).update(found)

    def decide(self, found: dict[bytes, tuple[int, bytes | None]]) -> None:
        for key, (offset, value) in found.items():
            if offset > self.latest.get(key, (-1, None))[0]:
                self.latest[key] = (offset, value)

    def end(self, producer: int) -> None:
        aborted = self.chance.random() < 0.5
        end_transaction(self.log, producer, aborted=aborted)
        found = self.pending.pop(producer)
        if not aborted:
            self.decide(found)

    def value(self) -> bytes | None:
        return None if self.chance.random() < 0.2 else b"%d" % self.chance.randrange(1 << 60)

    def settle(self) -> None:
        """End all transactions and close the segment: all of the log can be compacted."""
        for producer in sorted(self.pending):
            self.end(producer)
        roll(self.log)

    def committed(self) -> list[Record]:
        """What a read_committed consumer gets from the log's start to its end."""
        aborted = self.log.aborted_transactions(0, self.log.log_end_offset)
        spans = [(each.producer_id, each.first_offset, each.last_offset) for each in aborted]
        return [
            record
            for header, records in batches_of(self.log)
            if not header.is_control
            and not any(
                header.is_transactional and header.producer_id == producer and first <= header.base_offset <= last
                for producer, first, last in spans
            )
            for record in records
        ]

    def check(self) -> None:
        """Nothing lost, nothing doubled, nothing made up, all in order; the last value of each key is the right one."""
        found = self.committed()
        offsets = [record.offset for record in found]
        assert offsets == sorted(set(offsets))
        assert all(self.written[record.offset] == (record.key, record.value) for record in found)
        last = {record.key: (record.offset, record.value) for record in found}
        live = {key: place for key, place in self.latest.items() if place[1] is not None}
        assert {key: place for key, place in last.items() if place[1] is not None} == live
        bases = [header.base_offset for header, _ in batches_of(self.log)]
        assert bases == sorted(set(bases))


@pytest.mark.parametrize("seed", range(40))
def test_compaction_leaves_the_latest_of_each_key_exactly(seed: int) -> None:
    history = History(seed)
    for _ in range(4):
        history.write(history.chance.randrange(1, 80))
        history.settle()
        compact(history.log)
        history.check()
        # Tombstones stay for a while; everything else is there once.
        keys = [record.key for record in records_of(history.log)]
        assert len(keys) == len(set(keys))
        if history.chance.random() < 0.5:
            history.clock.ms += 5000
    history.clock.ms += 20_000
    for _ in range(3):
        history.append(None)
        roll(history.log)
        compact(history.log)
        history.clock.ms += 20_000
    history.check()
    assert all(record.value is not None for record in records_of(history.log)[:-15])


class StruckError(BaseException):
    """The machine stops here."""


class StruckFiles(CrashFiles):
    """Stops the world before the n-th change of a folder, an fsync or a write."""

    def __init__(self) -> None:
        super().__init__()
        self.left = -1

    def _step(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise StruckError

    def rename(self, source: object, target: object) -> None:
        self._step()
        super().rename(source, target)  # type: ignore[arg-type]  # handed on as it came

    def unlink(self, path: object) -> None:
        self._step()
        super().unlink(path)  # type: ignore[arg-type]  # handed on as it came

    def fsync(self, fd: int) -> None:
        self._step()
        super().fsync(fd)

    def fsync_directory(self, path: object) -> None:
        self._step()
        super().fsync_directory(path)  # type: ignore[arg-type]  # handed on as it came

    def pwrite(self, fd: int, data: bytes | bytearray | memoryview, position: int) -> int:
        self._step()
        return super().pwrite(fd, data, position)


def struck(seed: int, step: int, survive: Callable[[CrashFiles, random.Random], CrashFiles]) -> bool:
    """One history whose second compaction is struck at a step; False if it ended before."""
    files = StruckFiles()
    history = History(seed, files)
    history.write(40)
    history.settle()
    compact(history.log)
    history.write(40)
    history.settle()
    history.log.flush()
    promised = history.log.recovery_point
    files.left = step
    try:
        compact(history.log)
        history.jobs.run_all()
    except StruckError:
        pass
    else:
        return False
    history.files = survive(files, history.chance)
    history.jobs = Jobs()
    history.log = history.open(clean=False, recovery_point=promised)
    history.log.advance_high_watermark(history.log.log_end_offset)
    assert history.log.log_end_offset == promised
    names = history.files.listdir(FOLDER)
    assert not [name for name in names if name.endswith((".cleaned", ".swap", ".deleted"))]
    history.check()
    compact(history.log)
    history.check()
    history.write(10)
    history.settle()
    compact(history.log)
    history.check()
    return True


@pytest.mark.slow
@pytest.mark.parametrize("power", [True, False], ids=["power", "kill"])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_nothing_is_lost_or_doubled_wherever_compaction_is_struck(seed: int, power: bool) -> None:
    survive = CrashFiles.crash if power else lambda files, _: files.kill()
    step = seed + 1
    while struck(seed, step, survive):
        step += SEEDS
    assert step > 60


class ContentsLost(random.Random):
    """A power cut that takes of the files all that was not fsynced, and of the folder's changes none."""

    def random(self) -> float:
        return 0.3


@pytest.mark.parametrize("is_transaction", [False, True], ids=["a newer record", "a transaction's marker"])
def test_what_a_record_was_removed_for_outlives_a_power_cut(is_transaction: bool) -> None:
    files, jobs = CrashFiles(), Jobs()
    log = open_log(FOLDER, files=files, jobs=jobs, **SETTINGS)
    # Of a size that two segments aren't made one.
    old, new = b"old" * 300, b"new" * 300
    append(log, old)
    append(log, b"other", key=b"other")
    roll(log)
    log.flush()
    if is_transaction:
        append(log, new, producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
        roll(log)
        log.flush()
        # It is in the active segment.
        end_transaction(log, 7, aborted=False)
        log.advance_high_watermark(log.log_end_offset)
    else:
        append(log, new)
        # The flush that a roll asks for has not happened yet.
        roll(log)
    end_offset = log.log_end_offset

    assert compact(log).outcome is Outcome.CLEANED
    assert [record.value for record in records_of(log)] == [b"other", new]
    found = open_log(FOLDER, files=files.crash(ContentsLost()), clean=False, **SETTINGS)

    assert found.log_end_offset == end_offset
    assert [record.value for record in records_of(found)] == [b"other", new]
