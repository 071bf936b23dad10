"""A partition's log in a test: opened with a clock that stands still and configurations by name."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kavka.config.sources import load_config
from kavka.config.topic_config import TopicConfig
from kavka.protocol.records.batch import Record, build_batch, build_control_batch, iter_batch_headers, iter_records
from kavka.protocol.records.builder import ControlType
from kavka.storage.append_result import AppendResult, Origin
from kavka.storage.environment import LogEnvironment
from kavka.storage.files import Files
from kavka.storage.partition_log import PartitionLog
from tests.support.tidy_files import TidyFiles

START_MS = 1_700_000_000_000


class Clock:
    """Milliseconds that a test moves."""

    def __init__(self) -> None:
        self.ms = START_MS

    def __call__(self) -> int:
        return self.ms


class Jobs:
    """What a log wanted done later or by others; run when the test says so."""

    def __init__(self) -> None:
        self.background: list[Callable[[], None]] = []
        self.later: list[tuple[int, Callable[[], None]]] = []
        self.failures: list[OSError] = []

    def run_all(self) -> None:
        for job in [*self.background, *(job for _, job in self.later)]:
            job()
        self.background.clear()
        self.later.clear()


def topic_config(**overrides: object) -> TopicConfig:
    """`segment_bytes=1000` is `segment.bytes=1000`."""
    texts = {name.replace("_", "."): str(value) for name, value in overrides.items()}
    return TopicConfig.of(load_config(None, [], {}).config, texts)


def open_log(
    directory: Path,
    *,
    clean: bool = True,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    files: Files | None = None,
    clock: Clock | None = None,
    jobs: Jobs | None = None,
    producer_id_expiration_ms: int = 86_400_000,
    topic_id: bytes | None = None,
    **overrides: object,
) -> PartitionLog:
    """The log in `directory`, which is made if it is missing; unless `clean`, everything is recovered."""
    files = files or TidyFiles()
    files.makedirs(directory)
    jobs = jobs or Jobs()
    environment = LogEnvironment(
        files=files,
        now_ms=clock or Clock(),
        run_in_background=jobs.background.append,
        run_later=lambda delay_ms, job: jobs.later.append((delay_ms, job)),
        on_io_failure=lambda _directory, error: jobs.failures.append(error),
        producer_id_expiration_ms=producer_id_expiration_ms,
    )
    return PartitionLog.open(
        directory,
        "visits",
        0,
        topic_config(**overrides),
        environment,
        clean=clean,
        recovery_point=recovery_point,
        log_start_offset=log_start_offset,
        topic_id=topic_id,
    )


def batch_of(*values: bytes, timestamp_ms: int = START_MS, key: bytes | None = b"k", **fields: Any) -> bytearray:
    """A v2 batch with these values, as a producer sends it."""
    records = [Record(timestamp_ms=timestamp_ms + number, key=key, value=value) for number, value in enumerate(values)]
    return bytearray(build_batch(records, **fields))


def append(log: PartitionLog, *values: bytes, leader_epoch: int = 0, **fields: Any) -> AppendResult:
    """Append one batch with these values."""
    return append_batch(log, batch_of(*values, **fields), leader_epoch=leader_epoch)


def append_batch(log: PartitionLog, batch: bytearray, leader_epoch: int = 0) -> AppendResult:
    return log.append_as_leader(batch, leader_epoch=leader_epoch, now_ms=log.environment.now_ms())


def end_transaction(log: PartitionLog, producer_id: int, *, aborted: bool, producer_epoch: int = 0) -> AppendResult:
    """Append the coordinator's marker."""
    batch = build_control_batch(
        ControlType.ABORT if aborted else ControlType.COMMIT,
        timestamp_ms=START_MS,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        coordinator_epoch=0,
    )
    return log.append_as_leader(
        bytearray(batch), leader_epoch=0, now_ms=log.environment.now_ms(), origin=Origin.COORDINATOR
    )


def read_all(log: PartitionLog) -> list[tuple[int, bytes | None]]:
    """(offset, value) of every data record, read as a consumer reads: slice by slice from the start."""
    found: list[tuple[int, bytes | None]] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        piece = log.read(offset, 1 << 20, min_one=True, end_offset=log.log_end_offset)
        try:
            data = piece.read_bytes()
        except FileNotFoundError:
            continue  # compacted meanwhile; the log has it in another file, as a fetch would find
        if not data:
            break
        for position, header in iter_batch_headers(data, allow_truncated_tail=True):
            if not header.is_control:
                found += [(record.offset, record.value) for record in iter_records(data, position)]
            offset = header.next_offset
    return found


def cut(path: Path, by: int) -> None:
    """Shorten a file."""
    with path.open("r+b") as file:
        file.truncate(max(0, path.stat().st_size - by))


def spoil(path: Path, position: int) -> None:
    """Flip the bits of one byte."""
    data = bytearray(path.read_bytes())
    data[position] ^= 0xFF
    path.write_bytes(data)


def open_files_in(directory: Path) -> list[str]:
    """What this process has open below the directory."""
    links = (Path("/proc/self/fd") / name for name in os.listdir("/proc/self/fd"))  # noqa: PTH208 - names are wanted
    opened = []
    for link in links:
        try:
            opened.append(str(link.readlink()))
        except FileNotFoundError:
            continue
    return [path for path in opened if path.startswith(f"{directory}/")]
