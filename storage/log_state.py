"""What a partition's log consists of, and the steps that change it: roll, drop segments, save, meet a broken disk."""

import contextlib
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from kavka.config.topic_config import TopicConfig
from kavka.config.values import LONG_MAX
from kavka.protocol.errors import ErrorCode
from kavka.storage import leader_epochs, partition_metadata
from kavka.storage.append_result import AppendError
from kavka.storage.environment import LogEnvironment
from kavka.storage.files import PASSING, Files, FinalDiskError, unlink_all
from kavka.storage.leader_epochs import EpochStart, LeaderEpochs
from kavka.storage.log_answers import FoundOffset
from kavka.storage.log_slice import LogSlice
from kavka.storage.producer_snapshots import SnapshotFiles
from kavka.storage.producer_state import ProducerStates
from kavka.storage.segment import DELETED_SUFFIX, Segment

Published: TypeAlias = tuple[int, int, tuple[Segment, ...], tuple[int, ...]]
"""(log end offset, size of the active segment, segments, their base offsets)"""
NO_EPOCH: Final = -1
"""No leader epoch: a log that leads and follows in none has no role yet, and whoever opened it does as it likes."""
NOBODYS_EPOCH: Final = -2
"""Follows in no leader's epoch: nobody appends any more."""


class NewestKnown(NamedTuple):
    """What a scan of the segment that the log starts in has found (`reading.find_newest`)."""

    segment: Segment
    truncations: int
    start_offset: int
    end_position: int
    """How far the scan came."""
    found: FoundOffset | None


