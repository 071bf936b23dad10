"""A log in memory with the interface of `PartitionLog` that replication uses, and the disk that it comes back from.

A record is (leader epoch, value) and a batch of its own; offsets count from 0. The epochs are the real `LeaderEpochs`.
`test_model_log.py` holds all of it against a real log.
"""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.storage.append_result import AppendError, AppendResult
from kavka.storage.leader_epochs import EpochStart, LeaderEpochs
from kavka.storage.lost_logs import LostLogs

Entry = tuple[int, int]
"""(leader epoch, value)"""
Key = tuple[str, int]

NO_EPOCH = -1


class Config(NamedTuple):
    """What a partition asks of its log's settings."""

    min_insync_replicas: int = 2


class Slice(NamedTuple):
    """What a read has found: as `LogSlice`, a record being a byte."""

    records: tuple[Entry, ...]
    segment_base_offset: int = 0

    @property
    def size_bytes(self) -> int:
        return len(self.records)

    def begins_with_whole_batch(self) -> bool:
        return True

    def read_bytes(self) -> tuple[Entry, ...]:
        return self.records


class ModelLog:
    """See `PartitionLog` for what each method does."""

    def __init__(
        self,
        config: Config,
        entries: Iterable[Entry] = (),
        saved_epochs: Iterable[EpochStart] = (),
        checkpoint: int = 0,
        *,
        is_unproven: bool = False,
    ) -> None:
        """As loaded: the epoch file says what it says, the batches the rest; the high watermark is the checkpoint's."""
        self.config = config
        self.directory = Path("/model/visits-0")
        self.entries: list[Entry] = list(entries)
        self.saved_epochs = tuple(saved_epochs)
        self.epochs = LeaderEpochs(self.saved_epochs)
        for offset, (epoch, _) in enumerate(self.entries):
            if epoch < self.epochs.epoch_for(offset):
                self.epochs.forget_after(epoch)
            if epoch > self.epochs.epoch_for(offset):
                self.epochs.assign(epoch, offset)
        self.epochs.truncate_from_end(len(self.entries))
        self.high_watermark = min(checkpoint, len(self.entries))
        self.checkpoint = self.high_watermark
        self.flushed_offset = len(self.entries)
        self.log_start_offset = 0
        self.leading_epoch = NO_EPOCH
        self.following_epoch = NO_EPOCH
        self.is_alone = False
        self.closed = False
        self.is_unproven = is_unproven
        self.folder_saved = True

    @property
    def log_end_offset(self) -> int:
        return len(self.entries)

    @property
    def last_stable_offset(self) -> int:
        return self.high_watermark

    def end_offset_for_epoch(self, epoch: int) -> EpochStart:
        return self.epochs.end_offset_for(epoch, len(self.entries))

    # As a leader

    def stand_alone(self, alone: bool) -> None:
        self.is_alone = alone

    def begin_leader_epoch(self, epoch: int) -> int:
        end_offset = len(self.entries)
        self.epochs.assign(epoch, end_offset)
        self.leading_epoch, self.following_epoch = epoch, NO_EPOCH
        return end_offset

    def append_as_leader(self, records: Any, *, leader_epoch: int, **_: Any) -> AppendResult:
        """`records` is one value."""
        if self._has_role and leader_epoch != self.leading_epoch:
            raise AppendError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"not the leader of epoch {leader_epoch}")
        offset = len(self.entries)
        self.epochs.assign(leader_epoch, offset)
        self.entries.append((leader_epoch, records))
        return AppendResult(offset, offset, -1, 0, False)

    def advance_alone(self) -> None:
        if self.is_alone:
            self.high_watermark = max(self.high_watermark, len(self.entries))

    def advance_high_watermark(self, offset: int) -> bool:
        offset = min(offset, len(self.entries))
        if offset <= self.high_watermark:
            return False
        self.high_watermark = offset
        return True

    def read(self, offset: int, max_bytes: int, *, min_one: bool, end_offset: int) -> Slice:
        if not self.log_start_offset <= offset <= len(self.entries):
            raise BrokerError(ErrorCode.OFFSET_OUT_OF_RANGE)
        return Slice(tuple(self.entries[offset : min(end_offset, offset + max(max_bytes, int(min_one)))]))

    # As a follower

    def follow_leader_epoch(self, epoch: int) -> None:
        self.is_alone = False
        self.leading_epoch, self.following_epoch = NO_EPOCH, epoch

    def append_as_follower(self, records: Sequence[Entry], leader_epoch: int | None = None) -> AppendResult:
        self._check_follows(leader_epoch)
        first = len(self.entries)
        for record in records:
            if leader_epoch is not None and record[0] > leader_epoch:
                break
            if record[0] != self.epochs.latest_epoch:
                self.epochs.assign(record[0], len(self.entries))
            self.entries.append(record)
        if records and len(self.entries) == first:
            raise AppendError(ErrorCode.CORRUPT_MESSAGE, "a batch of a later epoch than its leader's")
        return AppendResult(first, len(self.entries) - 1, -1, 0, False)

    def follow(self, high_watermark: int, log_start_offset: int, leader_epoch: int) -> None:
        self._check_follows(leader_epoch)
        self.high_watermark = max(0, min(high_watermark, len(self.entries)))

    def truncate_to(self, offset: int, leader_epoch: int | None = None) -> None:
        self._check_follows(leader_epoch)
        if offset < len(self.entries):
            # What is cut is cut on the disk, too, before anything is written in its place.
            del self.entries[offset:]
            self.flushed_offset = min(self.flushed_offset, offset)
            self.high_watermark = min(self.high_watermark, offset)
        self.epochs.truncate_from_end(len(self.entries))

    def truncate_fully_and_start_at(self, offset: int, leader_epoch: int | None = None) -> None:
        raise AssertionError("no log of the model begins behind 0")

    # Upkeep

    def is_lost_with(self, directories: Collection[Path]) -> bool:
        return self.directory.parent in directories

    def note_proven(self) -> None:
        self.is_unproven = False

    def flush(self) -> None:
        """fsync all of it, and the epochs' file."""
        self.flushed_offset = len(self.entries)
        self.saved_epochs = self.epochs.entries

    def checkpoint_high_watermark(self) -> None:
        self.checkpoint = self.high_watermark

    @property
    def _has_role(self) -> bool:
        return self.leading_epoch != NO_EPOCH or self.following_epoch != NO_EPOCH

    def _check_follows(self, leader_epoch: int | None) -> None:
        if leader_epoch is not None and leader_epoch != self.following_epoch and self._has_role:
            raise AppendError(ErrorCode.FENCED_LEADER_EPOCH, f"fetched in epoch {leader_epoch}")


