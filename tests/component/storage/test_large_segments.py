"""Segments of almost 2 GiB, the most that segment.bytes allows: a hole in the file stands for most of it."""

import os
import socket
from pathlib import Path
from typing import Any

from kavka.broker.network.file_part import FilePart
from kavka.protocol.records.batch import HEADER_SIZE_BYTES, read_header
from kavka.storage.log_slice import LogSlice
from kavka.storage.offset_index import ENTRY_BYTES
from kavka.storage.partition_log import PartitionLog
from tests.support.partition_logs import START_MS, append, open_log

LARGEST = 2**31 - 1
VALUE = bytes(range(256)) * 300
ROOM = 4 * (len(VALUE) + 200)
SETTINGS: dict[str, Any] = {"segment_bytes": LARGEST, "index_interval_bytes": 0, "max_message_bytes": 2 * len(VALUE)}


def nearly_full(folder: Path) -> PartitionLog:
    """A log with one record, and four behind almost 2 GiB of nothing; a fifth does not fit any more."""
    log = open_log(folder, **SETTINGS)
    append(log, b"first", timestamp_ms=START_MS - 1000)
    segment = log.published[2][-1]
    os.truncate(segment.file.path, LARGEST - ROOM)
    segment.size_bytes = LARGEST - ROOM
    log.publish(1, LARGEST - ROOM, (segment,))
    for number in range(4):
        append(log, VALUE, timestamp_ms=START_MS + number)
    assert log.segment_count == 1
    log.advance_high_watermark(log.log_end_offset)
    return log


def read_one(log: PartitionLog, offset: int) -> LogSlice:
    return log.read(offset, 1, min_one=True, end_offset=log.log_end_offset)


def test_records_at_the_end_are_read_and_found_by_time_also_after_a_restart(tmp_path: Path) -> None:
    log = nearly_full(tmp_path)
    for _ in range(2):
        for offset in range(2, 5):
            data = read_one(log, offset).read_bytes()
            header = read_header(data)
            assert (header.base_offset, header.size_bytes) == (offset, len(data))
            assert VALUE in data
            found = log.offset_for_time(START_MS + offset - 1)
            assert found is not None
            assert found.offset == offset
        newest = log.max_timestamp_offset()
        assert newest is not None
        assert newest.offset == 4
        log.close()
        log = open_log(tmp_path, **SETTINGS)
        assert log.recovered_segments == 0
        assert (log.log_end_offset, log.size_bytes) == (5, (tmp_path / f"{0:020d}.log").stat().st_size)
    log.close()


def test_a_slice_at_the_end_goes_by_sendfile(tmp_path: Path) -> None:
    log = nearly_full(tmp_path)
    piece = log.read(3, 1 << 30, min_one=True, end_offset=5)
    part = FilePart(piece)
    ours, theirs = socket.socketpair()
    received = bytearray()
    while part.size_bytes:
        sent = os.sendfile(ours.fileno(), part.fileno(), part.position, part.size_bytes)
        part.position += sent
        part.size_bytes -= sent
        while sent:
            data = theirs.recv(sent)
            received += data
            sent -= len(data)
    part.release()
    ours.close()
    theirs.close()

    assert received == piece.read_bytes()
    assert [read_header(received).base_offset, piece.size_bytes] == [3, 2 * (len(received) // 2)]
    log.close()


def test_one_slice_may_be_almost_all_of_it(tmp_path: Path) -> None:
    log = nearly_full(tmp_path)
    piece = log.read(0, LARGEST, min_one=True, end_offset=5)
    assert piece.size_bytes == log.size_bytes > 2**31 - ROOM
    log.close()


def test_what_does_not_fit_any_more_goes_into_the_next_segment(tmp_path: Path) -> None:
    log = nearly_full(tmp_path)
    append(log, VALUE)
    assert [segment.base_offset for segment in log.published[2]] == [0, 5]
    assert log.published[2][0].size_bytes <= LARGEST
    assert VALUE in read_one(log, 5).read_bytes()
    log.close()


def test_the_end_can_be_cut_off_and_written_again(tmp_path: Path) -> None:
    log = nearly_full(tmp_path)
    log.truncate_to(3)
    assert (tmp_path / f"{0:020d}.log").stat().st_size == log.size_bytes > LARGEST - ROOM
    assert append(log, b"again").first_offset == 3
    assert b"again" in read_one(log, 3).read_bytes()
    log.close()
    last = (tmp_path / f"{0:020d}.index").read_bytes()[-ENTRY_BYTES:]
    assert int.from_bytes(last[:4], "big") == 3
    assert int.from_bytes(last[4:], "big") > LARGEST - ROOM + HEADER_SIZE_BYTES
