"""One round over one log as the broker sees it: the job is made up, its groups are swapped in, its end is noted."""

import contextlib
import os
from collections.abc import Iterator
from enum import Enum
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from kavka.config.broker_config import BrokerConfig
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.storage.cleaner.jobs import (
    ABORTED,
    BROKEN,
    CORRUPT,
    DISK,
    GONE,
    CleanedGroup,
    CleanedLog,
    CleaningFailed,
    CleanJob,
)
from kavka.storage.cleaner.selection import CleanableLog
from kavka.storage.cleaner.swap import remove_cleaned, swap_in
from kavka.storage.cleaner.worker_process import Worker, WorkerDiedError
from kavka.storage.files import FinalDiskError
from kavka.storage.offset_index import CorruptIndexError
from kavka.storage.partition_log import PartitionLog

STROKE: Final = 16
"""A worker reads that many times its share of log.cleaner.io.buffer.size at a time: it works on whole columns."""
MAX_MAP_BYTES: Final = (1 << 31) - 1
_PRODUCERS_A_SLICE: Final = 1000


class Outcome(Enum):
    """How a round ended."""

    CLEANED = "cleaned"
    PASSED = "it may work another time"
    GONE = "the log is deleted"
    CORRUPT = "the log holds what can't be"
    BROKEN = "it should have worked"
    DIED = "the worker was killed, or ended by itself"


class Round(NamedTuple):
    """What is to be known afterwards."""

    outcome: Outcome
    result: CleanedLog | None = None
    reason: str = ""


_GONE: Final = Round(Outcome.GONE)


def clean(found: CleanableLog, worker: Worker, config: BrokerConfig, now_ms: int, bytes_per_second: float) -> Round:
    """Have the worker clean the log, and take over what it made. Raises WorkerDiedError, BrokerError (broken disk)."""
    log = found.log
    try:
        job = make_job(found, config, now_ms, bytes_per_second)
    except BrokerError as refused:
        if refused.code == ErrorCode.CORRUPT_MESSAGE and log.truncations == found.truncations:
            return Round(Outcome.CORRUPT, reason=str(refused))
        raise
    with log.lock:
        if log.truncations != found.truncations or found.end_offset not in log.published[3]:
            # A truncation was faster. The worker would call a segment corrupt that goes on behind the end.
            return Round(Outcome.PASSED, reason="the log has changed")
        log.abort_cleaning = partial(worker.abort, job.token)
    try:
        log.finish_swap()
        # What an earlier round left that didn't get to an end; nobody else works on this log.
        remove_cleaned(log.files, job.folder)
        # A record goes because of a newer one, or of a marker that may be the log's last batch: whatever the round goes
        # by must outlive a power cut that the record doesn't.
        log.flush()
        if log.deleting:
            return _GONE
        error = None
        for reply in worker.run(job):
            if isinstance(reply, CleanedGroup):
                error = error or _swapped(found, job, reply)
                if error is not None:
                    worker.abort(job.token)
            elif error is not None:
                return _ended(found, job, error)
            elif isinstance(reply, CleanedLog):
                with log.lock:
                    if log.truncations == found.truncations:
                        log.clean_offset = reply.clean_offset
                return Round(Outcome.CLEANED, reply)
            else:
                return _ended(found, job, reply)
    except OSError as failure:
        raise log.disk_failed("compaction failed", failure, Path(job.folder)) from failure
    finally:
        with log.lock:
            log.abort_cleaning = None
        with contextlib.suppress(OSError):
            remove_cleaned(log.files, job.folder)
    raise WorkerDiedError("no end of the job")


def _swapped(found: CleanableLog, job: CleanJob, group: CleanedGroup) -> CleaningFailed | None:
    """Swap a group in; why it didn't work."""
    log = found.log
    try:
        swapped = swap_in(log, job.folder, group, job.token, found.truncations)
        return None if swapped else CleaningFailed(ABORTED, "the log has changed")
    except OSError as error:
        if isinstance(error, FinalDiskError):
            log.give_up("compaction failed", error)
        return CleaningFailed(DISK, str(error), error.errno or 0)
    except CorruptIndexError as error:
        return CleaningFailed(BROKEN, str(error))


def _ended(found: CleanableLog, job: CleanJob, failure: CleaningFailed) -> Round:
    """What follows from a failure. Raises BrokerError, after the directory's failure was reported."""
    log = found.log
    if log.deleting:
        return _GONE
    if failure.cause == DISK:
        error = OSError(failure.errno, failure.reason)
        # Of where the worker read and wrote: the log may have moved off a disk that breaks.
        raise log.disk_failed("compaction failed", error, Path(job.folder)) from error
    if log.truncations != found.truncations:
        # What the worker read was cut while it read: that says nothing of the log as it is now.
        return Round(Outcome.PASSED, reason=failure.reason)
    if failure.cause == CORRUPT:
        return Round(Outcome.CORRUPT, reason=failure.reason)
    has_changed = log.folder != job.folder or log.published[2][: len(found.segments)] != found.segments
    if failure.cause == ABORTED or (failure.cause == GONE and has_changed):
        return Round(Outcome.PASSED, reason=failure.reason)
    return Round(Outcome.BROKEN, reason=failure.reason)


def make_job(found: CleanableLog, config: BrokerConfig, now_ms: int, bytes_per_second: float) -> CleanJob:
    """The job for a worker. Raises BrokerError if the transaction indexes can't be read."""
    log = found.log
    threads = max(1, config.log_cleaner_threads)
    settings = log.config
    return CleanJob(
        topic=log.topic,
        partition=log.partition,
        folder=log.folder,
        token=os.urandom(8).hex(),
        segments=[(segment.base_offset, segment.size_bytes) for segment in found.segments],
        first_dirty_offset=found.first_dirty_offset,
        end_offset=found.end_offset,
        aborted=list(log.aborted_transactions(found.segments[0].base_offset, found.end_offset)),
        producers=list(_producers(log, found.end_offset)),
        now_ms=now_ms,
        delete_retention_ms=settings.delete_retention_ms,
        segment_bytes=settings.segment_bytes,
        index_bytes=settings.segment_index_bytes,
        index_interval_bytes=settings.index_interval_bytes,
        map_bytes=min(config.log_cleaner_dedupe_buffer_size // threads, MAX_MAP_BYTES),
        map_load_factor=config.log_cleaner_io_buffer_load_factor,
        chunk_bytes=max(config.log_cleaner_io_buffer_size // threads * STROKE, 1 << 12),
        bytes_per_second=bytes_per_second,
    )


def _producers(log: PartitionLog, end_offset: int) -> Iterator[tuple[int, int, int]]:
    """The producers whose last batch the round may meet. A few at a time: an append must not wait for thousands."""
    with log.lock:
        entries = list(log.producers.entries())
    position = iter(entries)
    while True:
        with log.lock:
            some = [(each.producer_id, each.last_offset, each.epoch) for each in islice(position, _PRODUCERS_A_SLICE)]
        if not some:
            return
        yield from (each for each in some if each[1] < end_offset)
