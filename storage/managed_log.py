"""What keeps a log in order beside appends and reads: watermarks, epochs, truncation, retention, flush, close."""

import errno
import logging
from collections.abc import Callable, Container
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from kavka.config.topic_config import TopicConfig
from kavka.protocol.errors import BrokerError
from kavka.storage import partition_metadata, unproven_mark
from kavka.storage.files import PASSING, TEMPORARY_SUFFIX, FinalDiskError
from kavka.storage.flushing import flush, flush_all, note_durable, save_all
from kavka.storage.log_answers import ProducerStatus
from kavka.storage.log_state import NO_EPOCH, LogState
from kavka.storage.partition_folders import delete_folder
from kavka.storage.retention import retention_offset
from kavka.storage.swapping import finish_swap
from kavka.storage.trimming import (
    advance_start,
    delete_below,
    delete_records_before,
    place_to_cut,
    start_anew,
    truncate_to,
)

logger: Final = logging.getLogger(__name__)
_T = TypeVar("_T")


class ManagedLog(LogState):
    """A log's upkeep. Any thread may call anything; see LogState for the locks."""

    __slots__ = ()

    @property
    def log_end_offset(self) -> int:
        """The offset that the next record gets."""
        return self.published[0]

    @property
    def last_stable_offset(self) -> int:
        """Below it every transaction is decided; at most the high watermark."""
        # First, and once: a transaction that begins between the two looks lies behind it.
        high_watermark = self.high_watermark
        first_unstable = self.producers.first_unstable_offset
        if 0 <= first_unstable < high_watermark:
            return max(first_unstable, self.log_start_offset)
        return high_watermark

    @property
    def size_bytes(self) -> int:
        """Of the `.log` files."""
        return sum(segment.size_bytes for segment in self.published[2])

    @property
    def segment_count(self) -> int:
        return len(self.published[2])

    def assign_topic_id(self, topic_id: bytes) -> None:
        """Give a new log, or one from before topic ids, its id; durable with the next flush."""
        path = f"{self.folder}/{partition_metadata.FILE_NAME}"
        try:
            self.files.write_file(path, partition_metadata.encode(topic_id))
        except OSError as error:
            raise self.disk_failed("the topic id can't be saved", error) from error
        self.topic_id = topic_id
        self.topic_id_saved = False

    def set_high_watermark(self, offset: int) -> int:
        """Put it where it is told, within the log: at start. What was set."""
        with self.lock:
            return self._put_high_watermark(offset)

    def follow(self, high_watermark: int, log_start_offset: int, leader_epoch: int) -> None:
        """What the leader of that epoch says of both, as far as this log goes. Raises AppendError, as appends do."""
        with self.lock:
            self.check_follows(leader_epoch)
            self._put_high_watermark(high_watermark)
            advance_start(self, min(log_start_offset, self.published[0]))

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(the largest known epoch up to `epoch`, its end offset); (-1, -1) if `epoch` is beyond all (KIP-279)."""
        return self.epochs.end_offset_for(epoch, self.published[0])

    def epoch_for_offset(self, offset: int) -> int:
        """The leader epoch in which the offset was written; -1 if unknown."""
        return self.epochs.epoch_for(offset)

    def begin_leader_epoch(self, epoch: int) -> int:
        """This replica leads in `epoch`, from the log's end on, which is returned; nobody appends in another one."""
        with self.lock:
            end_offset = self.published[0]
            self.epochs.assign(epoch, end_offset)
            self.leading_epoch, self.following_epoch = epoch, NO_EPOCH
            return end_offset

    def follow_leader_epoch(self, epoch: int) -> None:
        """This replica follows in `epoch`: from now on nobody appends as its leader, or fetches for an earlier epoch.

        A request may have looked at the partition's role just before it changed, and come to append only now.
        """
        with self.lock:
            with self.watermark_lock:
                self.stands_alone = False
            self.leading_epoch, self.following_epoch = NO_EPOCH, epoch

    def truncate_to(self, offset: int, leader_epoch: int | None = None) -> None:
        """Drop what is at or behind `offset`; whole batches go. `leader_epoch`: of the follower that is told to.

        Where a step fails, whatever the reason, the log is given up: half of it may be gone. In a broken segment the
        place to cut at isn't found: DecodeError, CorruptIndexError, and nothing has changed.
        """
        with self.lock:
            self.check_follows(leader_epoch)
            try:
                place = place_to_cut(self, offset)
            except OSError as error:
                raise self.give_up("truncation failed", error) from error
            self._shorten(partial(truncate_to, self, offset, place))

    def truncate_fully_and_start_at(self, offset: int, leader_epoch: int | None = None) -> None:
        """Drop everything; the next record gets `offset`. Fails as `truncate_to` does."""
        with self.lock:
            self.check_follows(leader_epoch)
            self._shorten(partial(start_anew, self, offset))

    @property
    def empty_end(self) -> int:
        """Where the active segment begins, if nothing is in it; -1 else. Below it, offsets may be compacted away."""
        end_offset, position, _, bases = self.published
        return end_offset if not position and bases[-1] == end_offset else -1

    def end_at(self, offset: int) -> None:
        """Let the log end there, behind its last record; harmless if it does. Raises AppendError (storage)."""
        with self.lock:
            self.check_open()
            if offset > self.published[0]:
                self.roll_for_append(self.environment.now_ms(), offset)

    def delete_records_before(self, offset: int) -> int:
        """DeleteRecords: the new log start offset; -1 stands for the high watermark.

        Raises BrokerError: OFFSET_OUT_OF_RANGE, POLICY_VIOLATION.
        """
        with self.lock:
            delete_records_before(self, offset)
            return self.log_start_offset

    def note_proven(self) -> None:
        """It lacks nothing of what was lost: it may lead, also after the next start. Harmless where that is known.

        Raises AppendError (KAFKA_STORAGE_ERROR), and then it stays unproven.
        """
        with self.flush_lock:
            if not self.is_unproven:
                return
            with self.lock:
                self.check_open()
            try:
                unproven_mark.remove(self.folder, self.files)
            except OSError as error:
                raise self.disk_failed("the mark of a log that lacks records can't be taken off", error) from error
            self.is_unproven = False

    @property
    def is_flush_due(self) -> bool:
        """Whether `flush.messages` asks for an fsync now. Any thread."""
        return self.published[0] - self.recovery_point > self.flush_beyond

    def flush(self, up_to_offset: int | None = None) -> None:
        """fsync everything below `up_to_offset` (None: all), then the recovery point moves there. No lock held."""
        flush(self, up_to_offset)

    def flush_in_background(self, up_to_offset: int) -> None:
        """Let another thread flush: the fsync that a roll wants. No lock held."""
        self.environment.run_in_background(partial(self._flush_quietly, up_to_offset))

    def delete_old_segments(self, now_ms: int) -> int:
        """Retention by time, size and log start offset; how many segments went.

        What comes behind them is made durable first, where it isn't: else a power cut could leave an empty log, which
        would give out its offsets anew.
        """
        with self.lock:
            truncations = self.truncations
            offset = None if self.closed or self.deleting else self._retain(retention_offset, now_ms)
        if offset is None:
            return 0
        self._flush_before_deletion(offset)
        with self.lock:
            if self.closed or self.deleting or self.truncations != truncations:
                return 0
            deleted = self._retain(delete_below, offset)
        if deleted:
            logger.info("%s: %d segments deleted, it starts at %d now", self, len(deleted), self.log_start_offset)
        return len(deleted)

    def finish_swap(self) -> None:
        """Do what the disk refused of a compaction's swap, if anything: space is free then, and names are right."""
        with self.flush_lock:
            try:
                finish_swap(self)
            except OSError as error:
                raise self.disk_failed("compaction failed", error) from error

    def remove_expired_producers(self, now_ms: int) -> int:
        """Forget idempotent producers that were silent for `producer.id.expiration.ms`; how many."""
        with self.lock:
            return self.producers.remove_expired(now_ms, self.environment.producer_id_expiration_ms)

    def active_producers(self) -> list[ProducerStatus]:
        with self.lock:
            return self.producers.statuses()

    def update_config(self, config: TopicConfig) -> None:
        """Take effect at once, for the active segment too."""
        with self.lock:
            self.configure(config)
            self.published[2][-1].govern(self.roll_rules, self.jitter_ms())

    def begin_deletion(self) -> None:
        """Have what works in the folder end, and let nothing begin there any more. `await_quiet` waits for it."""
        with self.lock:
            self.deleting = True
            abort = self.abort_cleaning
        if abort is not None:
            # Elsewhere, for it waits where the worker's pipe is full.
            self.environment.run_in_background(abort)

    def await_quiet(self) -> None:
        """Wait until nobody works in the folder: for one fsync, or the few of a swap. After `begin_deletion`."""
        with self.flush_lock:
            return

    def cancel_deletion(self) -> None:
        """The log stays after all."""
        with self.lock:
            self.deleting = False

    def rename_directory(self, directory: Path) -> None:
        """Move the whole log, to `...-delete`; slices that are open go on. The caller fsyncs the parent.

        No error if somebody took the folder away: who renames it wants to be rid of it.

        Raises AppendError (KAFKA_STORAGE_ERROR), and then the log is where it was.
        """
        with self.flush_lock, self.lock:
            try:
                self.files.rename(self.folder, directory)
            except OSError as error:
                if not isinstance(error, FileNotFoundError) or not self.files.is_directory(directory.parent):
                    raise self.disk_failed("the log's folder can't be renamed", error) from error
                logger.warning("%s: its folder was gone already: %s", self, self.folder)
            self.moved_to(directory)

    def is_lost_with(self, directories: Container[Path]) -> bool:
        """Whether it lies in one of these log directories, which have failed, and stays there. No lock held."""
        if self.directory.parent in directories and self.is_moving:
            # Whoever is at the last step of the move has the lock, and ends it; nobody begins that any more.
            with self.lock:
                pass
        return self.directory.parent in directories

    def moved_to(self, directory: Path) -> None:
        """The folder has another name now. Both locks held."""
        self.directory, self.folder = directory, str(directory)
        for segment in (*self.published[2], *self.replaced):
            segment.moved_to(self.folder)
        self.snapshots.moved_to(self.folder)

    def close(self, *, clean: bool = True) -> None:
        """Close the log; harmless twice. `clean`: all is saved and fsynced, so that the next start needs no recovery.

        Raises AppendError (KAFKA_STORAGE_ERROR) where that failed; the log is closed even so.
        """
        with self.flush_lock:
            try:
                if clean and not self.closed and save_all(self):
                    flush_all(self)
            finally:
                with self.lock:
                    self.closed = True
                    # Those that a swap has replaced, but could not set aside, are nobody else's to close.
                    for segment in (*self.published[2], *self.replaced):
                        segment.unpin()
                        segment.file.retire()
                        segment.offset_index.forget()

    def save(self) -> bool:
        """The first step of closing many logs (`log_closing`): write what is only in memory. False: nothing to fsync.

        Raises AppendError (KAFKA_STORAGE_ERROR).
        """
        with self.flush_lock:
            return not self.closed and save_all(self)

    def fsync_saved(self) -> None:
        """fsync what `save` wrote, and what was written before. Raises AppendError (KAFKA_STORAGE_ERROR)."""
        with self.flush_lock:
            flush_all(self)

    def stage_epochs(self) -> None:
        """Write the epoch file under a temporary name, if it is behind. Raises OSError."""
        with self.flush_lock:
            if self.epochs.entries != self.saved_epochs:
                self.files.write_file(self.epoch_file + TEMPORARY_SUFFIX, self.epochs.encode())

    def install_epochs(self) -> bool:
        """Give it its name, now that it is on the disk. Whether there was one to rename. Raises OSError."""
        with self.flush_lock:
            entries = self.epochs.entries
            if entries == self.saved_epochs:
                return False
            self.files.rename(self.epoch_file + TEMPORARY_SUFFIX, self.epoch_file)
            self.saved_epochs = entries
            return True

    def note_durable(self) -> None:
        """Somebody made the whole file system durable after `save`."""
        with self.flush_lock:
            note_durable(self)

    def delete(self) -> None:
        """Close the log and unlink its folder with all that is in it; harmless twice. Raises OSError."""
        self.close(clean=False)
        delete_folder(self.directory, self.files)

    def _put_high_watermark(self, offset: int) -> int:
        """Lock held."""
        with self.watermark_lock:
            self.high_watermark = max(self.log_start_offset, min(offset, self.published[0]))
        self.producers.replicated_to(self.high_watermark)
        return self.high_watermark

    def _shorten(self, step: Callable[[], object]) -> None:
        """Lock held. Raises AppendError (KAFKA_STORAGE_ERROR)."""
        try:
            step()
        except OSError as error:
            raise self.give_up("truncation failed", error) from error
        except Exception as error:
            raise self.give_up("truncation failed", FinalDiskError(errno.EIO, repr(error))) from error

    def _retain(self, step: Callable[["ManagedLog", int], _T], argument: int) -> _T:
        try:
            return step(self, argument)
        except OSError as error:
            raise self.disk_failed("retention failed", error) from error

    def _flush_before_deletion(self, offset: int) -> None:
        pending = self.sealed or self.snapshots.unsynced
        if self.recovery_point >= offset and not pending:
            return
        try:
            self.flush(offset)
        except BrokerError as refused:
            # A full disk must not keep retention from making room.
            if getattr(refused.__cause__, "errno", None) not in PASSING or self.closed:
                raise
            logger.warning("%s: retention goes on without a flush: %s", self, refused)

    def _flush_quietly(self, up_to_offset: int) -> None:
        try:
            self.flush(up_to_offset)
        except BrokerError as error:
            # Reported as the directory's failure already; the recovery point stays, the next flush tries again.
            logger.warning("%s: background flush failed: %s", self, error)
