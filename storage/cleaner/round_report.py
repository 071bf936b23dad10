"""What the log says of a round of compaction: one line, as Kafka's cleaner writes its table of a round."""

import logging
from typing import Final

from kavka.storage.cleaner.jobs import CleanedLog
from kavka.storage.partition_log import PartitionLog

_log: Final = logging.getLogger(__name__)


def tell(log: PartitionLog, first_dirty_offset: int, result: CleanedLog, seconds: float) -> None:
    """Log what a round did: what it began at, read, kept and wrote, and how long its two passes took."""
    _log.info(
        "log compacted partition=%s-%d from=%d to=%d records_read=%d records_kept=%d bytes_read=%d bytes_written=%d "
        "keys=%d map_full=%.1f%% seconds=%.3f map_seconds=%.3f clean_seconds=%.3f",
        log.topic,
        log.partition,
        first_dirty_offset,
        result.clean_offset,
        result.records_read,
        result.records_kept,
        result.bytes_read,
        result.bytes_written,
        result.map_entries,
        100 * result.map_entries / max(1, result.map_most_entries),
        seconds,
        result.map_ms / 1000,
        result.clean_ms / 1000,
    )
    if result.keyless_records:
        _log.warning(
            "records without key were dropped partition=%s-%d records=%d",
            log.topic,
            log.partition,
            result.keyless_records,
        )
