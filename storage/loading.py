"""Loading a partition's log from its folder, after a clean stop or a crash.

The order: leftovers of a crash, segments with the action that each needs (`recovery.decide`), producer state from the
newest snapshot that can be trusted and the batches behind it, leader epochs. One pass over the batches serves checking,
indexes, producers and epochs.
"""

import logging
from collections.abc import Collection
from functools import partial
from typing import Final

from kavka.protocol.records.errors import CorruptRecordsError
from kavka.storage import leader_epochs, unproven_mark
from kavka.storage.batch_scan import ScannedBatch
from kavka.storage.environment import LogEnvironment
from kavka.storage.leader_epochs import CorruptEpochsError, LeaderEpochs
from kavka.storage.offset_index import CorruptIndexError
from kavka.storage.producer_snapshots import SnapshotFiles
from kavka.storage.producer_state import ProducerStates
from kavka.storage.recovery import Action, SegmentFinding, decide, rebuild_indexes, recover_segment, replay
from kavka.storage.replaying import batches_from, batches_in, recall_batches
from kavka.storage.segment import RollRules, Segment
from kavka.storage.segment_files import base_offsets, tidy_folder

logger: Final = logging.getLogger(__name__)


class LoadedLog:
    """Loads a log; its attributes are the result. One thread."""

    __slots__ = (
        "_clean",
        "_directory",
        "_environment",
        "_epochs_lost",
        "_files",
        "_kept_end_offset",
        "_recovered",
        "_roll_rules",
        "changed",
        "cut_bytes",
        "end_offset",
        "epochs",
        "is_unproven",
        "log_start_offset",
        "producers",
        "recovered_segments",
        "recovery_point",
        "saved_epochs",
        "segments",
        "snapshots",
    )

    def __init__(
        self,
        directory: str,
        environment: LogEnvironment,
        roll_rules: RollRules,
        *,
        clean: bool,
        recovery_point: int,
        log_start_offset: int,
    ) -> None:
        """Raises OSError."""
        self._directory = directory
        self._environment = environment
        self._files = environment.files
        self._roll_rules = roll_rules
        self._clean = clean
        self.recovery_point = recovery_point
        self.log_start_offset = log_start_offset
        self.cut_bytes = 0
        self.recovered_segments = 0
        self.changed = not clean
        """Whether files were made or changed that a clean stop must fsync."""
        self._kept_end_offset = log_start_offset
        self._recovered: Segment | None = None
        """The one that was recovered last."""
        self.producers = ProducerStates()
        names = frozenset(tidy_folder(directory, self._files))
        self.is_unproven = unproven_mark.FILE_NAME in names
        self.snapshots = SnapshotFiles(directory, self._files, names)
        if not clean:
            self.snapshots.doubt_from(recovery_point)
        self.segments = [self._segment(offset) for offset in base_offsets(names)]
        epochs = self._read_epochs(leader_epochs.FILE_NAME in names)
        self._epochs_lost = epochs is None
        self.epochs = epochs if epochs is not None else LeaderEpochs()
        self.saved_epochs = epochs.entries if epochs is not None and leader_epochs.FILE_NAME in names else None
        """What the file holds; None: there is none, or none that can be read."""
        self.end_offset = self.segments[0].base_offset if self.segments else log_start_offset
        try:
            self._load_segments(self._actions(names))
            self._settle(log_start_offset)
        except BaseException:
            for segment in self.segments:
                segment.unpin()
                segment.file.retire()
            raise

    def _segment(self, base_offset: int) -> Segment:
        segment = Segment(self._directory, base_offset, self._environment.pool)
        segment.size_bytes = self._files.size(segment.file.path)
        segment.created_ms = self._environment.now_ms()
        segment.govern(self._roll_rules, 0)
        return segment

    def _read_epochs(self, exists: bool) -> LeaderEpochs | None:
        """None if they are lost and the batches must tell."""
        if not exists:
            return None if self.segments and any(segment.size_bytes for segment in self.segments) else LeaderEpochs()
        path = f"{self._directory}/{leader_epochs.FILE_NAME}"
        try:
            return leader_epochs.decode(self._files.read_bytes(path, leader_epochs.MAX_FILE_BYTES))
        except CorruptEpochsError as error:
            logger.warning("leader epochs of %s are rebuilt: %s", self._directory, error)
            return None

    def _actions(self, names: Collection[str]) -> list[Action]:
        actions = []
        last = len(self.segments) - 1
        for number, segment in enumerate(self.segments):
            good = (number < last or not self._clean or self._activated(segment)) and segment.indexes_good(names)
            finding = SegmentFinding(
                stopped_cleanly=self._clean,
                below_recovery_point=number < last and self.segments[number + 1].base_offset <= self.recovery_point,
                is_last=number == last,
                indexes_good=good,
                tail_whole=number < last or (self._clean and good and self._tail_is_whole(segment)),
            )
            actions.append(decide(finding))
        return actions

    def _activated(self, last: Segment) -> bool:
        """Get the last segment ready to be written to: its indexes are read once, to be checked and to be used."""
        try:
            last.activate()
        except (CorruptIndexError, FileNotFoundError):
            return False
        return True

    def _tail_is_whole(self, last: Segment) -> bool:
        """Whether the log ends with a batch; where is known then."""
        try:
            place = last.find_last()
        except CorruptRecordsError:
            return False
        if place is None:
            self._kept_end_offset = last.base_offset
            return not last.size_bytes
        self._kept_end_offset = place.last_offset + 1
        return place.position + place.size_bytes == last.size_bytes

    def _load_segments(self, actions: list[Action]) -> None:
        segments = self.segments
        first_recovered = actions.index(Action.RECOVER) if Action.RECOVER in actions else len(actions)
        trusted = segments[first_recovered].base_offset if first_recovered < len(actions) else self._kept_end_offset
        self._load_producers(trusted)
        for number, (segment, action) in enumerate(zip(segments, actions, strict=True)):
            is_last = number == len(segments) - 1
            if action is Action.RECOVER:
                if self._recover(segment) and not is_last:
                    self._drop_from(number + 1)
                    return
            else:
                if action is Action.REBUILD:
                    self._rebuild(segment)
                self.end_offset = self._kept_end_offset if is_last else segments[number + 1].base_offset
                self._catch_up(segment)
            self.changed |= action is Action.RECOVER
            if not is_last and action is Action.RECOVER:
                segment.seal()

    def _load_producers(self, trusted_offset: int) -> None:
        """From the newest good snapshot below what is recovered; later ones may tell of batches that are lost."""
        self.snapshots.remove_outside(-1, trusted_offset)
        loaded = self.snapshots.load_latest(-1, trusted_offset)
        if loaded is not None:
            self.producers.load(*loaded)
            environment = self._environment
            self.producers.remove_expired(environment.now_ms(), environment.producer_id_expiration_ms)
            if not self._clean:
                # After a clean stop those of what was not committed are: see `log_loading.load_logs`.
                recall_batches(self._files, self.segments, self.producers)

    def _recover(self, segment: Segment) -> int:
        """Check and index it; the bytes that were cut."""
        segment.restart()
        self._recovered = segment
        self.producers.map_end_offset = max(self.producers.map_end_offset, segment.base_offset)
        self.snapshots.take(self.producers.entries(), segment.base_offset)

        def on_batch(batch: ScannedBatch) -> None:
            replay(batch, self.producers, segment, index=True)
            self._assign_epoch(batch)

        self.end_offset, cut = recover_segment(segment, self._files, self.end_offset, on_batch)
        self.recovered_segments += 1
        self.cut_bytes += cut
        if cut:
            logger.warning("cut %d bytes from %s: no sound batch there", cut, segment.file.path)
        return cut

    def _rebuild(self, segment: Segment) -> None:
        logger.warning("indexes of %s are rebuilt", segment.file.path)
        states = ProducerStates()
        loaded = self.snapshots.load_latest(-1, segment.base_offset)
        if loaded is not None:
            states.load(*loaded)
        if states.map_end_offset < segment.base_offset:
            before = [other for other in self.segments if other.base_offset < segment.base_offset]
            for earlier, batch in batches_from(self._files, before, states.map_end_offset):
                replay(batch, states, earlier, index=False)
        on_batch = partial(replay, producers=states, segment=segment, index=True)
        rebuild_indexes(segment, self._files, self._directory, on_batch)

    def _drop_from(self, number: int) -> None:
        """Segments behind one that was cut: their batches have lost what stood before them."""
        for segment in self.segments[number:]:
            logger.warning("%s is dropped: it lies behind a bad batch", segment.file.path)
            segment.unpin()
            segment.file.retire()
            for path in segment.paths():
                if self._files.exists(path):
                    self._files.unlink(path)
        del self.segments[number:]
        self._files.fsync_directory(self._directory)

    def _catch_up(self, segment: Segment) -> None:
        """Replay what the snapshot doesn't cover; read the epochs where their file is lost."""
        known = self.producers.map_end_offset
        if known < self.end_offset or self._epochs_lost:
            for batch in batches_in(self._files, segment, 0 if self._epochs_lost else known):
                if batch.header.next_offset > known:
                    replay(batch, self.producers, segment, index=False)
                if self._epochs_lost:
                    self._assign_epoch(batch)
            self.producers.map_end_offset = max(known, self.end_offset)

    def _assign_epoch(self, batch: ScannedBatch) -> None:
        epoch, offset = batch.header.partition_leader_epoch, batch.header.base_offset
        known = self.epochs.epoch_for(offset)
        if known > epoch >= 0:
            # It was saved before a truncation, and later epochs began with records that others have replaced.
            self.epochs.forget_after(epoch)
            known = self.epochs.epoch_for(offset)
        # The file may tell of the same epoch further on: it was saved before an earlier crash took its first batches.
        if epoch > known:
            self.epochs.assign(epoch, offset)

    def _settle(self, log_start_offset: int) -> None:
        """Agree on where the log starts and ends, and have a last segment that can be written to."""
        if self.segments and log_start_offset > self.end_offset:
            logger.warning(
                "%s ends before its start offset %d and begins anew there", self._directory, log_start_offset
            )
            self._drop_from(0)
            self.producers.clear(log_start_offset)
        if not self.segments:
            self.end_offset = log_start_offset
            segment = Segment(self._directory, log_start_offset, self._environment.pool)
            self.segments.append(segment)
            segment.create()
            self.changed = True
            segment.created_ms = self._environment.now_ms()
        self._keep_vouched_indexes()
        self.log_start_offset = max(log_start_offset, self.segments[0].base_offset)
        self.recovery_point = self.end_offset if self._clean else min(self.recovery_point, self.end_offset)
        self.epochs.truncate_from_end(self.end_offset)
        self.epochs.truncate_from_start(self.log_start_offset)
        self.producers.map_end_offset = self.end_offset
        self.snapshots.remove_outside(-1, self.end_offset)
        if self.recovered_segments:
            self.snapshots.take(self.producers.entries(), self.end_offset)
        self.snapshots.remove_strays(segment.base_offset for segment in self.segments)

    def _keep_vouched_indexes(self) -> None:
        """Make durable what was indexed anew in a last segment that is all below the recovery point.

        Should it be closed as it is, the next start takes its indexes for fsynced. What came out as it lies on the disk
        costs next to nothing.
        """
        last = self.segments[-1]
        if last is not self._recovered or not last.base_offset < self.end_offset <= self.recovery_point:
            return
        last.finish_time_index()
        changed = last.save_indexes()
        for path in last.paths()[1:]:
            if self._files.exists(path):
                self._files.fsync_file(path)
        if changed:
            self._files.fsync_directory(self._directory)
