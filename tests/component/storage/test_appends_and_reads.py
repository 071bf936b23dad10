"""What is appended can be read, at its offset, from the batch that holds it."""

from pathlib import Path
from typing import Any

import pytest

from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.records.batch import Record, read_header
from kavka.protocol.records.legacy import build_message_set
from kavka.storage.append_result import AppendError
from kavka.storage.partition_metadata import InconsistentTopicIdError
from tests.support.partition_logs import (
    START_MS,
    Clock,
    append,
    append_batch,
    batch_of,
    open_log,
    read_all,
    topic_config,
)


def test_offsets_and_leader_epoch_are_written_into_the_batch(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, b"a", b"b")
    result = append(log, b"c", leader_epoch=3)

    header = read_header(log.read(2, 1000, min_one=True, end_offset=3).read_bytes())

    assert (result.first_offset, result.last_offset, log.log_end_offset) == (2, 2, 3)
    assert (header.base_offset, header.partition_leader_epoch) == (2, 3)
    assert log.epochs.latest_epoch == 3


def test_a_read_inside_a_batch_starts_with_that_batch(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, b"a", b"b", b"c")
    append(log, b"d")

    piece = log.read(1, 1000, min_one=True, end_offset=4)

    assert piece.position == 0
    assert read_header(piece.read_bytes()).base_offset == 0


@pytest.mark.parametrize("batches", [1, 2, 31, 33, 500])
def test_every_offset_is_found_however_the_index_falls(tmp_path: Path, batches: int) -> None:
    log = open_log(tmp_path, index_interval_bytes=300, segment_bytes=8000)
    for number in range(batches):
        append(log, b"%d" % number, b"second")

    for offset in range(2 * batches):
        piece = log.read(offset, 1 << 20, min_one=True, end_offset=log.log_end_offset)
        header = read_header(piece.read_bytes())
        assert header.base_offset <= offset <= header.last_offset


