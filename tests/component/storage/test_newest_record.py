"""The newest record (KIP-734), as a scan of all records finds it, and without such a scan at each request."""

import random
from pathlib import Path

import pytest

from kavka.protocol.records.batch import Record, build_batch, iter_batch_headers, iter_records
from kavka.storage.partition_log import PartitionLog
from tests.support.compaction import roll
from tests.support.log_managers import FailingFiles
from tests.support.partition_logs import START_MS, append_batch, open_log

NO_RECORD = (-1, -1)


def put(log: PartitionLog, *timestamps_ms: int) -> None:
    records = [Record(timestamp_ms=timestamp_ms, key=b"k", value=b"v" * 20) for timestamp_ms in timestamps_ms]
    append_batch(log, bytearray(build_batch(records)))
    log.advance_high_watermark(log.log_end_offset)


def scanned(log: PartitionLog) -> tuple[int, int]:
    """(timestamp, offset) of the first record with the largest timestamp, by a look at all of them."""
    newest = NO_RECORD
    for segment in log.published[2]:
        data = segment.file.read(segment.size_bytes, 0)
        for position, _ in iter_batch_headers(data):
            for record in iter_records(data, position):
                if record.offset >= log.log_start_offset and record.timestamp_ms > newest[0]:
                    newest = (record.timestamp_ms, record.offset)
    return newest


def asked(log: PartitionLog) -> tuple[int, int]:
    found = log.max_timestamp_offset()
    return NO_RECORD if found is None else (found.timestamp_ms, found.offset)


@pytest.mark.parametrize("seed", range(12))
def test_the_newest_record_is_the_one_that_a_scan_finds_whatever_was_done_to_the_log(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    log = open_log(tmp_path, segment_bytes=chance.choice([600, 2000, 100_000]), index_interval_bytes=100)
    for _ in range(150):
        what = chance.random()
        start, end = log.log_start_offset, log.log_end_offset
        if what < 0.6:
            # From a few values, so that equal ones meet; sometimes none.
            put(log, *(chance.choice([-1, START_MS + chance.randrange(12)]) for _ in range(chance.randrange(1, 4))))
        elif what < 0.75:
            log.delete_records_before(chance.randint(start, end))
        elif what < 0.85:
            log.truncate_to(chance.randint(max(start, end - 6), end))
        elif what < 0.9:
            roll(log)
        elif what < 0.95:
            log.delete_old_segments(START_MS)
        else:
            log.close()
            log = open_log(tmp_path, log_start_offset=log.log_start_offset, index_interval_bytes=100)
            log.advance_high_watermark(log.log_end_offset)
        for _ in range(2):
            assert asked(log) == scanned(log)
    log.close()


@pytest.mark.parametrize("sealed", [True, False])
def test_a_segment_whose_newest_record_was_deleted_is_scanned_once(tmp_path: Path, sealed: bool) -> None:
    files = FailingFiles()
    log = open_log(tmp_path, files=files)
    put(log, START_MS + 10_000)
    for number in range(1000):
        put(log, START_MS + number % 900)
    if sealed:
        roll(log)
    log.delete_records_before(1)

    assert reads(files, log) > 0
    assert asked(log) == (START_MS + 899, 900)
    assert reads(files, log) == 0
    log.delete_records_before(500)
    assert reads(files, log) == 0
    assert asked(log) == (START_MS + 899, 900)
    put(log, START_MS + 899)
    put(log, START_MS + 2000)
    assert asked(log) == (START_MS + 2000, 1002)


def test_many_older_records_before_the_newest_are_not_read(tmp_path: Path) -> None:
    files = FailingFiles()
    log = open_log(tmp_path, files=files, index_interval_bytes=100, segment_bytes=10_000_000)
    put(log, START_MS + 100)
    for _ in range(40):
        append_batch(log, bytearray(build_batch([Record(timestamp_ms=START_MS, key=b"k", value=bytes(100_000))])))
    put(log, START_MS + 200)

    assert asked(log) == (START_MS + 200, 41)

    assert reads(files, log) <= 2


def reads(files: FailingFiles, log: PartitionLog) -> int:
    """How often a request for the newest record reads from a file."""
    before = files.calls.get("pread", 0)
    log.max_timestamp_offset()
    return files.calls.get("pread", 0) - before
