"""After any loss of power, what was fsynced is there, and what is there was written. Seeds name the cases."""

import random
from pathlib import Path
from typing import Any

import pytest

from kavka.storage.partition_log import PartitionLog
from tests.support.crash_files import CrashFiles, FoldersSurvive
from tests.support.partition_logs import START_MS, Jobs, append, append_batch, batch_of, open_log, read_all

FOLDER = Path("/crash/visits-0")
SETTINGS: dict[str, Any] = {"segment_bytes": 1500, "index_interval_bytes": 200}
PRODUCER = 7


class Life:
    """A log that is written to, flushed and struck by crashes; remembers what it was promised."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.files = CrashFiles()
        self.jobs = Jobs()
        self.written: dict[int, bytes | None] = {}
        self.epochs: dict[int, int] = {}
        self.sequence = 0
        self.epoch = 0
        self.log = self.open(clean=True, recovery_point=0)

    def open(self, *, clean: bool, recovery_point: int) -> PartitionLog:
        return open_log(
            FOLDER, files=self.files, jobs=self.jobs, clean=clean, recovery_point=recovery_point, **SETTINGS
        )

    def step(self) -> None:
        kind = self.chance.choice(("append",) * 12 + ("flush", "flush_part", "background", "epoch", "truncate"))
        if kind == "append":
            self.append()
        elif kind == "flush":
            self.log.flush()
        elif kind == "flush_part":
            self.log.flush(self.chance.randrange(self.log.log_end_offset + 1))
        elif kind == "background":
            self.jobs.run_all()
        elif kind == "epoch":
            self.epoch += 1
        elif kind == "truncate" and self.chance.random() < 0.3:
            self.truncate(self.log.log_end_offset - self.chance.randrange(4))

    def append(self) -> None:
        values = [b"%d" % self.chance.randrange(1 << 60) for _ in range(self.chance.randrange(1, 4))]
        batch = batch_of(*values, producer_id=PRODUCER, producer_epoch=0, base_sequence=self.sequence)
        first = append_batch(self.log, batch, self.epoch).first_offset
        self.sequence += len(values)
        self.written.update(enumerate(values, first))
        self.epochs.update((offset, self.epoch) for offset in range(first, first + len(values)))

    def truncate(self, offset: int) -> None:
        self.log.truncate_to(max(offset, self.log.log_start_offset))
        self.forget_beyond_end()

    def crash(self, *, power: bool) -> None:
        promised = self.log.recovery_point
        self.files = self.files.crash(self.chance) if power else self.files.kill()
        self.jobs = Jobs()
        before = self.log.log_end_offset
        self.log = self.open(clean=False, recovery_point=promised)
        found = read_all(self.log)
        assert self.log.log_end_offset >= promised
        assert [offset for offset, _ in found] == sorted({offset for offset, _ in found})
        assert all(self.written[offset] == value for offset, value in found)
        assert {offset for offset in self.written if offset < promised} <= {offset for offset, _ in found}
        if not power:
            assert self.log.log_end_offset == before
            assert dict(found) == self.written
        assert all(self.log.epoch_for_offset(offset) == self.epochs[offset] for offset, _ in found)
        self.written = dict(found)
        self.forget_beyond_end()

    def forget_beyond_end(self) -> None:
        self.written = {offset: value for offset, value in self.written.items() if offset < self.log.log_end_offset}
        entry = self.log.producers.get(PRODUCER)
        self.sequence = entry.last_sequence + 1 if entry is not None else self.sequence


@pytest.mark.parametrize("power", [True, False], ids=["power", "kill"])
@pytest.mark.parametrize("seed", range(60))
def test_what_was_fsynced_survives_any_number_of_crashes(seed: int, power: bool) -> None:
    life = Life(seed)
    for _ in range(4):
        for _ in range(life.chance.randrange(60)):
            life.step()
        life.crash(power=power)


@pytest.mark.parametrize("seed", range(20))
def test_producers_are_known_after_a_kill_as_before(seed: int) -> None:
    life = Life(seed)
    for _ in range(40):
        life.append()
    before = life.log.producers.get(PRODUCER)
    assert before is not None
    last = before.batches[-1]

    life.files = life.files.kill()
    log = life.open(clean=False, recovery_point=life.log.recovery_point)

    values = [b"again"] * (last.last_sequence - last.first_sequence + 1)
    repeated = append(log, *values, producer_id=PRODUCER, producer_epoch=0, base_sequence=last.first_sequence)
    assert repeated.duplicate
    assert (repeated.first_offset, repeated.last_offset) == (last.first_offset, last.last_offset)


@pytest.mark.parametrize("seed", range(20))
def test_a_clean_close_loses_nothing_at_a_loss_of_power(seed: int) -> None:
    life = Life(seed)
    for _ in range(30):
        life.append()
    life.log.close()
    life.files = life.files.crash(life.chance)

    log = life.open(clean=True, recovery_point=0)

    assert dict(read_all(log)) == life.written
    assert log.recovered_segments == 0


@pytest.mark.parametrize("seed", range(20))
def test_a_segment_that_was_flushed_before_it_was_sealed_is_found_by_time_after_a_crash(seed: int) -> None:
    files, jobs = CrashFiles(), Jobs()
    log = open_log(FOLDER, files=files, jobs=jobs, flush_messages=1, segment_bytes=200)
    for number in range(4):
        append(log, b"x" * 20, timestamp_ms=START_MS + number)
        jobs.run_all()
    assert log.recovery_point == 4
    assert log.segment_count > 1

    log = open_log(FOLDER, files=files.crash(random.Random(seed)), clean=False, recovery_point=4, segment_bytes=200)

    for number in range(4):
        found = log.offset_for_time(START_MS + number)
        assert found is not None
        assert found.offset == number


def test_what_was_cut_does_not_come_back_after_a_power_cut() -> None:
    files = CrashFiles()
    log = open_log(FOLDER, files=files, jobs=Jobs())
    append(log, b"kept")
    append(log, b"cut")
    log.flush()
    log.truncate_to(1)
    append(log, b"new")

    found = open_log(FOLDER, files=files.crash(FoldersSurvive()), clean=False, recovery_point=log.stored_recovery_point)

    assert read_all(found) == [(0, b"kept")]


def test_an_epoch_begins_with_its_first_batch_though_the_file_knows_it_from_a_later_one(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for epoch in (0, 4, 4):
        append(log, b"v", leader_epoch=epoch)
    log.close(clean=False)
    # Saved before an earlier crash took what it tells of.
    (tmp_path / "leader-epoch-checkpoint").write_bytes(b"0\n2\n0 0\n4 2\n")

    log = open_log(tmp_path, clean=False)

    assert log.epochs.entries == ((0, 0), (4, 1))


@pytest.mark.parametrize(
    ("former", "batches", "epochs"),
    [
        ([1, 1], [0, 0, 3], ((0, 0), (3, 2))),
        ([0, 5, 6], [0, 4, 4, 4], ((0, 0), (4, 1))),
        ([0, 5, 6], [0, 0, 0, 7], ((0, 0), (7, 3))),
    ],
)
def test_epochs_of_records_that_were_cut_are_not_those_of_the_ones_that_came_in_their_place(
    tmp_path: Path, former: list[int], batches: list[int], epochs: tuple[tuple[int, int], ...]
) -> None:
    log = open_log(tmp_path)
    for epoch in former:
        append(log, b"of a leader that is gone", leader_epoch=epoch)
    # Saves the epochs, too.
    log.flush()
    log.truncate_to(0)
    # A later leader may have more of an earlier epoch than the one that was followed.
    for number, epoch in enumerate(batches):
        append(log, b"%d" % number, leader_epoch=epoch)
    assert log.epochs.entries == epochs
    log.close(clean=False)

    log = open_log(tmp_path, clean=False)

    assert [value for _, value in read_all(log)] == [b"%d" % number for number in range(len(batches))]
    assert log.epochs.entries == epochs
