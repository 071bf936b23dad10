"""Open, committed and aborted transactions side by side, over rolls, restarts, crashes, truncations and reloads.

A model knows what was written; the last stable offset and what a read_committed consumer sees must be the model's.
"""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kavka.protocol.records.batch import iter_batch_headers, iter_records
from kavka.storage.partition_log import PartitionLog
from kavka.storage.producer_snapshots import decode, encode
from kavka.storage.producer_state import ProducerStates
from tests.support.partition_logs import Jobs, append, append_batch, batch_of, end_transaction, open_log

PRODUCERS = 12
SEGMENT_BYTES = 700


class Written(NamedTuple):
    """One offset of the log. `ends`: None for data; whether a marker aborts."""

    producer_id: int
    value: bytes
    ends: bool | None = None


class Model:
    """What the log holds, worked out the slow way."""

    def __init__(self) -> None:
        self.entries: list[Written] = []

    def open_since(self, producer_id: int, end: int | None = None) -> int | None:
        """Where the producer's open transaction began, before `end`."""
        since = None
        for offset, entry in enumerate(self.entries[:end]):
            if entry.producer_id == producer_id:
                since = None if entry.ends is not None else offset if since is None else since
        return since

    @property
    def last_stable_offset(self) -> int:
        begun = (self.open_since(producer_id) for producer_id in range(1, PRODUCERS + 1))
        return min((offset for offset in begun if offset is not None), default=len(self.entries))

    def committed(self, start: int) -> list[bytes]:
        """The values that a read_committed consumer sees from `start` on."""
        return [
            entry.value
            for offset, entry in enumerate(self.entries[: self.last_stable_offset])
            if offset >= start and entry.ends is None and not self._aborted(offset)
        ]

    def _aborted(self, offset: int) -> bool:
        producer_id = self.entries[offset].producer_id
        ends = (entry.ends for entry in self.entries[offset:] if entry.producer_id == producer_id)
        return producer_id > 0 and bool(next(end for end in ends if end is not None))


