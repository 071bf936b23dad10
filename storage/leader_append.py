"""What a partition's leader does with its log: it appends, a batch at a time, and moves the high watermark.

    without the lock    the batch is checked (`log_validator`), and made to fit where it doesn't (`rewrite`)
    under it            may this leader append, and this producer? Does the batch begin a segment (`Segment.must_roll`)?
                        patched in place, one pwrite at the known end; indexes and producer state are told
                        last the end is published, in one step: now readers see it
    free again          the fsync that is due

An append that fails has done nothing: what the disk took in part is cut off again, and the batch is as it came. The
twin is `follower_append`: it copies what a leader has checked.
"""

from collections.abc import Callable
from typing import Final

from kavka.protocol.errors import ErrorCode
from kavka.protocol.records.batch import exchange_head, patch_offsets, read_header
from kavka.protocol.records.header import CONTROL_BIT, LOG_APPEND_TIME_BIT, TRANSACTIONAL_BIT
from kavka.storage.append_result import AppendError, AppendResult, Origin, UnflushedError
from kavka.storage.batch_scan import ScannedBatch
from kavka.storage.log_answers import AbortedTransaction
from kavka.storage.log_state import NO_EPOCH
from kavka.storage.log_validator import CheckedBatch, check_batch, is_v2, recheck
from kavka.storage.managed_log import ManagedLog
from kavka.storage.producer_state import BatchPlaced, CompletedTransaction
from kavka.storage.recovery import marker_of
from kavka.storage.rewrite import convert_old_format, fit
from kavka.storage.segment import Segment
from kavka.storage.verification_guards import NEEDS_NO_VERIFICATION


class LeaderLog(ManagedLog):
    """A log as its leader writes it. Any thread may call anything; see LogState for the locks."""

    __slots__ = ()

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
                    segment, rolled = self._roll_for(batch, now_ms, base_offset), True
                    base_offset, position, segments, bases = self.published
                former_head = None if head is None else exchange_head(records, head)
                patch_offsets(records, 0, base_offset, leader_epoch)
                try:
                    self.write(segment, records, position)
                except BaseException:
                    self._hand_back(records, batch, former_head, leader_epoch, now_ms)
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
            self.flush_after_append(rolled, origin)
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

    def advance_high_watermark(self, offset: int) -> bool:
        """Move it up to `offset`, at most to the log's end. True if it moved. Takes the log's lock only for markers."""
        with self.watermark_lock:
            end_offset = self.published[0]
            if offset > end_offset:
                offset = end_offset
            if offset <= self.high_watermark:
                return False
            self.high_watermark = offset
        if self.producers.unreplicated:
            with self.lock:
                self.producers.replicated_to(self.high_watermark)
        return True

    def advance_alone(self) -> None:
        """What was appended is committed, if this is still the only replica (`stand_alone`)."""
        with self.watermark_lock:
            end_offset = self.published[0]
            if not self.stands_alone or end_offset <= self.high_watermark:
                return
            self.high_watermark = end_offset
        if self.producers.unreplicated:
            with self.lock:
                self.producers.replicated_to(self.high_watermark)

    def stand_alone(self, alone: bool) -> None:
        """Whether `advance_alone` may move the high watermark from now on: others need not be asked."""
        with self.watermark_lock:
            self.stands_alone = alone

    def write(self, segment: Segment, records: bytearray | memoryview | bytes, position: int) -> None:
        """Write at the known end; what was written in part is cut off again. Lock held.

        Raises AppendError (KAFKA_STORAGE_ERROR): nothing of the records is left then.
        """
        try:
            written = self.files.pwrite(segment.fd, records, position)
            if written == len(records):
                return
        except OSError as error:
            self._undo_write(segment, position)
            raise self.disk_failed("append failed", error) from error
        self._undo_write(segment, position)
        reason = f"the disk is full: it took {written} of {len(records)} bytes"
        self.environment.on_refused(self.directory, reason)
        raise AppendError(ErrorCode.KAFKA_STORAGE_ERROR, reason)

    def flush_after_append(self, rolled: bool, origin: Origin) -> None:
        """What an append leaves to do when the lock is free again."""
        if rolled:
            self.flush_in_background(self.published[3][-1])
        if origin is not Origin.COORDINATOR and self.is_flush_due:
            try:
                self.flush()
            except AppendError as failure:
                raise UnflushedError(failure.code, failure.message) from failure

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
                self._note_aborted(segment, completed)

    def _repeated(self, placed: BatchPlaced) -> AppendResult:
        """No lock held. As for any append: where a flush is due, nothing is acknowledged that it does not reach."""
        if placed.last_offset >= self.recovery_point:
            self.flush_after_append(False, Origin.CLIENT)
        # Kafka gives the batch's timestamp here, whichever type the topic has.
        return AppendResult(placed.first_offset, placed.last_offset, placed.timestamp_ms, self.log_start_offset, True)

    def _note_aborted(self, segment: Segment, completed: CompletedTransaction) -> None:
        """Enter a transaction into the `.txnindex` of the segment with its marker. Lock held."""
        last_stable_offset = self.producers.last_stable_offset_after(completed)
        entry = AbortedTransaction(
            completed.producer_id, completed.first_offset, completed.last_offset, last_stable_offset
        )
        segment.transaction_index.append(entry)
        self.save_indexes(segment)

    def _roll_for(self, batch: CheckedBatch, now_ms: int, base_offset: int) -> Segment:
        try:
            return self.roll_for_append(now_ms, base_offset)
        except AppendError:
            self._note_refused(batch, now_ms)
            raise

    def _hand_back(
        self,
        records: bytearray | memoryview,
        batch: CheckedBatch,
        former_head: bytes | None,
        leader_epoch: int,
        now_ms: int,
    ) -> None:
        """Undo what an append did to its batch, so that the caller may try again: patched it would be refused for good.

        And what its producer sent after it has to wait for it.
        """
        patch_offsets(records, 0, 0, leader_epoch)
        if former_head is not None:
            exchange_head(records, former_head)
        self._note_refused(batch, now_ms)

    def _note_refused(self, batch: CheckedBatch, now_ms: int) -> None:
        _, attributes, _, _, producer_id, epoch, sequence = batch
        if producer_id >= 0 and sequence >= 0 and not attributes & CONTROL_BIT:
            self.producers.refused.note(producer_id, epoch, sequence, now_ms)

    def _undo_write(self, segment: Segment, position: int) -> None:
        try:
            self.files.ftruncate(segment.fd, position)
        except OSError as error:
            # The file holds bytes that nobody was promised: the next start will tell, this run can't go on here.
            self.give_up("a write can't be undone", error)


_ATTRIBUTES: Final = 1
_new_tuple: Final = tuple.__new__
