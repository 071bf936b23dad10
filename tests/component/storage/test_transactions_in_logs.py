"""Open, committed and aborted transactions: what read_committed consumers may see, also after a restart."""

from pathlib import Path
from typing import Any

import pytest

from kavka.protocol.errors import ErrorCode
from kavka.storage.append_result import AppendError
from kavka.storage.partition_log import PartitionLog
from tests.support.partition_logs import append, append_batch, batch_of, end_transaction, open_log


def in_transaction(log: PartitionLog, producer_id: int, sequence: int = 0) -> int:
    batch = batch_of(b"t", producer_id=producer_id, producer_epoch=0, base_sequence=sequence, transactional=True)
    return append_batch(log, batch).first_offset


def replicated(log: PartitionLog) -> int:
    log.advance_high_watermark(log.log_end_offset)
    return log.last_stable_offset


def test_the_last_stable_offset_waits_for_the_marker_and_its_replication(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, b"plain")
    in_transaction(log, 1)
    append(log, b"plain")
    assert replicated(log) == 1

    end_transaction(log, 1, aborted=False)
    assert log.last_stable_offset == 1
    assert replicated(log) == 4


def test_aborted_transactions_are_told_where_they_touch_what_is_read(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=150)
    in_transaction(log, 1)
    in_transaction(log, 2)
    end_transaction(log, 1, aborted=True)
    in_transaction(log, 3)
    end_transaction(log, 2, aborted=False)
    end_transaction(log, 3, aborted=True)
    replicated(log)

    everything = [
        (entry.producer_id, entry.first_offset, entry.last_offset) for entry in log.aborted_transactions(0, 6)
    ]
    assert everything == [(1, 0, 2), (3, 3, 5)]
    assert [entry.producer_id for entry in log.aborted_transactions(3, 6)] == [3]
    assert [entry.producer_id for entry in log.aborted_transactions(0, 3)] == [1]
    assert log.aborted_transactions(6, 7) == []
    assert log.segment_count > 2


@pytest.mark.parametrize("clean", [True, False])
def test_transactions_survive_a_restart(tmp_path: Path, clean: bool) -> None:
    log = open_log(tmp_path, segment_bytes=400)
    in_transaction(log, 1)
    for _ in range(6):
        append(log, b"plain")
    in_transaction(log, 2)
    end_transaction(log, 2, aborted=True)
    aborted = log.aborted_transactions(0, 100)
    log.close(clean=clean)

    log = open_log(tmp_path, clean=clean, segment_bytes=400)

    assert log.aborted_transactions(0, 100) == aborted != []
    assert replicated(log) == 0
    end_transaction(log, 1, aborted=True)
    assert replicated(log) == log.log_end_offset


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("damage", ["none", "latest", "all"])
def test_idempotent_producers_survive_a_restart(tmp_path: Path, clean: bool, damage: str) -> None:
    log = open_log(tmp_path, segment_bytes=400)
    for number in range(12):
        append(log, b"v", producer_id=1, producer_epoch=0, base_sequence=number)
    log.close(clean=clean)
    snapshots = sorted(tmp_path.glob("*.snapshot"))
    for path in {"none": [], "latest": snapshots[-1:], "all": snapshots}[damage]:
        path.write_bytes(path.read_bytes()[:-1])

    log = open_log(tmp_path, clean=clean, segment_bytes=400)

    repeated = append(log, b"v", producer_id=1, producer_epoch=0, base_sequence=11)
    assert (repeated.duplicate, repeated.first_offset) == (True, 11)
    with pytest.raises(AppendError) as caught:
        append(log, b"v", producer_id=1, producer_epoch=0, base_sequence=13)
    assert caught.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert append(log, b"v", producer_id=1, producer_epoch=0, base_sequence=12).first_offset == 12


def test_a_refused_batch_leaves_no_trace(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, b"v", producer_id=1, producer_epoch=3, base_sequence=0)
    before = (tmp_path / f"{0:020d}.log").read_bytes()

    for fields in ({"producer_epoch": 2, "base_sequence": 1}, {"producer_epoch": 3, "base_sequence": 2}):
        with pytest.raises(AppendError):
            append(log, b"v", producer_id=1, **fields)

    assert (tmp_path / f"{0:020d}.log").read_bytes() == before
    assert append(log, b"v", producer_id=1, producer_epoch=3, base_sequence=1).first_offset == 1


