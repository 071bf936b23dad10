"""Bytes that the disk does not give back: the client is told, and the log directory goes offline."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kavka.broker.network.file_part import FilePart
from kavka.broker.partitions.log_reading import SENDFILE_FROM_BYTES, Reading, ReadLimits
from kavka.protocol.codec import decode, encode
from kavka.protocol.errors import ErrorCode
from kavka.protocol.headers import decode_response_header, encode_request_header
from kavka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from tests.support.broker_core import BrokerCore
from tests.support.log_managers import FailingFiles, append

LARGE = SENDFILE_FROM_BYTES + 1000


@pytest.fixture
def files() -> FailingFiles:
    return FailingFiles()


@pytest.fixture
def core(tmp_path: Path, files: FailingFiles) -> Iterator[BrokerCore]:
    core = BrokerCore(tmp_path, files=files)
    core.create("visits")
    yield core
    core.close()


def fill(core: BrokerCore, *sizes: int) -> None:
    log = core.log("visits")
    for size in sizes:
        append(log, b"x" * size)
    log.advance_high_watermark(log.log_end_offset)


def fetched(core: BrokerCore, version: int) -> PartitionData:
    """The answer to a fetch of everything."""
    fields: dict[str, Any] = {"session_id": 0, "session_epoch": -1} if version >= 7 else {}
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=1 << 20,
        isolation_level=0,
        topics=[
            FetchTopic(
                topic="visits",
                partitions=[FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)],
            )
        ],
        forgotten_topics_data=[],
        **fields,
    )
    answer = core.ask(encode_request_header(1, version, 5, "c") + encode(request, version))
    _, position = decode_response_header(1, version, answer[4:])
    response = decode(FetchResponse, version, memoryview(answer)[4 + position :])
    return response.responses[0].partitions[0]


def reading_of(core: BrokerCore, *, size: int = 1 << 20, nothing_yet: bool = True) -> Reading:
    asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=size)
    reading = Reading(core.replicas.partitions["visits", 0], asked)
    limits = ReadLimits(1 << 20, version=12, replica_id=-1, isolation_level=0)
    reading.read(limits, 1 << 20, nothing_yet=nothing_yet)
    return reading


@pytest.mark.parametrize(("version", "size"), [(12, 10), (4, 10), (3, 10), (3, LARGE)])
def test_a_slice_that_the_disk_refuses_is_an_error_and_takes_its_directory_offline(
    core: BrokerCore, files: FailingFiles, version: int, size: int
) -> None:
    fill(core, size)
    files.fail("pread", "visits-0", errno.EIO)

    answer = fetched(core, version)

    assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert not answer.records
    assert len(core.rig.failures) == 1


def test_a_lack_of_descriptors_is_an_error_that_passes(core: BrokerCore, files: FailingFiles) -> None:
    fill(core, LARGE)
    log = core.log("visits")
    log.roll(0, log.log_end_offset)
    reading = reading_of(core)
    log.published[2][0].file.leave_pool()
    files.fail("open", ".log", errno.EMFILE)

    assert reading.attach() == 0

    assert reading.answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert core.rig.failures == []


def test_a_look_at_the_first_batch_that_the_disk_refuses_takes_its_directory_offline(
    core: BrokerCore, files: FailingFiles
) -> None:
    fill(core, 1000)
    files.fail("pread", "visits-0", errno.EIO)

    reading = reading_of(core, size=500, nothing_yet=False)

    assert reading.answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert len(core.rig.failures) == 1


def test_a_file_that_has_lost_its_end_is_no_empty_answer(core: BrokerCore) -> None:
    fill(core, 10, 10)
    os.truncate(core.log("visits").published[2][0].file.path, 20)

    assert fetched(core, 12).error_code == ErrorCode.KAFKA_STORAGE_ERROR

    assert len(core.rig.failures) == 1


@pytest.mark.parametrize("size", [10, LARGE])
def test_what_a_truncation_took_is_missing_and_no_fault_of_the_disk(core: BrokerCore, size: int) -> None:
    fill(core, size, 10)
    reading = reading_of(core)
    core.log("visits").truncate_to(1)

    reading.attach()

    assert reading.answer.error_code == 0
    if isinstance(reading.answer.records, FilePart):
        reading.answer.records.failed(None)
        reading.answer.records.release()
    assert core.rig.failures == []


def test_what_retention_took_is_asked_for_again(core: BrokerCore) -> None:
    fill(core, 10)
    log = core.log("visits")
    log.roll(0, 1)
    fill(core, 10)
    reading = reading_of(core)
    log.delete_records_before(1)
    log.delete_old_segments(0)
    core.rig.now_ms += 1 << 40
    core.rig.manager.delete_pending()

    assert reading.attach() == 0

    assert (reading.answer.error_code, reading.answer.records) == (0, b"")
    assert core.rig.failures == []


@pytest.mark.parametrize("error", [OSError(errno.EIO, "broken"), None])
def test_a_slice_that_can_not_be_sent_takes_its_directory_offline(core: BrokerCore, error: OSError | None) -> None:
    fill(core, LARGE)
    reading = reading_of(core)
    assert reading.attach() >= LARGE
    assert isinstance(reading.answer.records, FilePart)

    reading.answer.records.failed(error)
    reading.answer.records.release()

    assert len(core.rig.failures) == 1
