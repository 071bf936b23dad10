"""Readers and writers go on while segments are swapped under them."""

import threading
from pathlib import Path

from kavka.protocol.records.batch import Record, build_batch
from kavka.storage.partition_log import PartitionLog
from tests.support.compaction import compact, roll
from tests.support.partition_logs import START_MS, Jobs, append_batch, open_log, read_all
from tests.support.processes import wait_until


def test_readers_see_every_live_key_at_any_time(tmp_path: Path) -> None:
    jobs = Jobs()
    log = open_log(tmp_path, jobs=jobs, cleanup_policy="compact", segment_bytes=3000, index_interval_bytes=200)
    for number in range(10):
        put(log, b"live-%d" % number)
    roll(log)
    stop = threading.Event()
    failures: list[BaseException] = []
    reads = 0

    def read() -> None:
        nonlocal reads
        try:
            while not stop.is_set():
                offsets = [offset for offset, _ in read_all(log)]
                assert offsets == sorted(set(offsets))
                assert offsets[:10] == list(range(10))
                log.offset_for_time(START_MS)
                reads += 1
        except BaseException as failure:
            failures.append(failure)
            raise

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for _ in range(15):
            for number in range(60):
                put(log, b"busy-%d" % (number % 5))
            roll(log)
            compact(log)
            # Old files go at once, as with file.delete.delay.ms=0.
            jobs.run_all()
            if failures:
                break
        wait_until(lambda: bool(reads or failures), 60, "nobody has read")
    finally:
        stop.set()
        reader.join()
    assert failures == []
    assert reads > 0
    assert len(read_all(log)) < 10 + 15 * 60


def put(log: PartitionLog, key: bytes) -> None:
    append_batch(log, bytearray(build_batch([Record(0, START_MS, key, b"value" * 10)])))


def test_a_slice_that_was_read_before_a_compaction_is_known_to_be_old(tmp_path: Path) -> None:
    log = open_log(tmp_path, cleanup_policy="compact")
    put(log, b"a")
    put(log, b"a")
    roll(log)
    piece = log.read(0, 1 << 20, min_one=True, end_offset=2)
    assert log.holds(piece)

    compact(log)

    assert not log.holds(piece)
    assert log.holds(log.read(0, 1 << 20, min_one=True, end_offset=2))