def test_the_upper_bound_lies_at_or_behind_the_slice(tmp_path: Path) -> None:
    log = open_log(tmp_path, index_interval_bytes=0, segment_bytes=2000)
    for _ in range(40):
        append(log, b"v" * 20)
    for size in (1, 500, 1500, 5000):
        piece = log.read(0, size, min_one=True, end_offset=40)
        held = piece.size_bytes // len(batch_of(b"v" * 20))
        assert held <= log.upper_bound_offset(piece) <= 40


def three_aborted(directory: Path, **settings: Any) -> PartitionLog:
    """Transactions at 0 to 2, 1 to 5 and 4 to 7, all aborted; the middle one spans the first one's end."""
    log = open_log(directory, **settings)
    for step in ("begin 1", "begin 2", "abort 1", "plain", "begin 3", "abort 2", "plain", "abort 3"):
        what, _, producer = step.partition(" ")
        if what == "begin":
            in_transaction(log, int(producer))
        elif what == "abort":
            end_transaction(log, int(producer), aborted=True)
        else:
            append(log, b"plain")
    return log


def told(log: PartitionLog) -> list[tuple[int, int, int]]:
    entries = log.aborted_transactions(0, log.log_end_offset)
    return [(entry.producer_id, entry.first_offset, entry.last_offset) for entry in entries]


ALL_ABORTED = [(1, 0, 2), (2, 1, 5), (3, 4, 7)]


@pytest.mark.parametrize("segment_bytes", [150, 400, 10_000])
@pytest.mark.parametrize("offset", range(9))
@pytest.mark.parametrize("clean", [True, False])
def test_truncation_takes_the_aborted_transactions_whose_marker_it_takes(
    tmp_path: Path, offset: int, segment_bytes: int, clean: bool
) -> None:
    log = three_aborted(tmp_path, segment_bytes=segment_bytes)
    kept = [entry for entry in ALL_ABORTED if entry[2] < offset]
    open_again = [first for _, first, last in ALL_ABORTED if first < offset <= last]

    log.truncate_to(offset)
    for _ in range(2):
        assert told(log) == kept
        assert replicated(log) == min(open_again, default=offset)
        log.close(clean=clean)
        log = open_log(tmp_path, clean=clean, segment_bytes=segment_bytes)

    # What is aborted from now on comes behind what was kept, in memory and in the file.
    append(log, b"plain")
    in_transaction(log, 9)
    end_transaction(log, 9, aborted=True)
    again = (9, log.log_end_offset - 2, log.log_end_offset - 1)
    assert told(log) == [*kept, again]
    log.close()
    assert told(open_log(tmp_path, segment_bytes=segment_bytes)) == [*kept, again]


@pytest.mark.parametrize("at_a_time", [1, 200, 10_000])
@pytest.mark.parametrize("segment_bytes", [150, 10_000])
@pytest.mark.parametrize("clean", [True, False])
def test_a_follower_notes_aborted_transactions_as_its_leader_does(
    tmp_path: Path, at_a_time: int, segment_bytes: int, clean: bool
) -> None:
    leader = three_aborted(tmp_path / "leader", segment_bytes=10_000)
    follower = open_log(tmp_path / "follower", segment_bytes=segment_bytes)
    while follower.log_end_offset < leader.log_end_offset:
        piece = leader.read(follower.log_end_offset, at_a_time, min_one=True, end_offset=100)
        follower.append_as_follower(bytearray(piece.read_bytes()))

    for _ in range(2):
        assert follower.aborted_transactions(0, 100) == leader.aborted_transactions(0, 100)
        assert told(follower) == ALL_ABORTED
        assert replicated(follower) == 8
        follower.close(clean=clean)
        follower = open_log(tmp_path / "follower", clean=clean, segment_bytes=segment_bytes)


def test_a_follower_waits_for_the_high_watermark_before_a_transaction_is_stable(tmp_path: Path) -> None:
    leader = three_aborted(tmp_path / "leader")
    follower = open_log(tmp_path / "follower")
    follower.append_as_follower(leader.read(0, 10_000, min_one=True, end_offset=100).read_bytes())

    stable = [(follower.set_high_watermark(offset), follower.last_stable_offset) for offset in range(9)]

    assert stable == [(0, 0), (1, 0), (2, 0), (3, 1), (4, 1), (5, 1), (6, 4), (7, 4), (8, 8)]
