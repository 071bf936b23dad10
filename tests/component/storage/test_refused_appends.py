"""A batch that a log refuses is left as its client sent it: whoever tries again with the same bytes hears the same."""

import errno
from pathlib import Path
from typing import Any

import pytest

from kavka.protocol.errors import ErrorCode
from kavka.protocol.records.batch import TimestampType, read_header, verify_crc
from kavka.storage.append_result import AppendError, AppendResult, UnflushedError
from kavka.storage.partition_log import PartitionLog
from kavka.storage.verification_guards import NOT_VERIFIED
from tests.support.log_managers import FailingFiles
from tests.support.partition_logs import START_MS, append, batch_of, open_log
from tests.unit.storage.test_append_checks import with_fields

PRODUCER: dict[str, Any] = {"producer_id": 7, "producer_epoch": 1}

TOPICS: dict[str, dict[str, Any]] = {
    "plain": {},
    "stamped": {"message_timestamp_type": "LogAppendTime"},
    "compacted": {"cleanup_policy": "compact"},
    "compacted and stamped": {"cleanup_policy": "compact", "message_timestamp_type": "LogAppendTime"},
    "packed anew": {"compression_type": "gzip"},
}

REFUSALS: dict[str, tuple[dict[str, Any], ErrorCode]] = {
    "gap": ({**PRODUCER, "base_sequence": 9}, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
    "old epoch": ({**PRODUCER, "producer_epoch": 0, "base_sequence": 1}, ErrorCode.INVALID_PRODUCER_EPOCH),
    "unverified": ({**PRODUCER, "base_sequence": 1, "transactional": True}, ErrorCode.INVALID_TXN_STATE),
    "disk": ({**PRODUCER, "base_sequence": 1}, ErrorCode.KAFKA_STORAGE_ERROR),
    "disk, no producer": ({}, ErrorCode.KAFKA_STORAGE_ERROR),
}


def try_append(log: PartitionLog, batch: bytearray) -> AppendResult:
    return log.append_as_leader(batch, leader_epoch=3, now_ms=START_MS + 500, guard=NOT_VERIFIED)


def refusal(log: PartitionLog, batch: bytearray) -> ErrorCode:
    with pytest.raises(AppendError) as caught:
        try_append(log, batch)
    return caught.value.code


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("why", REFUSALS)
def test_a_refused_batch_is_as_it_was_sent_and_refused_the_same_again(tmp_path: Path, topic: str, why: str) -> None:
    files = FailingFiles()
    log = open_log(tmp_path, files=files, **TOPICS[topic])
    append(log, b"first", **PRODUCER, base_sequence=0)
    fields, code = REFUSALS[why]
    batch = with_fields(batch_of(b"a", b"b", **fields), max_timestamp=START_MS + 9)
    came = bytes(batch)
    if code is ErrorCode.KAFKA_STORAGE_ERROR:
        files.fail("pwrite", ".log", errno.ENOSPC)

    assert [refusal(log, batch), refusal(log, batch)] == [code, code]

    # The leader epoch, which no check looks at, may have been set.
    assert bytes(batch[:12] + batch[16:]) == came[:12] + came[16:]
    assert log.log_end_offset == 1


@pytest.mark.parametrize("topic", TOPICS)
def test_what_a_full_disk_refused_is_taken_once_there_is_room(tmp_path: Path, topic: str) -> None:
    files = FailingFiles()
    log = open_log(tmp_path, files=files, **TOPICS[topic])
    batch = with_fields(batch_of(b"a", b"b", **PRODUCER, base_sequence=0), max_timestamp=START_MS + 9)
    files.fail("pwrite", ".log", errno.ENOSPC)
    refusal(log, batch)
    files.heal()

    assert try_append(log, batch)[:2] == (0, 1)

    data = log.read(0, 1 << 20, min_one=True, end_offset=2).read_bytes()
    header = read_header(data)
    verify_crc(data, 0, header)
    is_stamped = "stamped" in topic
    assert header.timestamp_type == (TimestampType.LOG_APPEND if is_stamped else TimestampType.CREATE)
    largest_ms = {"plain": 9}.get(topic, 500 if is_stamped else 1)
    assert header.max_timestamp_ms == START_MS + largest_ms


@pytest.mark.parametrize(("interval", "is_due"), [(1, True), (2, True), (3, False)])
def test_a_repeated_batch_is_acknowledged_only_when_the_flush_that_is_due_succeeds(
    tmp_path: Path, interval: int, is_due: bool
) -> None:
    files = FailingFiles()
    log = open_log(tmp_path, files=files, flush_messages=interval)
    batch = batch_of(b"a", b"b", **PRODUCER, base_sequence=0)
    # What passes by itself; a failed fsync is the log's last.
    files.fail("stat", "index", errno.ENOMEM)

    for _ in range(3):
        again = bytearray(batch)
        if is_due:
            with pytest.raises(UnflushedError):
                try_append(log, again)
        else:
            try_append(log, again)

    files.heal()
    assert try_append(log, bytearray(batch))[:2] == (0, 1)
    assert log.recovery_point == (2 if is_due else 0)
    assert log.log_end_offset == 2


def sequenced(first: int, epoch: int = 1) -> bytearray:
    return batch_of(b"a", b"b", producer_id=7, producer_epoch=epoch, base_sequence=first)


def outcome(log: PartitionLog, batch: bytearray) -> ErrorCode | tuple[int, int]:
    try:
        return try_append(log, batch)[:2]
    except AppendError as failure:
        return failure.code


@pytest.mark.parametrize("step", ["write", "roll"])
@pytest.mark.parametrize("known", [None, 1, 0], ids=["unknown", "known", "of the epoch before"])
def test_batches_under_way_behind_one_that_a_full_disk_refused_wait_for_it(
    tmp_path: Path, known: int | None, step: str
) -> None:
    files = FailingFiles()
    log = open_log(tmp_path, files=files, segment_bytes=100 if step == "roll" else 10_000)
    append(log, b"other")
    first = start = 0
    if known is not None:
        start = first = 2
        assert outcome(log, sequenced(0, known)) == (1, 2)
        first = 2 if known == 1 else 0
    end = log.log_end_offset
    files.fail("pwrite" if step == "write" else "open", ".log", errno.ENOSPC)
    assert outcome(log, sequenced(first)) == ErrorCode.KAFKA_STORAGE_ERROR
    files.heal()

    under_way = [outcome(log, sequenced(first + 2)), outcome(log, sequenced(first + 4))]

    assert under_way == [ErrorCode.KAFKA_STORAGE_ERROR] * 2
    assert log.log_end_offset == end == start + 1
    again = [outcome(log, sequenced(first + 2 * number)) for number in range(3)]
    assert again == [(end + 2 * number, end + 2 * number + 1) for number in range(3)]
    # No gap is the disk's any more.
    assert outcome(log, sequenced(first + 60)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_batch_behind_several_refused_ones_waits_although_the_first_came_in_over_another_connection(
    tmp_path: Path,
) -> None:
    files = FailingFiles()
    log = open_log(tmp_path, files=files)
    files.fail("pwrite", ".log", errno.ENOSPC)
    assert outcome(log, sequenced(0)) == ErrorCode.KAFKA_STORAGE_ERROR
    files.heal()
    assert outcome(log, sequenced(2)) == ErrorCode.KAFKA_STORAGE_ERROR
    # From a connection that its producer has given up, and then sent all of them again.
    assert outcome(log, sequenced(0)) == (0, 1)

    assert outcome(log, sequenced(4)) == ErrorCode.KAFKA_STORAGE_ERROR

    assert [outcome(log, sequenced(2 * number)) for number in range(3)] == [(0, 1), (2, 3), (4, 5)]
    assert outcome(log, sequenced(60)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
