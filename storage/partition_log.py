"""One partition's log: what a leader appends to, a follower copies to, and consumers read from.

appends     checked outside the lock, patched in place, one pwrite at the known end; then the end is published
reads       slices of segment files, found without a lock
roll        size, time, index fullness, relative offsets; the fsync of the closed segment runs in the background
the rest    `loading` (start), `flushing`, `trimming` (truncation, retention, DeleteRecords), `reading`
"""

from bisect import bisect_right
from collections.abc import Callable
from pathlib import Path
from typing import Final

from kavka.config.topic_config import TopicConfig
from kavka.protocol.errors import ErrorCode
from kavka.protocol.records.batch import exchange_head, patch_offsets, read_header
from kavka.protocol.records.header import CONTROL_BIT, LOG_APPEND_TIME_BIT, TRANSACTIONAL_BIT
from kavka.storage import partition_metadata
from kavka.storage.appending import AppendError, AppendResult, Origin, UnflushedError
from kavka.storage.batch_scan import ScannedBatch
from kavka.storage.environment import LogEnvironment
from kavka.storage.follower_append import append_copied
from kavka.storage.loading import LoadedLog
from kavka.storage.log_answers import AbortedTransaction, FoundOffset
from kavka.storage.log_slice import LogSlice
from kavka.storage.log_state import NO_EPOCH
from kavka.storage.log_validator import CheckedBatch, check_batch, is_v2, recheck
from kavka.storage.managed_log import ManagedLog
from kavka.storage.partition_metadata import CorruptPartitionMetadataError, InconsistentTopicIdError, topic_id_text
from kavka.storage.producer_state import BatchPlaced
from kavka.storage.reading import aborted_transactions, find_by_time, find_newest, read_slice, upper_bound_offset
from kavka.storage.recovery import marker_of
from kavka.storage.rewrite import convert_old_format, fit
from kavka.storage.segment import Segment
from kavka.storage.verification_guards import NEEDS_NO_VERIFICATION