class Disk:
    """What outlives a broker's process: its log directories. Also what `LostLogs` asks of them."""

    def __init__(self, *, is_new: bool = False) -> None:
        self.logs: dict[Key, ModelLog] = {}
        self.has_new = is_new
        self.is_one_away = False
        self.away: dict[Key, ModelLog] = {}
        """What lies in a directory that is away."""

    @property
    def all_logs(self) -> list[ModelLog]:
        return [*self.logs.values(), *self.away.values()]

    def may_lead(self, key: Key) -> bool:
        """Whether its broker can lead the partition, or makes a log for it that may."""
        log = self.logs.get(key)
        return not self.has_new and not self.is_one_away if log is None else not log.is_unproven

    def go_away(self) -> list[Key]:
        """The directory with the logs that there are fails, or is not there at a start; another one is left."""
        hidden = list(self.logs)
        self.away.update(self.logs)
        self.logs.clear()
        self.is_one_away = True
        return hidden

    def come_back(self) -> None:
        """At a start. A log that was made meanwhile in another directory outdoes the former one."""
        for key, log in self.away.items():
            self.logs.setdefault(key, log)
        self.away.clear()
        self.is_one_away = False

    def note_complete(self) -> bool:
        self.has_new = False
        return True

    def crash(self, *, is_power_cut: bool) -> None:
        """The process ends; with the power, what was not fsynced goes as well."""
        for logs in (self.logs, self.away):
            for key, log in logs.items():
                kept = log.entries[: log.flushed_offset] if is_power_cut else log.entries
                loaded = ModelLog(log.config, kept, log.saved_epochs, log.checkpoint, is_unproven=log.is_unproven)
                loaded.flushed_offset = min(log.flushed_offset, len(kept))
                logs[key] = loaded


class ModelLogs:
    """What a `ReplicaManager` asks of its `LogManager`."""

    def __init__(self, disk: Disk, config: Config) -> None:
        self._disk = disk
        self._config = config
        parts: Any = disk, disk.logs
        self.lost = LostLogs(*parts)
        self._offline: set[Key] = set()

    def create(
        self,
        partitions: Iterable[tuple[str, int, bytes]],
        *,
        new: Collection[Key] = (),
        lost: Collection[Key] = (),
    ) -> dict[Key, "ModelLog | BrokerError"]:
        results: dict[Key, ModelLog | BrokerError] = {}
        for topic, index, _ in partitions:
            key = (topic, index)
            if key not in self._disk.logs and self._disk.is_one_away and key not in new:
                self._offline.add(key)
                results[key] = BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, "it may lie in a directory that is offline")
                continue
            self._offline.discard(key)
            results[key] = self._disk.logs.setdefault(key, ModelLog(self._config, is_unproven=key in lost))
        return results

    def lose(self) -> None:
        """The directory with all of them fails."""
        self._offline.update(self._disk.go_away())

    def get(self, topic: str, partition: int) -> ModelLog | None:
        return self._disk.logs.get((topic, partition))

    def delete(self, partitions: Iterable[Key]) -> dict[Key, BrokerError]:
        refused = {}
        for key in partitions:
            self._disk.logs.pop(key, None)
            if key in self._offline:
                refused[key] = BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, "it lies in a directory that is offline")
        return refused

    def is_offline(self, topic: str, partition: int) -> bool:
        return (topic, partition) in self._offline