class LogState:
    """The parts of one log.

    `lock` guards all that changes, unless said otherwise; it is held for an append, a roll or a truncation, never
    across an fsync. Readers take no lock: they look at `published`, one immutable tuple that is swapped when the bytes
    are in the file, and at plain numbers.

    `flush_lock` is held by whoever works in the folder without `lock` (a flush, a swap of compacted segments) and by
    who renames it, and guards `saved_epochs`, `topic_id_saved` and `durable_changes`. `folder_saved` becomes true once
    and for all, by whoever fsynced. `high_watermark` and `stands_alone` are guarded by `watermark_lock`. Order:
    flush_lock, lock, watermark_lock.
    """

    __slots__ = (
        "abort_cleaning",
        "at_rest",
        "broken",
        "changes",
        "clean_offset",
        "closed",
        "config",
        "deleting",
        "directory",
        "durable_changes",
        "environment",
        "epochs",
        "files",
        "flush_beyond",
        "flush_lock",
        "flushes_by_count",
        "folder",
        "folder_saved",
        "following_epoch",
        "high_watermark",
        "is_moving",
        "is_unproven",
        "last_flush_ms",
        "leading_epoch",
        "lock",
        "log_start_offset",
        "newest_known",
        "owes_recovery_point",
        "partition",
        "producers",
        "published",
        "recovery_point",
        "replaced",
        "roll_rules",
        "rules",
        "saved_epochs",
        "sealed",
        "snapshots",
        "stands_alone",
        "swapped",
        "swapping",
        "topic",
        "topic_id",
        "topic_id_saved",
        "truncations",
        "watermark_lock",
    )

    epochs: LeaderEpochs
    producers: ProducerStates
    published: Published
    snapshots: SnapshotFiles

    def __init__(
        self, directory: Path, topic: str, partition: int, config: TopicConfig, environment: LogEnvironment
    ) -> None:
        self.directory = directory
        self.folder = str(directory)
        self.topic = topic
        self.partition = partition
        self.environment = environment
        self.files: Files = environment.files
        self.topic_id = partition_metadata.NO_TOPIC_ID
        self.lock = threading.Lock()
        self.flush_lock = threading.Lock()
        self.watermark_lock = threading.Lock()
        self.saved_epochs: tuple[EpochStart, ...] | None = None
        """What the epoch file holds; None: unknown, or no file."""
        self.topic_id_saved = True
        self.folder_saved = True
        """Whether a power cut leaves the folder: the fsync of the one that it lies in may have been refused."""
        self.is_unproven = False
        """Whether it takes the place of one that was lost, and may lack its records (`unproven_mark`): it must not
        lead. Set as it is opened; `flush_lock`'s."""
        self.closed = False
        self.broken = False
        """Closed because files may not be what is believed: set once, by who met the error, with or without `lock`."""
        self.at_rest = False
        """Closed cleanly: all of it is on the disk, and nothing changes any more."""
        self.deleting = False
        """The log is on its way out: no flush, compaction or retention begins any more."""
        self.is_moving = False
        """A copy in another directory is to take its place: what was copied is not compacted meanwhile."""
        self.abort_cleaning: Callable[[], None] | None = None
        """Ends the round of compaction that is at the log. Never called under `lock`."""
        self.log_start_offset = 0
        self.leading_epoch = NO_EPOCH
        """The leader epoch in which this replica leads: as its leader nobody appends in any other."""
        self.following_epoch = NO_EPOCH
        """The one in which it follows: what was fetched in another one changes nothing. One of the two is NO_EPOCH."""
        self.stands_alone = False
        """Whether it leads, and is the only replica there is: what is appended is committed. `watermark_lock`'s."""
        self.high_watermark = 0
        self.recovery_point = 0
        self.owes_recovery_point = False
        """Whether a checkpoint may have a higher one, from before a truncation. Under `lock`."""
        self.clean_offset: int | None = None
        """Everything below was compacted; None: nothing ever was."""
        self.swapping: tuple[str, ...] = ()
        """Files of a compacted segment that a crash would put in the place of those that it was made of."""
        self.swapped: Segment | None = None
        """A compacted segment that readers see, but whose files still have their temporary names."""
        self.replaced: list[Segment] = []
        """Those that it was made of, as far as their files are still there."""
        self.sealed: list[Segment] = []
        """Closed since the last flush: their last index entries aren't fsynced, wherever the recovery point is."""
        self.newest_known: NewestKnown | None = None
        self.truncations = 0
        self.changes = 0
        """How often files were made, cut or renamed; where `durable_changes` is behind, a close has to fsync."""
        self.durable_changes = 0
        self.last_flush_ms = environment.now_ms()
        self.configure(config)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.topic}-{self.partition})"

    @property
    def has_role(self) -> bool:
        """Whether it was told that it leads or follows. Lock held."""
        return self.leading_epoch != NO_EPOCH or self.following_epoch != NO_EPOCH

    @property
    def stored_recovery_point(self) -> int:
        """What a checkpoint may say: the next start believes the indexes of each segment that ends at it, or below.

        So it lies one below where such a segment's last entries, which a roll adds, may not be on the disk yet. Any
        thread, no lock.
        """
        point = self.recovery_point
        # In this order: a segment that is closed meanwhile is met in one or the other.
        end_offset, _, segments, _ = self.published
        active = () if self.at_rest or point < end_offset else (segments[-1],)
        unsure = any(segment.base_offset < point for segment in (*self.sealed, *active))
        return point - 1 if unsure else point

    def configure(self, config: TopicConfig) -> None:
        """Work out what appends and rolls ask of the configuration."""
        self.config = config
        self.rules, self.roll_rules = self.environment.rules_of(config)
        self.flush_beyond = config.flush_messages - 1
        self.flushes_by_count = config.flush_messages < LONG_MAX

    def jitter_ms(self) -> int:
        """What a new segment's age limit is lowered by, so that not all logs roll at once."""
        most = min(self.config.segment_jitter_ms, self.config.segment_ms)
        return self.environment.random_below(most) if most > 0 else 0

    def publish(self, end_offset: int, position: int, segments: Sequence[Segment]) -> None:
        """Let readers see this state. Lock held."""
        self.published = (end_offset, position, tuple(segments), tuple(segment.base_offset for segment in segments))

    def roll(self, now_ms: int, base_offset: int) -> Segment:
        """Seal the active segment and begin one at `base_offset`, the log's end or behind it. Lock held.

        Raises OSError, and then the old segment goes on. The caller flushes in the background, once the lock is free.
        """
        end_offset, _, segments, _ = self.published
        old = segments[-1]
        if old.base_offset == base_offset:
            # Empty, but closed all the same: its relative offsets or its index can't take the batch.
            self.publish(base_offset, 0, (*segments[:-1], self.new_segment(base_offset, now_ms)))
            old.unpin()
            old.offset_index.forget()
            old.file.retire()
            return self.published[2][-1]
        if self.owes_recovery_point:
            # The next start would believe what is sealed now as far as that reaches, whatever a power cut left of it.
            self.environment.store_recovery_points()
            self.owes_recovery_point = False
        old.finish_time_index()
        old.save_indexes()
        self.producers.map_end_offset = end_offset
        self.snapshots.take(self.producers.entries(), end_offset)
        new = self.new_segment(base_offset, now_ms)
        try:
            old.seal()
        except OSError:
            self._take_back(new)
            raise
        self.sealed.append(old)
        self.publish(base_offset, 0, (*segments, new))
        return new

    def roll_for_append(self, now_ms: int, base_offset: int) -> Segment:
        """As `roll`, with the error that an append answers. Raises AppendError (KAFKA_STORAGE_ERROR)."""
        try:
            return self.roll(now_ms, base_offset)
        except OSError as error:
            raise self.disk_failed("a new segment can't be begun", error) from error

    def new_segment(self, base_offset: int, now_ms: int) -> Segment:
        """An empty active segment, not yet part of the log. Raises OSError."""
        self.changes += 1
        segment = Segment(self.folder, base_offset, self.environment.pool)
        try:
            segment.create()
        except OSError:
            self._take_back(segment)
            raise
        segment.created_ms = now_ms
        segment.govern(self.roll_rules, self.jitter_ms())
        return segment

    def _take_back(self, new: Segment) -> None:
        """Leave nothing of a segment that could not be begun, nor its file: the next start would end the log there."""
        new.unpin()
        new.file.retire()
        if new.base_offset in self.published[3]:
            return  # the file is the empty active segment's
        try:
            unlink_all(self.files, new.paths())
        except OSError as error:
            self.give_up("a segment that could not be begun can't be taken back", error)

    def drop_segments(self, dropped: Iterable[Segment]) -> None:
        """Rename the files of segments that are no longer published, unlink them later. Lock held.

        Raises FinalDiskError: the log is given up, for under its name a file would come back at the next start, or
        into the next segment that begins there.
        """
        failure: OSError | None = None
        for segment in dropped:
            renamed: list[str] = []
            try:
                renamed = self.set_aside(segment)
            except OSError as error:
                failure = failure or error
            try:
                self.let_go(segment, renamed)
            except OSError as error:
                failure = failure or error
        if failure is not None:
            self.give_up("a segment can't be deleted", failure)
            raise FinalDiskError(failure.errno, failure.strerror or str(failure)) from failure

    def set_aside(self, segment: Segment) -> list[str]:
        """Rename the segment's files; those that were. Lock held. Raises OSError, and then nothing has happened.

        The .log decides: indexes without it are nothing, to the next start and to a segment that begins there.
        """
        self.changes += 1
        path = segment.file.path
        renamed = []
        if self.files.exists(path):
            self.files.rename(path, path + DELETED_SUFFIX)
            segment.file.moved_to(path + DELETED_SUFFIX)
            renamed.append(path + DELETED_SUFFIX)
        for index in segment.paths()[1:]:
            with contextlib.suppress(OSError):
                if self.files.exists(index):
                    self.files.rename(index, index + DELETED_SUFFIX)
                    renamed.append(index + DELETED_SUFFIX)
        return renamed

    def let_go(self, segment: Segment, renamed: Sequence[str], *, snapshot_stays: bool = False) -> None:
        """Close what was set aside, once nobody reads it, and unlink its files later, its snapshot now. Lock held.

        However a segment leaves the log, it is set aside and let go; what a failure means is the caller's to say.
        Raises OSError where the snapshot can't be unlinked; the rest is done then.
        """
        segment.unpin()
        segment.offset_index.forget()
        segment.file.retire()
        self.environment.run_later(self.config.file_delete_delay_ms, partial(unlink_all, self.files, renamed))
        if not snapshot_stays and segment.base_offset in self.snapshots.offsets:
            self.snapshots.remove(segment.base_offset)

    def save_indexes(self, segment: Segment) -> None:
        """Write what the index files lack. Lock held. A full disk is no error: the next time writes it all."""
        try:
            segment.save_indexes()
        except OSError as error:
            if error.errno not in PASSING:
                self.environment.on_io_failure(self.directory, error)

    @property
    def epoch_file(self) -> str:
        return f"{self.folder}/{leader_epochs.FILE_NAME}"

    def save_epochs(self) -> None:
        """Write the epoch file if it is behind; the caller fsyncs the folder. flush_lock held. Raises OSError.

        Epochs above the recovery point need no file, the batches tell them at the next start; so only flush and close
        come here, and a thousand new leaders cost no fsync.
        """
        entries = self.epochs.entries
        if entries != self.saved_epochs:
            self.files.replace(self.epoch_file, self.epochs.encode())
            self.saved_epochs = entries

    def disk_failed(self, what: str, error: OSError, folder: Path | None = None) -> AppendError:
        """The error to raise; the log directory goes offline unless the disk is only full, or the log closed.

        `folder` that was worked in by who holds no lock: the log may have moved to another directory since.
        """
        if isinstance(error, FinalDiskError):
            return self.give_up(what, error)
        if error.errno in PASSING:
            self.environment.on_refused(self.directory, f"{what}: {error.strerror or error}")
        elif not self.closed:
            self.environment.on_io_failure(self.directory if folder is None else folder, error)
        return AppendError(ErrorCode.KAFKA_STORAGE_ERROR, f"{what}: {error.strerror or error}")

    def give_up(self, what: str, error: OSError) -> AppendError:
        """The error to raise where the files may not be what is believed, whatever the errno: nothing changes any more.

        The log directory goes offline, and the next start finds out what is there.
        """
        if not self.closed:
            self.broken = self.closed = True
            self.environment.on_io_failure(self.directory, error)
        return AppendError(ErrorCode.KAFKA_STORAGE_ERROR, f"{what}: {error.strerror or error}")

    def holds(self, piece: LogSlice) -> bool:
        """Whether the slice's segment is still the log's: after a compaction, `.txnindex` tells of other data."""
        return any(piece.file is segment.file for segment in reversed(self.published[2]))

    def check_open(self) -> None:
        """Raises AppendError (KAFKA_STORAGE_ERROR) once the log is closed. Lock held."""
        if self.closed:
            raise AppendError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.topic}-{self.partition} is closed")

    def check_follows(self, leader_epoch: int | None) -> None:
        """Raises AppendError: KAFKA_STORAGE_ERROR once closed, FENCED_LEADER_EPOCH unless it follows in that epoch.

        Lock held. None: nobody else decides about this log.
        """
        self.check_open()
        if leader_epoch is not None and leader_epoch != self.following_epoch and self.has_role:
            now = f"leads in {self.leading_epoch}" if self.leading_epoch >= 0 else f"follows in {self.following_epoch}"
            raise AppendError(
                ErrorCode.FENCED_LEADER_EPOCH, f"fetched in leader epoch {leader_epoch}, but {self!r} {now}"
            )
