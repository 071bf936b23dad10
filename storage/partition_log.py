"""One partition's log: segments, indexes, producer state and leader epochs, under one lock."""

from pathlib import Path

from kavka.config.topic_config import TopicConfig
from kavka.storage.appending import AppendResult, Origin
from kavka.storage.environment import LogEnvironment
from kavka.storage.log_slice import AbortedTransaction, FoundOffset, LogSlice, ProducerStatus


class PartitionLog:
    """Skeleton: the signatures that others build on; the bodies follow."""

    __slots__ = ()

    topic: str
    partition: int
    directory: Path
    topic_id: bytes
    """16 bytes; zeros until one is assigned (`assign_topic_id` writes `partition.metadata`)."""
    config: TopicConfig
    last_flush_ms: int

    @classmethod
    def open(
        cls,
        directory: Path,
        topic: str,
        partition: int,
        config: TopicConfig,
        environment: LogEnvironment,
        *,
        clean: bool,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        topic_id: bytes | None = None,
    ) -> "PartitionLog":
        """Load the log in `directory`, which exists (may be empty: a new log). Recovers unless `clean`.

        Raises OSError (the directory is broken), InconsistentTopicIdError.
        """
        raise NotImplementedError

    log_start_offset: int
    log_end_offset: int
    high_watermark: int
    last_stable_offset: int
    recovery_point: int
    size_bytes: int
    segment_count: int
    latest_leader_epoch: int
    """-1: none yet"""

    def assign_topic_id(self, topic_id: bytes) -> None:
        raise NotImplementedError

    def append_as_leader(
        self,
        records: bytearray | memoryview,
        *,
        leader_epoch: int,
        now_ms: int,
        origin: Origin = Origin.CLIENT,
        single_v2_batch: bool = True,
        zstd_allowed: bool = True,
    ) -> AppendResult:
        """Raises AppendError. `single_v2_batch` False for Produce v0-2, `zstd_allowed` False below Produce v7."""
        raise NotImplementedError

    def append_as_follower(self, records: bytearray | memoryview | bytes) -> AppendResult:
        raise NotImplementedError

    def read(self, offset: int, max_bytes: int, *, min_one: bool, end_offset: int) -> LogSlice:
        raise NotImplementedError

    def upper_bound_offset(self, piece: LogSlice) -> int:
        """An offset at or above the end of `piece`: the `end` for `aborted_transactions`."""
        raise NotImplementedError

    def aborted_transactions(self, start_offset: int, end_offset: int) -> list[AbortedTransaction]:
        raise NotImplementedError

    def advance_high_watermark(self, offset: int) -> bool:
        """True if it moved; never backwards, never above the log end."""
        raise NotImplementedError

    def set_high_watermark(self, offset: int) -> int:
        """For followers and for loading: any direction, kept within log start and log end; returns what was set."""
        raise NotImplementedError

    def offset_for_time(self, timestamp_ms: int) -> FoundOffset | None:
        raise NotImplementedError

    def max_timestamp_offset(self) -> FoundOffset | None:
        raise NotImplementedError

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(epoch, end offset); (-1, -1) when unknown."""
        raise NotImplementedError

    def epoch_for_offset(self, offset: int) -> int:
        raise NotImplementedError

    def assign_epoch_start(self, epoch: int, offset: int) -> None:
        raise NotImplementedError

    def truncate_to(self, offset: int) -> None:
        raise NotImplementedError

    def truncate_fully_and_start_at(self, offset: int) -> None:
        raise NotImplementedError

    def delete_records_before(self, offset: int) -> int:
        """-1: the high watermark. Returns the log start offset; raises OFFSET_OUT_OF_RANGE, POLICY_VIOLATION."""
        raise NotImplementedError

    def advance_log_start_offset(self, offset: int) -> bool:
        """A follower learns the leader's log start offset."""
        raise NotImplementedError

    def maybe_roll(self, now_ms: int) -> bool:
        raise NotImplementedError

    def flush(self, up_to_offset: int | None = None) -> None:
        """fsync; then the recovery point moves. Never called under a lock."""
        raise NotImplementedError

    def delete_old_segments(self, now_ms: int) -> int:
        raise NotImplementedError

    def remove_expired_producers(self, now_ms: int) -> int:
        raise NotImplementedError

    def update_config(self, config: TopicConfig) -> None:
        raise NotImplementedError

    def rename_directory(self, directory: Path) -> None:
        """Move the whole log (to `...-delete`); open slices go on."""
        raise NotImplementedError

    def active_producers(self) -> list[ProducerStatus]:
        raise NotImplementedError

    def close(self, *, clean: bool = True) -> None:
        """Clean: indexes trimmed and written, snapshot taken, everything fsynced. Else only descriptors are closed."""
        raise NotImplementedError

    def delete(self) -> None:
        """Unlink every file and the directory; the log is closed."""
        raise NotImplementedError
