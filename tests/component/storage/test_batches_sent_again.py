"""A producer's last five batches are known when they are sent again: after rolls, crashes and truncations, too.

A snapshot names the last one only, and a client has up to five under way: one that isn't known is refused for its
sequence, and sent again in another epoch.
"""

from pathlib import Path

import pytest

from kavka.protocol.errors import ErrorCode
from kavka.storage.append_result import AppendError
from kavka.storage.partition_log import PartitionLog
from kavka.storage.producer_state import REMEMBERED_BATCHES
from tests.support.log_managers import ID, ManagerRig, create_log
from tests.support.partition_logs import append, batch_of, open_log

PRODUCER = 4
BATCH_BYTES = len(batch_of(b"0000"))
SEGMENT_BYTES = 10 * BATCH_BYTES
IN_A_SEGMENT = 10


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "visits-0"


def opened(directory: Path, *, clean: bool = True, recovery_point: int = 0) -> PartitionLog:
    return open_log(
        directory,
        clean=clean,
        recovery_point=recovery_point,
        segment_bytes=SEGMENT_BYTES,
        segment_jitter_ms=0,
        index_interval_bytes=1,
    )


def send(log: PartitionLog, number: int, epoch: int = 0) -> int:
    """The offset that the producer's batch of that number, of one record, gets or has."""
    return append(log, b"%04d" % number, producer_id=PRODUCER, producer_epoch=epoch, base_sequence=number).first_offset


def crashed(log: PartitionLog, directory: Path, recovery_point: int) -> PartitionLog:
    log.close(clean=False)
    return opened(directory, clean=False, recovery_point=recovery_point)


def last_segment_start(log: PartitionLog) -> int:
    return log.published[3][-1]


@pytest.mark.parametrize("count", range(2 * IN_A_SEGMENT - 3, 2 * IN_A_SEGMENT + 6))
def test_after_a_crash(directory: Path, count: int) -> None:
    log = opened(directory)
    for number in range(count):
        assert send(log, number) == number
    assert log.segment_count > 1

    log = crashed(log, directory, last_segment_start(log))
    for number in range(count - REMEMBERED_BATCHES, count):
        assert send(log, number) == number
    with pytest.raises(AppendError) as refused:
        send(log, count - REMEMBERED_BATCHES - 1)
    assert refused.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(log, count) == count
    log.close()


@pytest.mark.parametrize("kept", range(IN_A_SEGMENT - 3, IN_A_SEGMENT + 6))
def test_after_a_truncation(directory: Path, kept: int) -> None:
    log = opened(directory)
    for number in range(2 * IN_A_SEGMENT):
        send(log, number)

    log.truncate_to(kept)
    for number in range(kept - REMEMBERED_BATCHES, kept):
        assert send(log, number) == number
    assert log.log_end_offset == kept
    assert send(log, kept) == kept
    log.close()


def test_after_a_clean_stop_with_requests_that_were_told_nothing(tmp_path: Path) -> None:
    rig = ManagerRig([tmp_path])
    manager = rig.start()
    log = create_log(manager, "visits", 0, ID, is_new=True)
    for number in range(8):
        send(log, number)
    log.advance_high_watermark(3)
    manager.close()

    manager = rig.start()
    log = create_log(manager, "visits", 0, ID)
    assert (log.high_watermark, log.log_end_offset) == (3, 8)
    for number in range(3, 8):
        assert send(log, number) == number
    assert send(log, 8) == 8
    manager.close()


def test_not_those_of_an_earlier_epoch(directory: Path) -> None:
    log = opened(directory)
    for number in range(IN_A_SEGMENT - 2):
        send(log, number)
    for number in range(3):
        send(log, number, epoch=1)
    assert last_segment_start(log) == IN_A_SEGMENT

    log = crashed(log, directory, IN_A_SEGMENT)
    assert send(log, 0, epoch=1) == IN_A_SEGMENT - 2
    entry = log.producers.get(PRODUCER)
    assert entry is not None
    assert [batch.first_offset for batch in entry.batches] == [IN_A_SEGMENT - 2, IN_A_SEGMENT - 1, IN_A_SEGMENT]
    log.close()


def test_though_the_index_of_the_segment_before_is_lost(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kavka.storage.replaying.LOOKED_BACK_BYTES", SEGMENT_BYTES - BATCH_BYTES)
    log = opened(directory)
    for number in range(IN_A_SEGMENT + 1):
        send(log, number)
    log.close(clean=False)
    (directory / f"{0:020d}.index").unlink()

    log = opened(directory, clean=False, recovery_point=IN_A_SEGMENT)
    assert send(log, IN_A_SEGMENT - 4) == IN_A_SEGMENT - 4
    log.close()


def test_no_further_back_than_is_looked(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kavka.storage.replaying.LOOKED_BACK_BYTES", 2 * BATCH_BYTES)
    log = opened(directory)
    for number in range(IN_A_SEGMENT + 1):
        send(log, number)

    log = crashed(log, directory, IN_A_SEGMENT)
    entry = log.producers.get(PRODUCER)
    assert entry is not None
    assert [batch.first_offset for batch in entry.batches] == [IN_A_SEGMENT - 2, IN_A_SEGMENT - 1, IN_A_SEGMENT]
    log.close()
