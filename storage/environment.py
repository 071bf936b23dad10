"""What a partition's log needs from the world: files, time, other threads, and whom to tell of a broken disk."""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final

from kavka.config.topic_config import TopicConfig
from kavka.storage.files import Files
from kavka.storage.log_validator import AppendRules
from kavka.storage.segment import RollRules
from kavka.storage.segment_file import FilePool

DICE: Final = Random()
"""For any thread. A process that this log is a part of keeps `random` for itself."""


class LogEnvironment:
    """Shared by all logs of one log directory; the callables are called from any thread.

    Immutable after construction but for `producer_id_expiration_ms`, a plain number that the log manager's change lock
    guards and any thread reads, and `_rules`, an immutable tuple that any thread swaps.

    now_ms            wall clock, milliseconds since the epoch
    run_in_background a job that fsyncs: another thread runs it soon (default: at once, in the caller's thread)
    run_later         (delay_ms, job): the job unlinks files after `file.delete.delay.ms` (default: at once)
    on_io_failure     (folder, error): an error that takes its log directory offline (EIO, EROFS, any failed fsync)
    on_refused        (directory, reason): a write that did not go through and may be tried again (a full disk)
    on_clean_offset_lowered  (): a truncation took a part of what was compacted; the checkpoint should say so soon
    on_recovery_point_lowered  (): one took what was fsynced: what is written there now is not, and a crash must know it
    store_recovery_points      (): write that checkpoint now. May be called under a log's lock; raises OSError
    """

    __slots__ = (
        "_rules",
        "files",
        "now_ms",
        "on_clean_offset_lowered",
        "on_io_failure",
        "on_recovery_point_lowered",
        "on_refused",
        "pool",
        "producer_id_expiration_ms",
        "random_below",
        "run_in_background",
        "run_later",
        "store_recovery_points",
        "validate_all_records",
    )

    def __init__(
        self,
        *,
        files: Files,
        now_ms: Callable[[], int],
        pool: FilePool | None = None,
        run_in_background: Callable[[Callable[[], None]], object] | None = None,
        run_later: Callable[[int, Callable[[], None]], object] | None = None,
        on_io_failure: Callable[[Path, OSError], object] | None = None,
        on_refused: Callable[[Path, str], object] | None = None,
        on_clean_offset_lowered: Callable[[], object] | None = None,
        on_recovery_point_lowered: Callable[[], object] | None = None,
        store_recovery_points: Callable[[], object] | None = None,
        producer_id_expiration_ms: int = 86_400_000,
        validate_all_records: bool = False,
        random_below: Callable[[int], int] = DICE.randrange,
    ) -> None:
        self.files = files
        self.now_ms = now_ms
        self.pool = pool if pool is not None else FilePool(files)
        self.run_in_background = run_in_background or at_once
        self.run_later = run_later or _without_delay
        self.on_io_failure = on_io_failure or _nobody_to_tell
        self.on_refused = on_refused or _nobody_to_ask
        self.on_clean_offset_lowered = on_clean_offset_lowered or _nobody_cares
        self.on_recovery_point_lowered = on_recovery_point_lowered or _nobody_cares
        self.store_recovery_points = store_recovery_points or _nobody_cares
        self.producer_id_expiration_ms = producer_id_expiration_ms
        self.validate_all_records = validate_all_records
        self.random_below = random_below
        self._rules: tuple[TopicConfig, AppendRules, RollRules] | None = None

    def rules_of(self, config: TopicConfig) -> tuple[AppendRules, RollRules]:
        """What the configuration asks of appends and rolls: the partitions of a topic, opened in a row, share it."""
        latest = self._rules
        if latest is None or latest[0] is not config:
            append = AppendRules(config, validate_all_records=self.validate_all_records)
            segment_ms = config.segment_ms
            if config.is_compacted:
                # The active segment isn't compacted: it must not stay active for longer.
                segment_ms = min(segment_ms, max(config.max_compaction_lag_ms, 1))
            roll = RollRules(config.segment_bytes, segment_ms, config.segment_index_bytes, config.index_interval_bytes)
            latest = self._rules = (config, append, roll)
        return latest[1:]


def at_once(job: Callable[[], None]) -> None:
    """Run the job in the caller's thread, where there is no other."""
    job()


def _without_delay(_delay_ms: int, job: Callable[[], None]) -> None:
    job()


def _nobody_cares() -> None:
    return


def _nobody_to_ask(_directory: Path, _reason: str) -> None:
    return


def _nobody_to_tell(_directory: Path, _error: OSError) -> None:
    return
