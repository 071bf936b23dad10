"""One partition's log: what a leader appends to, a follower copies to, and consumers read from.

opening     `loading`: what is found on the disk
appends     `leader_append`, `follower_append`
reads       slices of segment files, found without a lock: `reading`
the rest    `managed_log` (watermarks, epochs, truncation, retention, flush, close), `log_state` (parts, locks, roll)
"""

from bisect import bisect_right
from pathlib import Path

from kavka.config.topic_config import TopicConfig
from kavka.storage import partition_metadata
from kavka.storage.append_result import AppendResult, Origin
from kavka.storage.environment import LogEnvironment
from kavka.storage.follower_append import append_copied
from kavka.storage.leader_append import LeaderLog
from kavka.storage.loading import LoadedLog
from kavka.storage.log_answers import AbortedTransaction, FoundOffset
from kavka.storage.log_slice import LogSlice
from kavka.storage.partition_metadata import CorruptPartitionMetadataError, InconsistentTopicIdError, topic_id_text
from kavka.storage.reading import (
    aborted_transactions,
    find_by_time,
    find_newest,
    offsets_before,
    read_slice,
    upper_bound_offset,
)


class PartitionLog(LeaderLog):
    """One partition's log. Any thread may call anything; see LogState for the locks.

    Every method that touches the disk raises AppendError with KAFKA_STORAGE_ERROR when it fails, after the log
    directory's failure was reported (a full disk is only refused, and passes by itself).
    """

    __slots__ = ("cut_bytes", "recovered_segments")

    cut_bytes: int
    """Bytes that recovery cut off when the log was opened."""
    recovered_segments: int

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
        """Load the log in `directory`, which exists (empty: a new log). Recovers unless `clean` says it needn't.

        Raises OSError, InconsistentTopicIdError (the folder belongs to a deleted topic of the same name).
        """
        log = cls(directory, topic, partition, config, environment)
        log._load_topic_id(topic_id)
        loaded = LoadedLog(
            log.folder,
            environment,
            log.roll_rules,
            clean=clean,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
        )
        log.producers, log.snapshots, log.epochs = loaded.producers, loaded.snapshots, loaded.epochs
        active = loaded.segments[-1]
        active.govern(log.roll_rules, log.jitter_ms())
        log.publish(loaded.end_offset, active.size_bytes, loaded.segments)
        log.log_start_offset = log.high_watermark = loaded.log_start_offset
        log.recovery_point = loaded.recovery_point
        log.saved_epochs = loaded.saved_epochs
        log.is_unproven = loaded.is_unproven
        log.changes = int(loaded.changed)
        log.cut_bytes, log.recovered_segments = loaded.cut_bytes, loaded.recovered_segments
        return log

    def append_as_follower(
        self, records: bytearray | memoryview | bytes, leader_epoch: int | None = None
    ) -> AppendResult:
        """Append batches as the leader of that epoch has them; a cut last one is left out, and one of a later epoch.

        Raises AppendError, and nothing was written: CORRUPT_MESSAGE (to be fetched again), OFFSET_OUT_OF_RANGE where
        they don't come behind the log's end, FENCED_LEADER_EPOCH where this replica follows in another epoch by now,
        or leads.
        """
        with self.lock:
            self.check_follows(leader_epoch)
            result, rolled = append_copied(self, records, leader_epoch)
        if rolled or result.last_offset - self.recovery_point >= self.flush_beyond:
            self.flush_after_append(rolled, Origin.REPLICATION)
        return result

    def read(self, offset: int, max_bytes: int, *, min_one: bool, end_offset: int) -> LogSlice:
        """Bytes from the batch that holds `offset` on, of one segment, below `end_offset`; maybe none.

        At most `max_bytes`, which may cut the last batch; with `min_one` the first batch whole, whatever its size.
        Raises BrokerError: OFFSET_OUT_OF_RANGE, CORRUPT_MESSAGE.
        """
        return read_slice(self, offset, max_bytes, min_one, end_offset)

    def segment_base_offset(self, offset: int) -> int:
        """Where the segment begins that has `offset`, or will have it: the log's end is the active segment's."""
        bases = self.published[3]
        return bases[max(bisect_right(bases, offset) - 1, 0)]

    def upper_bound_offset(self, piece: LogSlice) -> int:
        """An offset at or behind the end of `piece`: the `end_offset` for `aborted_transactions`."""
        return upper_bound_offset(self, piece)

    def aborted_transactions(self, start_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """Those that have records between the offsets, for read_committed consumers."""
        return aborted_transactions(self, start_offset, end_offset)

    def offset_for_time(self, timestamp_ms: int) -> FoundOffset | None:
        """The first record that is as new; the caller bounds it by high watermark or last stable offset."""
        return find_by_time(self, timestamp_ms)

    def offsets_before(self, timestamp_ms: int | None) -> list[int]:
        """Where segments begin, from the youngest on that was last written by then, and the log's end, if that is by
        then: newest first. None: all.
        """
        return offsets_before(self, timestamp_ms)

    def max_timestamp_offset(self) -> FoundOffset | None:
        """The newest record (KIP-734); None in a log without timestamps."""
        return find_newest(self)

    def _load_topic_id(self, topic_id: bytes | None) -> None:
        path = f"{self.folder}/{partition_metadata.FILE_NAME}"
        try:
            self.topic_id = partition_metadata.decode(self.files.read_bytes(path, partition_metadata.MAX_FILE_BYTES))
        except (FileNotFoundError, CorruptPartitionMetadataError):
            # Corrupt: the power went before the first flush. The registry knows the id.
            if topic_id is not None and topic_id != partition_metadata.NO_TOPIC_ID:
                self.assign_topic_id(topic_id)
            return
        if topic_id not in (None, partition_metadata.NO_TOPIC_ID, self.topic_id):
            raise InconsistentTopicIdError(f"{self.folder} belongs to topic {topic_id_text(self.topic_id)}")