def test_a_read_stops_before_the_end_offset(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    size = len(batch_of(b"a"))
    for _ in range(4):
        append(log, b"a")

    assert log.read(0, 1 << 20, min_one=True, end_offset=3).size_bytes == 3 * size
    assert log.read(3, 1 << 20, min_one=True, end_offset=3).size_bytes == 0


def test_the_first_batch_comes_whole_only_if_asked(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    batch = batch_of(b"x" * 500)
    append_batch(log, batch)
    append(log, b"next")

    assert log.read(0, 10, min_one=True, end_offset=2).size_bytes == len(batch)
    assert log.read(0, 10, min_one=False, end_offset=2).size_bytes == 10
    assert log.read(0, 0, min_one=False, end_offset=2).size_bytes == 0


@pytest.mark.parametrize("offset", [-1, 2, 1000])
def test_offsets_outside_the_log_are_refused(tmp_path: Path, offset: int) -> None:
    log = open_log(tmp_path)
    append(log, b"a")

    with pytest.raises(BrokerError) as caught:
        log.read(offset, 100, min_one=True, end_offset=1)

    assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_pinned_slice_outlives_its_segment(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, b"still here")
    piece = log.read(0, 1000, min_one=True, end_offset=1)
    piece.acquire()

    log.truncate_fully_and_start_at(100)

    assert b"still here" in piece.read_bytes()
    piece.release()


def test_only_who_keeps_its_file_pinned_knows_a_descriptor_to_write_to(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=100)
    for value in (b"a", b"b", b"c"):
        append(log, value)
    first, second, third = log.published[2]
    assert (first.fd, second.fd) == (-1, -1)
    assert third.fd == third.file.fileno() >= 0

    log.truncate_to(1)
    assert log.published[2] == (first, second)
    assert (first.fd, third.fd) == (-1, -1)
    assert second.fd == second.file.fileno() >= 0

    log.truncate_fully_and_start_at(10)
    begun = log.published[2][-1]
    assert (first.fd, second.fd) == (-1, -1)
    assert begun.fd == begun.file.fileno() >= 0

    log.close()
    assert begun.fd == -1


def test_log_append_time_stamps_the_batch(tmp_path: Path) -> None:
    log = open_log(tmp_path, message_timestamp_type="LogAppendTime")
    result = append(log, b"a", timestamp_ms=5)

    header = read_header(log.read(0, 1000, min_one=True, end_offset=1).read_bytes())

    assert result.log_append_time_ms == header.max_timestamp_ms == START_MS
    assert header.timestamp_type == 1


def test_a_topics_codec_replaces_the_producers(tmp_path: Path) -> None:
    log = open_log(tmp_path, compression_type="gzip")
    append(log, b"a" * 1000, producer_id=7, producer_epoch=0, base_sequence=0)

    header = read_header(log.read(0, 10_000, min_one=True, end_offset=1).read_bytes())

    assert header.codec == 1
    assert (header.producer_id, header.base_sequence) == (7, 0)
    assert read_all(log) == [(0, b"a" * 1000)]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [0, 1])
def test_an_old_message_set_becomes_one_batch(tmp_path: Path, magic: int, codec: int) -> None:
    log = open_log(tmp_path)
    records = [Record(timestamp_ms=START_MS, value=value) for value in (b"a", b"b")]
    message_set = bytearray(build_message_set(records, magic, codec=codec))

    result = log.append_as_leader(message_set, leader_epoch=0, now_ms=START_MS, single_v2_batch=False)

    assert result.last_offset == 1
    assert read_all(log) == [(0, b"a"), (1, b"b")]


def test_a_compacted_topic_names_the_records_without_keys(tmp_path: Path) -> None:
    log = open_log(tmp_path, cleanup_policy="compact")

    with pytest.raises(AppendError) as caught:
        append(log, b"a", b"b", key=None)

    assert caught.value.code == ErrorCode.INVALID_RECORD
    assert [index for index, _ in caught.value.record_errors] == [0, 1]
    assert log.log_end_offset == 0


def test_records_are_found_by_time_across_segments(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=500, index_interval_bytes=100)
    for number in range(40):
        append(log, b"value", timestamp_ms=START_MS + 10 * number)

    for number in range(40):
        found = log.offset_for_time(START_MS + 10 * number - 5)
        assert found is not None
        assert (found.offset, found.timestamp_ms) == (number, START_MS + 10 * number)
    assert log.offset_for_time(START_MS + 1000) is None
    newest = log.max_timestamp_offset()
    assert newest is not None
    assert newest.offset == 39


def test_segments_are_found_by_when_they_were_last_written(tmp_path: Path) -> None:
    clock = Clock()
    log = open_log(tmp_path, clock=clock, segment_bytes=200)
    assert log.offsets_before(None) == log.offsets_before(START_MS + 10**12) == [0]
    for _ in range(3):
        append(log, b"x" * 50, b"y" * 50)
    assert log.offsets_before(None) == [6, 4, 2, 0]
    for base, written_ms in ((0, START_MS + 3000), (2, START_MS + 1000), (4, START_MS + 2000)):
        log.files.set_modified(log.directory / f"{base:020}.log", written_ms)
    clock.ms = START_MS + 5000

    assert log.offsets_before(START_MS + 5000) == [6, 4, 2, 0]
    assert log.offsets_before(START_MS + 4999) == [4, 2, 0]
    assert log.offsets_before(START_MS + 1999) == [2, 0], "from the youngest on that is as old"
    assert log.offsets_before(START_MS + 999) == []
    log.advance_high_watermark(6)
    log.delete_records_before(3)
    assert log.offsets_before(None)[:3] == [6, 4, 3]


def test_a_newest_record_in_the_middle_is_found(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for timestamp_ms in (START_MS, START_MS + 900, START_MS + 10):
        append(log, b"v", timestamp_ms=timestamp_ms)

    newest = log.max_timestamp_offset()

    assert newest is not None
    assert (newest.offset, newest.timestamp_ms) == (1, START_MS + 900)


def test_a_follower_keeps_offsets_epochs_and_gaps(tmp_path: Path) -> None:
    leader, follower = open_log(tmp_path / "leader"), open_log(tmp_path / "follower")
    append(leader, b"a", leader_epoch=1)
    append(leader, b"b", b"c", leader_epoch=4)
    data = leader.read(0, 1 << 20, min_one=True, end_offset=3).read_bytes()

    follower.append_as_follower(bytearray(data) + batch_of(b"cut off")[:50])

    assert read_all(follower) == read_all(leader)
    assert follower.epochs.entries == leader.epochs.entries == ((1, 0), (4, 1))
    with pytest.raises(AppendError) as caught:
        follower.append_as_follower(data)
    assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_follower_spreads_a_large_fetch_over_segments(tmp_path: Path) -> None:
    leader, follower = open_log(tmp_path / "leader"), open_log(tmp_path / "follower", segment_bytes=400)
    for number in range(20):
        append(leader, b"%d" % number)

    follower.append_as_follower(leader.read(0, 1 << 20, min_one=True, end_offset=20).read_bytes())

    assert follower.segment_count > 3
    assert read_all(follower) == read_all(leader)


@pytest.mark.parametrize(
    ("settings", "batches", "advance_ms"),
    [
        ({"segment_bytes": 200}, 3, 0),
        ({"segment_ms": 1000}, 2, 2000),
        ({"segment_index_bytes": 16, "index_interval_bytes": 0}, 6, 0),
    ],
)
def test_a_segment_is_closed_by_size_time_or_a_full_index(
    tmp_path: Path, settings: dict[str, Any], batches: int, advance_ms: int
) -> None:
    log = open_log(tmp_path, **settings)
    for number in range(batches):
        append(log, b"x" * 50, timestamp_ms=START_MS + advance_ms * number)

    assert log.segment_count > 1
    assert len(read_all(log)) == batches


def test_a_segments_age_is_told_by_its_messages_not_by_the_clock(tmp_path: Path) -> None:
    clock = Clock()
    log = open_log(tmp_path, clock=clock, segment_ms=1000)
    append(log, b"a")
    clock.ms += 10_000
    append(log, b"b")

    assert log.segment_count == 1


def test_a_segments_age_is_told_by_the_clock_where_messages_have_no_time(tmp_path: Path) -> None:
    clock = Clock()
    log = open_log(tmp_path, clock=clock, segment_ms=1000)
    append(log, b"a", timestamp_ms=-1)
    clock.ms += 1001
    append(log, b"b", timestamp_ms=-1)

    assert log.segment_count == 2


def test_offsets_too_far_apart_for_one_index_begin_a_segment(tmp_path: Path) -> None:
    leader, follower = open_log(tmp_path / "leader"), open_log(tmp_path / "follower")
    append(leader, b"a")
    first = leader.read(0, 1000, min_one=True, end_offset=1).read_bytes()
    far = bytearray(batch_of(b"far"))
    far[:8] = (1 << 31).to_bytes(8, "big")

    follower.append_as_follower(first + far)

    assert follower.segment_count == 2
    assert read_all(follower) == [(0, b"a"), (1 << 31, b"far")]
    follower.close(clean=False)
    assert read_all(open_log(tmp_path / "follower", clean=False)) == [(0, b"a"), (1 << 31, b"far")]


def test_an_empty_produce_of_an_old_client_appends_nothing(tmp_path: Path) -> None:
    log = open_log(tmp_path)

    result = log.append_as_leader(bytearray(), leader_epoch=0, now_ms=START_MS, single_v2_batch=False)

    assert (result.first_offset, log.log_end_offset) == (-1, 0)


def test_a_topic_id_is_kept_and_another_ones_log_is_refused(tmp_path: Path) -> None:
    topic_id = bytes(range(16))
    open_log(tmp_path, topic_id=topic_id).close()

    assert open_log(tmp_path).topic_id == topic_id
    with pytest.raises(InconsistentTopicIdError):
        open_log(tmp_path, topic_id=bytes(15) + b"\1")


def test_a_new_configuration_takes_effect_on_the_next_append(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, b"a")
    log.update_config(topic_config(segment_bytes=100, max_message_bytes=90))

    append(log, b"b")
    with pytest.raises(AppendError) as caught:
        append(log, b"c" * 50)

    assert log.segment_count == 2
    assert caught.value.code == ErrorCode.MESSAGE_TOO_LARGE
