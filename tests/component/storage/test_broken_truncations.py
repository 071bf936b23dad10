"""Truncations of logs that are broken, or break half way: nothing is believed that is not so, and nothing twice."""

import errno
from pathlib import Path
from typing import Any

import pytest

from kavka.protocol.errors import BrokerError, DecodeError, ErrorCode
from kavka.storage.files import Files
from kavka.storage.offset_checkpoint import RECOVERY_POINT_FILE, OffsetCheckpoint
from kavka.storage.offset_index import CorruptIndexError
from kavka.storage.partition_log import PartitionLog
from kavka.storage.segment import Segment
from tests.support.log_managers import ID, ManagerRig, create_log
from tests.support.partition_logs import Jobs, append, open_log, read_all


def _filled(directory: Path, jobs: Jobs, **overrides: Any) -> PartitionLog:
    log = open_log(directory, jobs=jobs, **overrides)
    for number in range(10):
        append(log, b"%d" % number)
    log.set_high_watermark(10)
    return log


def _break(log: PartitionLog, number: int) -> None:
    """Have the length of that batch of the active segment be nonsense."""
    segment = log.published[2][-1]
    with Path(segment.file.path).open("r+b") as file:
        file.seek(segment.size_bytes // 10 * number + 8)
        file.write(b"\xff" * 4)
    segment.recent_positions = {}


def test_a_truncation_that_does_not_find_its_place_changes_nothing(tmp_path: Path) -> None:
    jobs = Jobs()
    log = _filled(tmp_path / "log", jobs)
    _break(log, 3)
    before = (log.published, log.epochs.entries, log.high_watermark, log.recovery_point, log.size_bytes)

    with pytest.raises(DecodeError):
        log.truncate_to(6)

    assert (log.published, log.epochs.entries, log.high_watermark, log.recovery_point, log.size_bytes) == before
    assert not log.closed
    assert jobs.failures == []
    assert append(log, b"goes on").first_offset == 10
    log.truncate_to(2)
    assert [value for _, value in read_all(log)] == [b"0", b"1"]


@pytest.mark.parametrize("failure", [CorruptIndexError("index"), DecodeError("batch"), OSError(errno.EIO, "lost")])
def test_a_truncation_that_fails_half_way_gives_the_log_up(
    tmp_path: Path, failure: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = Jobs()
    log = _filled(tmp_path / "log", jobs)

    def broken(_segment: Segment) -> None:
        raise failure

    monkeypatch.setattr(Segment, "_find_largest_timestamp", broken)
    with pytest.raises(BrokerError) as caught:
        log.truncate_to(6)

    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert log.closed
    assert len(jobs.failures) == 1
    with pytest.raises(BrokerError) as refused:
        append(log, b"lost")
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR


def test_a_checkpoint_from_before_a_truncation_vouches_for_no_segment_that_is_closed_since(tmp_path: Path) -> None:
    jobs = Jobs()
    log = _filled(tmp_path / "log", jobs, segment_bytes=400)
    log.flush()
    assert log.recovery_point == 10
    stored: list[int] = []
    log.environment.store_recovery_points = lambda: stored.append(log.stored_recovery_point)

    log.truncate_to(4)
    append(log, b"new")
    assert stored == []
    base_offsets = log.published[3]
    while log.published[3] == base_offsets:
        append(log, b"new")

    # Before the segment was closed: by then the next start would take it for what was fsynced.
    assert len(stored) == 1
    assert stored[0] <= 4
    for _ in range(10):
        append(log, b"new")
    assert len(stored) == 1


def test_no_segment_is_closed_while_the_checkpoint_cannot_be_lowered(tmp_path: Path) -> None:
    log = _filled(tmp_path / "log", Jobs(), segment_bytes=400)
    log.flush()
    disk = [OSError(errno.ENOSPC, "full")]

    def store() -> None:
        if disk:
            raise disk[0]

    log.environment.store_recovery_points = store
    log.truncate_to(4)
    base_offsets = log.published[3]
    refusals = []
    for _ in range(10):
        try:
            append(log, b"new")
        except BrokerError as refused:
            refusals.append(refused.code)
    assert set(refusals) == {ErrorCode.KAFKA_STORAGE_ERROR}
    assert log.published[3] == base_offsets

    disk.clear()
    append(log, b"new")
    assert len(log.published[3]) == len(base_offsets) + 1
    assert isinstance(log.files, Files)


def test_the_checkpoint_is_lowered_when_a_segment_is_closed_however_busy_other_threads_are(tmp_path: Path) -> None:
    rig = ManagerRig([tmp_path])
    rig.overrides["visits"] = {"segment.bytes": "300"}
    manager = rig.start()
    log = create_log(manager, "visits", 0, ID)
    for number in range(20):
        append(log, b"old %d" % number)
    log.flush()
    manager.checkpoint_recovery_points()
    checkpoint = OffsetCheckpoint(tmp_path / RECOVERY_POINT_FILE, Files())
    assert checkpoint.read()["visits", 0] > 4
    rig.background = lambda job: None

    log.truncate_to(3)
    for number in range(12):
        append(log, b"new %d" % number)

    assert log.segment_count > 2
    assert checkpoint.read()["visits", 0] <= 3
    manager.close()