class Story:
    """A leader's log, a follower's copy of it, and the model."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.chance = chance
        self.folder = folder
        self.model = Model()
        self.sequences: dict[int, int] = {}
        self.leader = self.open("leader")
        self.follower = self.open("follower")

    def open(self, name: str, *, clean: bool = True, recovery_point: int = 0, start: int = 0) -> PartitionLog:
        return open_log(
            self.folder / name,
            clean=clean,
            recovery_point=recovery_point,
            log_start_offset=start,
            jobs=Jobs(),
            segment_bytes=SEGMENT_BYTES,
            index_interval_bytes=100,
        )

    def write(self) -> None:
        producer_id = self.chance.randrange(PRODUCERS + 1)
        value = b"%d" % len(self.model.entries)
        if producer_id == 0:
            append(self.leader, value)
            self.model.entries.append(Written(0, value))
        elif self.model.open_since(producer_id) is not None and self.chance.random() < 0.4:
            aborted = self.chance.random() < 0.5
            end_transaction(self.leader, producer_id, aborted=aborted)
            self.model.entries.append(Written(producer_id, b"", aborted))
        else:
            self._write_in_transaction(producer_id, value)

    def _write_in_transaction(self, producer_id: int, value: bytes) -> None:
        sequence = self.sequences.get(producer_id, 0)
        fields: dict[str, Any] = {
            "producer_id": producer_id,
            "producer_epoch": 0,
            "base_sequence": sequence,
            "transactional": True,
        }
        append_batch(self.leader, batch_of(value, **fields))
        self.sequences[producer_id] = sequence + 1
        self.model.entries.append(Written(producer_id, value))

    def replicate(self) -> None:
        leader, follower = self.leader, self.follower
        while follower.log_end_offset < leader.log_end_offset:
            piece = leader.read(
                follower.log_end_offset, self.chance.choice((1, 300, 5000)), min_one=True, end_offset=1 << 60
            )
            follower.append_as_follower(bytearray(piece.read_bytes()))

    def restart(self, name: str) -> PartitionLog:
        log: PartitionLog = getattr(self, name)
        clean = self.chance.random() < 0.5
        if not clean and self.chance.random() < 0.5:
            log.flush(self.chance.randrange(log.log_end_offset + 1))
        point, start = log.recovery_point, log.log_start_offset
        log.close(clean=clean)
        self._spoil_snapshots(self.folder / name)
        log = self.open(name, clean=clean, recovery_point=point, start=start)
        setattr(self, name, log)
        return log

    def _spoil_snapshots(self, folder: Path) -> None:
        """As Kafka may have left them: in any order, or lost."""
        for path in folder.glob("*.snapshot"):
            entries = decode(path.read_bytes())
            self.chance.shuffle(entries)
            path.write_bytes(encode(entries))
            if self.chance.random() < 0.2:
                path.unlink()

    def truncate(self) -> None:
        """Both lose what the leader did not get through."""
        self.replicate()
        offset = self.chance.randrange(self.leader.log_start_offset, len(self.model.entries) + 1)
        for log in (self.leader, self.follower):
            log.truncate_to(offset)
        del self.model.entries[offset:]
        for producer_id in self.sequences:
            written = [each for each in self.model.entries if each.producer_id == producer_id and each.ends is None]
            self.sequences[producer_id] = len(written)

    def check(self, log: PartitionLog) -> None:
        log.advance_high_watermark(log.log_end_offset)
        model = self.model
        assert log.log_end_offset == len(model.entries)
        assert log.last_stable_offset == model.last_stable_offset
        for start in (0, self.chance.randrange(len(model.entries) + 1)):
            assert read_committed(log, start) == model.committed(start)


def read_committed(log: PartitionLog, offset: int) -> list[bytes]:
    """What a consumer makes of the slices and the aborted transactions that come with them."""
    found: list[bytes] = []
    while offset < log.last_stable_offset:
        piece = log.read(offset, 400, min_one=True, end_offset=log.last_stable_offset)
        aborted = log.aborted_transactions(offset, log.upper_bound_offset(piece))
        waiting = sorted(aborted, key=lambda transaction: transaction.first_offset)
        skipped: set[int] = set()
        for position, header in iter_batch_headers(piece.read_bytes(), allow_truncated_tail=True):
            while waiting and waiting[0].first_offset <= header.last_offset:
                skipped.add(waiting.pop(0).producer_id)
            if header.is_control:
                skipped.discard(header.producer_id)
            elif header.last_offset >= offset and header.producer_id not in skipped:
                data = piece.read_bytes()
                found += [record.value or b"" for record in iter_records(data, position)]
            offset = header.next_offset
    return found


@pytest.mark.parametrize("seed", range(40))
def test_what_is_stable_and_committed_is_what_was_written(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    story = Story(tmp_path, chance)
    for _ in range(12):
        for _ in range(chance.randrange(25)):
            story.write()
        story.check(story.leader)
        action = chance.random()
        if action < 0.6:
            story.check(story.restart("leader"))
        elif action < 0.8 and story.model.entries:
            story.truncate()
            story.check(story.leader)
        story.replicate()
        story.check(story.follower)
        if chance.random() < 0.4:
            story.check(story.restart("follower"))
    story.leader.close()
    story.follower.close()


def test_the_earliest_open_transaction_counts_whatever_the_order_in_a_snapshot(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for producer_id, sequence in ((1, 0), (2, 0), (3, 0)):
        fields: dict[str, Any] = {
            "producer_id": producer_id,
            "producer_epoch": 0,
            "base_sequence": sequence,
            "transactional": True,
        }
        append_batch(log, batch_of(b"v", **fields))
    end_transaction(log, 1, aborted=False)
    # Producer 1 is the oldest, but its transaction now the latest.
    append_batch(log, batch_of(b"v", producer_id=1, producer_epoch=0, base_sequence=1, transactional=True))
    log.close()

    log = open_log(tmp_path)
    log.advance_high_watermark(log.log_end_offset)

    assert log.last_stable_offset == 1
    log.close()


def test_a_transaction_that_begins_while_the_last_stable_offset_is_worked_out_is_not_in_it(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, b"plain")
    log.advance_high_watermark(1)
    log.producers = producers = _OvertakenStates()

    def overtake() -> None:
        append_batch(log, batch_of(b"v", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True))
        log.advance_high_watermark(log.log_end_offset)

    producers.overtake = overtake

    assert log.last_stable_offset == 1
    log.close()


class _OvertakenStates(ProducerStates):
    """Whoever looks at the first unstable offset is overtaken by another thread right afterwards."""

    __slots__ = ("_first_unstable_offset", "overtake")

    def __init__(self) -> None:
        self.overtake: Callable[[], None] | None = None
        super().__init__()

    @property
    def first_unstable_offset(self) -> int:
        found = self._first_unstable_offset
        overtake, self.overtake = self.overtake, None
        if overtake is not None:
            overtake()
        return found

    @first_unstable_offset.setter
    def first_unstable_offset(self, offset: int) -> None:
        self._first_unstable_offset = offset