class PartitionLog(ManagedLog):
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
        log.changes = int(loaded.changed)
        log.cut_bytes, log.recovered_segments = loaded.cut_bytes, loaded.recovered_segments
        return log

    def append_as_leader(
        self,
        records: bytearray | memoryview,
        *,
        leader_epoch: int,
        now_ms: int,
        origin: Origin = Origin.CLIENT,
        single_v2_batch: bool = True,
        zstd_allowed: bool = True,
        guard: int = NEEDS_NO_VERIFICATION,
        transaction_version: int = 0,
        withdrawn: Callable[[], bool] | None = None,
        built: CheckedBatch | None = None,
    ) -> AppendResult:
        """Append one record batch, whose bytes (writable) get their offsets in place.

        `single_v2_batch`: False for Produce v0 to v2; `zstd_allowed`: False below v7; `built`: see `_checked`.
        `guard`: of what may begin a transaction (`verify`). Of a marker: `transaction_version`; `withdrawn`, asked
        under the lock (NOT_COORDINATOR). What repeats one of its producer's last five batches isn't written again.
        Raises AppendError: nothing was written (but for an UnflushedError), only the leader epoch in `records` changed.
        """
        batch, records, head = self._checked(records, now_ms, origin, single_v2_batch, zstd_allowed, built)
        if batch is None:
            return AppendResult(-1, -1, -1, self.log_start_offset, False)
        size, _, last_delta, max_timestamp_ms, producer_id, _, _ = batch
        rolled, marker, repeated = False, None, None
        with self.lock:
            if self.closed or leader_epoch != self.leading_epoch:
                self._check_may_append(leader_epoch)
            base_offset, position, segments, bases = self.published
            if producer_id >= 0:
                repeated, marker = self._check_producer(records, batch, origin, guard, transaction_version, withdrawn)
            if repeated is None:
                last_offset, segment = base_offset + last_delta, segments[-1]
                is_beyond = position + size > segment.limit_bytes or last_offset > segment.limit_offset
                is_beyond = is_beyond or max_timestamp_ms > segment.limit_timestamp_ms
                if is_beyond and segment.must_roll(size, last_offset, max_timestamp_ms, now_ms):
                    segment, rolled = self.roll_for_append(now_ms, base_offset), True
                    base_offset, position, segments, bases = self.published
                former_head = None if head is None else exchange_head(records, head)
                patch_offsets(records, 0, base_offset, leader_epoch)
                try:
                    self.write(segment, records, position)
                except BaseException:
                    _restore(records, former_head, leader_epoch)
                    raise
                if leader_epoch > self.epochs.latest_epoch:
                    self.epochs.assign(leader_epoch, base_offset)
                save_due = segment.note_batch(base_offset, last_offset, position, size, max_timestamp_ms)
                if producer_id >= 0:
                    self._note_producer(segment, batch, marker, base_offset, last_offset, transaction_version)
                self.published = (last_offset + 1, position + size, segments, bases)
                if save_due:
                    self.save_indexes(segment)
        if repeated is not None:
            return self._repeated(repeated)
        if rolled or last_offset - self.recovery_point >= self.flush_beyond:
            self._flush_after_append(rolled, origin)
        at_ms = now_ms if self.rules.log_append_time else -1
        return _new_tuple(AppendResult, (base_offset, last_offset, at_ms, self.log_start_offset, False))

    def verify(self, producer_id: int, epoch: int, sequence: int, now_ms: int, *, has_own_epoch: bool) -> int:
        """A guard for a batch that begins a transaction, to be taken before the coordinator is asked (KIP-890)."""
        with self.lock:
            return self.producers.verifications.begin(producer_id, epoch, sequence, has_own_epoch, now_ms)

    def withdraw(self, producer_id: int, guard: int) -> None:
        """The coordinator said that the partition takes no part in the producer's transaction."""
        with self.lock:
            self.producers.verifications.withdraw(producer_id, guard)

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
            self._flush_after_append(rolled, Origin.REPLICATION)
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

    def _checked(
        self,
        records: bytearray | memoryview,
        now_ms: int,
        origin: Origin,
        single_v2_batch: bool,
        zstd_allowed: bool,
        built: CheckedBatch | None,
    ) -> tuple[CheckedBatch | None, bytearray | memoryview, bytes | None]:
        """What the append needs to know, the bytes to write (mostly those that came), and another header for them.

        Nothing is changed yet. None: nothing to append. `built`: what would be found in a plain batch that was built in
        this process just now; only what the topic's configuration asks for is left to be seen to.
        """
        rules = self.rules
        if built is not None and built.size_bytes <= rules.largest_plain_bytes:
            return built, records, None
        if not single_v2_batch and not is_v2(records):
            records = convert_old_format(records, rules)
            if not records:
                return None, records, None
        batch = check_batch(records, rules, now_ms, origin, zstd_allowed)
        # What a coordinator of ours has built needs no looking at its records.
        closer = rules.looks_closer if origin is Origin.CLIENT else rules.log_append_time
        if closer or batch[_ATTRIBUTES] & LOG_APPEND_TIME_BIT:
            records, head = fit(records, rules, now_ms)
            return recheck(records, head, batch, rules), records, head
        return batch, records, None

    def _check_may_append(self, leader_epoch: int) -> None:
        self.check_open()
        if self.has_role and leader_epoch != self.leading_epoch:
            now = f"leads in {self.leading_epoch}" if self.leading_epoch != NO_EPOCH else "follows"
            raise AppendError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"not the leader of epoch {leader_epoch}: {now}")

    def _check_producer(
        self,
        records: bytearray | memoryview,
        batch: CheckedBatch,
        origin: Origin,
        guard: int,
        transaction_version: int,
        withdrawn: Callable[[], bool] | None,
    ) -> tuple[BatchPlaced | None, tuple[bool, int] | None]:
        """(the place of the batch that this one repeats, (aborted, coordinator epoch) of an end marker). Lock held."""
        _, attributes, last_delta, _, producer_id, epoch, sequence = batch
        if attributes & CONTROL_BIT:
            if withdrawn is not None and withdrawn():
                raise AppendError(ErrorCode.NOT_COORDINATOR, "the marker was withdrawn, others may stand by now")
            marker = marker_of(ScannedBatch(0, read_header(records), records, 0))
            if marker is not None:
                self.producers.check_marker(producer_id, epoch, marker[1], transaction_version)
            return None, marker
        transactional = attributes & TRANSACTIONAL_BIT != 0
        if origin is not Origin.CLIENT and sequence < 0:
            self.producers.check_unsequenced(producer_id, epoch, transactional, guard)
            return None, None
        return self.producers.check(producer_id, epoch, sequence, last_delta + 1, transactional, guard), None

    def _note_producer(
        self,
        segment: Segment,
        batch: CheckedBatch,
        marker: tuple[bool, int] | None,
        first: int,
        last: int,
        transaction_version: int,
    ) -> None:
        _, attributes, _, timestamp_ms, producer_id, epoch, sequence = batch
        if not attributes & CONTROL_BIT:
            transactional = attributes & TRANSACTIONAL_BIT != 0
            self.producers.record(producer_id, epoch, sequence, first, last, timestamp_ms, transactional)
        elif marker is not None:
            aborted, coordinator_epoch = marker
            completed = self.producers.complete(
                producer_id, epoch, coordinator_epoch, first, timestamp_ms, aborted, transaction_version
            )
            if completed is not None and aborted:
                self.note_aborted(segment, completed)

    def _repeated(self, placed: BatchPlaced) -> AppendResult:
        """No lock held. As for any append: where a flush is due, nothing is acknowledged that it does not reach."""
        if placed.last_offset >= self.recovery_point:
            self._flush_after_append(False, Origin.CLIENT)
        # Kafka gives the batch's timestamp here, whichever type the topic has.
        return AppendResult(placed.first_offset, placed.last_offset, placed.timestamp_ms, self.log_start_offset, True)

    def _flush_after_append(self, rolled: bool, origin: Origin) -> None:
        """What an append leaves to do when the lock is free again."""
        if rolled:
            self.flush_in_background(self.published[3][-1])
        if origin is not Origin.COORDINATOR and self.is_flush_due:
            try:
                self.flush()
            except AppendError as failure:
                raise UnflushedError(failure.code, failure.message) from failure


def _restore(records: bytearray | memoryview, former_head: bytes | None, leader_epoch: int) -> None:
    """Undo what an append did to its batch, so that the caller may try again: patched it would be refused for good."""
    patch_offsets(records, 0, 0, leader_epoch)
    if former_head is not None:
        exchange_head(records, former_head)


_ATTRIBUTES: Final = 1
_new_tuple: Final = tuple.__new__
