"""Readers take no lock: whatever writers do, a reader sees whole batches in order, and never bytes of the future."""

import threading
from collections.abc import Callable
from pathlib import Path

from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.records.batch import iter_batch_headers, verify_crc
from kavka.storage.partition_log import PartitionLog
from tests.support.partition_logs import START_MS, append, open_log

APPENDS = 400


def run(*jobs: Callable[[], None]) -> None:
    failures: list[BaseException] = []

    def guarded(job: Callable[[], None]) -> None:
        try:
            job()
        except BaseException as error:  # noqa: BLE001 - handed to the test's thread
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def follow(log: PartitionLog, end_offset: int) -> list[int]:
    """Base offsets of all batches up to the end, read while they are written."""
    seen: list[int] = []
    offset = 0
    while offset < end_offset:
        data = log.read(offset, 700, min_one=True, end_offset=log.log_end_offset).read_bytes()
        for position, header in iter_batch_headers(data, allow_truncated_tail=True):
            verify_crc(data, position, header)
            seen.append(header.base_offset)
            offset = header.next_offset
    return seen


def test_readers_follow_writers_across_rolls_and_flushes(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=2000, index_interval_bytes=100)
    found: list[list[int]] = []

    def write() -> None:
        for _ in range(APPENDS):
            append(log, b"value")

    def read() -> None:
        found.append(follow(log, 2 * APPENDS))

    def flush() -> None:
        while log.log_end_offset < 2 * APPENDS:
            log.flush()

    run(write, write, read, read, flush)

    assert found == [list(range(2 * APPENDS))] * 2


def test_what_is_replicated_reads_right_while_the_log_is_cut_at_both_ends(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=1000, index_interval_bytes=100, retention_ms=0)
    done = threading.Event()

    def write() -> None:
        for number in range(APPENDS):
            append(log, b"value")
            log.advance_high_watermark(log.log_end_offset - 5)
            if number % 7 == 0:
                log.truncate_to(max(log.log_start_offset, log.log_end_offset - 2))
            if number % 50 == 0:
                log.delete_old_segments(START_MS + 10_000)
        done.set()

    def read() -> None:
        while not done.is_set():
            offset = log.log_start_offset
            try:
                piece = log.read(offset, 1 << 20, min_one=True, end_offset=log.high_watermark)
                data = piece.read_bytes()
            except BrokerError as error:
                if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
                    raise
                continue
            for position, header in iter_batch_headers(data, allow_truncated_tail=True):
                verify_crc(data, position, header)

    run(write, read, read)

    assert log.log_end_offset > log.log_start_offset > 0
