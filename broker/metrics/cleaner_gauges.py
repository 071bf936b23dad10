"""What the log cleaner did last, and what waits for it. Names as in docs/metrics.md."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from kavka.broker.metrics.registry import Labels, Metrics

if TYPE_CHECKING:
    from kavka.storage.cleaner.log_cleaner import LogCleaner


def register_cleaner_gauges(metrics: Metrics, cleaner: "LogCleaner", now_ms: Callable[[], int]) -> None:
    """Register the cleaner's gauges. Called once."""

    def recopied() -> float:
        rounds = [last.result for last in cleaner.last_rounds()]
        read = sum(result.bytes_cleaned for result in rounds)
        return 100 * sum(result.bytes_written for result in rounds) / read if read else 0

    def fullest_map() -> float:
        return max(
            (100 * last.result.map_entries / last.result.map_most_entries for last in cleaner.last_rounds()), default=0
        )

    def uncleanable() -> Iterator[tuple[Labels, float]]:
        counted = Counter(str(log.directory.parent) for log in cleaner.uncleanable_partitions())
        return (({"logDirectory": directory}, float(count)) for directory, count in counted.items())

    for name, text, read in (
        ("cleaner_recopy_percent", "Bytes written of those read, in the last rounds.", recopied),
        ("max_buffer_utilization_percent", "How full the last rounds' maps of keys were.", fullest_map),
        (
            "max_clean_time_secs",
            "How long the longest of the last rounds took.",
            lambda: max((last.seconds for last in cleaner.last_rounds()), default=0),
        ),
        (
            "max_compaction_delay_secs",
            "For how long a dirty record is there beyond max.compaction.lag.ms.",
            lambda: cleaner.max_compaction_delay_ms / 1000,
        ),
        ("deadthreadcount", "Cleaner threads that died.", lambda: cleaner.dead_threads),
    ):
        metrics.gauge(f"kafka_log_logcleaner_{name}", text, read)
    for name, text, read in (
        ("max_dirty_percent", "The largest dirty share of a compacted log.", lambda: 100 * cleaner.max_dirty_ratio),
        (
            "time_since_last_run_ms",
            "Since the logs were looked at.",
            lambda: now_ms() - cleaner.looked_at_ms,
        ),
        ("uncleanable_bytes", "Bytes that wait in logs that aren't compacted any more.", cleaner.uncleanable_bytes),
    ):
        metrics.gauge(f"kafka_log_logcleanermanager_{name}", text, read)
    metrics.gauge(
        "kafka_log_logcleanermanager_uncleanable_partitions_count",
        "Logs that aren't compacted any more, by log directory.",
        uncleanable,
    )
