"""Compaction in a test: a worker that works in the test's own process, and rounds on demand."""

import json
from collections.abc import Callable, Iterator

from kavka.config.broker_config import BrokerConfig
from kavka.config.sources import load_config
from kavka.protocol.errors import DecodeError
from kavka.protocol.records.batch import BatchHeader, Record, iter_batch_headers, iter_records
from kavka.storage.cleaner.cleaning import LogRound
from kavka.storage.cleaner.jobs import (
    CORRUPT,
    DISK,
    GONE,
    CleaningFailed,
    CleanJob,
    Reply,
    decode_job,
    decode_reply,
    encode_job,
    encode_reply,
)
from kavka.storage.cleaner.rounds import Round, clean
from kavka.storage.cleaner.selection import look_at
from kavka.storage.cleaner.throttle import Throttle
from kavka.storage.files import Files
from kavka.storage.offset_index import CorruptIndexError
from kavka.storage.partition_log import PartitionLog


class InlineWorker:
    """Does a worker process's work at once; what is said between the two goes through the same encoding.

    `before_reply` is called with each reply before the broker's side gets it.
    """

    def __init__(self, files: Files, before_reply: Callable[[Reply], object] | None = None) -> None:
        self._files = files
        self._before_reply = before_reply or (lambda _: None)
        self.jobs: list[CleanJob] = []
        self.rates: list[float] = []
        self.aborted: list[str] = []
        self.stopped = False

    def run(self, job: CleanJob) -> Iterator[Reply]:
        job = decode_job(json.loads(encode_job(job))["clean"])
        self.jobs.append(job)
        throttle = Throttle(float("inf"), lambda: 0.0)
        try:
            for reply in LogRound(job, self._files, throttle, lambda: None).run():
                self._before_reply(reply)
                yield decode_reply(encode_reply(reply))
        except FileNotFoundError as error:
            yield CleaningFailed(GONE, str(error))
        except (DecodeError, CorruptIndexError) as error:
            yield CleaningFailed(CORRUPT, str(error))
        except OSError as error:
            yield CleaningFailed(DISK, str(error), error.errno or 0)

    def set_rate(self, bytes_per_second: float) -> None:
        self.rates.append(bytes_per_second)

    def abort(self, token: str) -> None:
        self.aborted.append(token)

    def stop(self) -> None:
        self.stopped = True


def broker_config(*settings: str) -> BrokerConfig:
    return load_config(None, list(settings), {}).config


def compact(log: PartitionLog, *settings: str, worker: InlineWorker | None = None) -> Round:
    """One round, whether the log is dirty enough or not; it must have a closed segment."""
    worker = worker or InlineWorker(log.files)
    now_ms = log.environment.now_ms()
    return clean(look_at(log, now_ms), worker, broker_config(*settings), now_ms, float("inf"))


def roll(log: PartitionLog) -> None:
    """Close the active segment, so that compaction sees it, and let everything be replicated."""
    with log.lock:
        log.roll(log.environment.now_ms(), log.log_end_offset)
    log.advance_high_watermark(log.log_end_offset)


def batches_of(log: PartitionLog) -> list[tuple[BatchHeader, list[Record]]]:
    """Every batch of the log's files, control batches and empty ones too."""
    found = []
    for segment in log.published[2]:
        data = segment.file.read(segment.size_bytes, 0)
        found += [(header, list(iter_records(data, position))) for position, header in iter_batch_headers(data)]
    return found


def records_of(log: PartitionLog) -> list[Record]:
    """Every data record of the log's files."""
    return [record for header, records in batches_of(log) if not header.is_control for record in records]
