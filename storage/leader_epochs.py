"""Which leader epoch began at which offset (`leader-epoch-checkpoint`, KIP-101).

    0             version
    2             number of entries
    0 0           epoch, start offset
    3 1503

Followers truncate by it, and OffsetForLeaderEpoch answers from it. Epochs and offsets ascend.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Final, TypeAlias

FILE_NAME: Final = "leader-epoch-checkpoint"
MAX_FILE_BYTES: Final = 64 << 20
UNDEFINED_EPOCH: Final = -1
UNDEFINED_OFFSET: Final = -1

EpochStart: TypeAlias = tuple[int, int]


class CorruptEpochsError(Exception):
    """A checkpoint that can't be read; the batches' own epochs rebuild it."""


class LeaderEpochs:
    """The epochs of one log: immutable entries, swapped whole under the log's lock, read by any thread."""

    __slots__ = ("_entries", "latest_epoch")

    def __init__(self, entries: Iterable[EpochStart] = ()) -> None:
        self._set(tuple(entries))

    @property
    def entries(self) -> tuple[EpochStart, ...]:
        return self._entries

    def assign(self, epoch: int, start_offset: int) -> bool:
        """`epoch` begins at `start_offset`; entries that contradict are dropped. True if anything changed."""
        entries = self._entries
        if entries and entries[-1][0] == epoch and entries[-1][1] <= start_offset:
            return False
        while entries and (entries[-1][0] >= epoch or entries[-1][1] >= start_offset):
            entries = entries[:-1]
        self._set((*entries, (epoch, start_offset)))
        return True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochStart:
        """(the largest known epoch at or below `epoch`, where it ends); (-1, -1) if `epoch` is beyond all known."""
        entries = self._entries
        if epoch == UNDEFINED_EPOCH or not entries:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if epoch == entries[-1][0]:
            return epoch, log_end_offset
        higher = bisect_right(entries, epoch, key=_epoch)
        if higher == len(entries):
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        return (entries[higher - 1][0] if higher else epoch), entries[higher][1]

    def epoch_for(self, offset: int) -> int:
        """The epoch in which `offset` was or will be written; -1 if it lies before all known."""
        entries = self._entries
        found = bisect_right(entries, offset, key=_start_offset)
        return entries[found - 1][0] if found else UNDEFINED_EPOCH

    def truncate_from_end(self, end_offset: int) -> bool:
        """Drop the epochs that began at or above `end_offset`. True if anything changed."""
        kept = bisect_left(self._entries, end_offset, key=_start_offset)
        if kept == len(self._entries):
            return False
        self._set(self._entries[:kept])
        return True

    def truncate_from_start(self, start_offset: int) -> bool:
        """The log begins at `start_offset` now: the epoch it lies in begins there. True if anything changed."""
        entries = self._entries
        lower = bisect_right(entries, start_offset, key=_start_offset)
        if not lower or entries[lower - 1][1] == start_offset == entries[0][1]:
            return False
        self._set(((entries[lower - 1][0], start_offset), *entries[lower:]))
        return True

    def forget_after(self, epoch: int) -> None:
        """Know nothing of later epochs."""
        self._set(self._entries[: bisect_right(self._entries, epoch, key=_epoch)])

    def clear(self) -> None:
        self._set(())

    def encode(self) -> bytes:
        lines = [f"{epoch} {offset}\n" for epoch, offset in self._entries]
        return f"0\n{len(lines)}\n{''.join(lines)}".encode()

    def _set(self, entries: tuple[EpochStart, ...]) -> None:
        self._entries = entries
        self.latest_epoch = entries[-1][0] if entries else UNDEFINED_EPOCH


def decode(data: bytes) -> LeaderEpochs:
    """Read a checkpoint. Raises CorruptEpochsError."""
    if not data:
        return LeaderEpochs()
    try:
        version, count, *lines = data.decode("ascii").splitlines()
        pairs = [line.split(" ") for line in lines]
        entries = [(int(epoch), int(offset)) for epoch, offset in pairs]
        expected = int(count)
    except ValueError:
        raise CorruptEpochsError("not lines of epoch and offset") from None
    if version != "0" or expected != len(entries):
        raise CorruptEpochsError(f"version {version}, {count} entries announced, {len(entries)} found")
    epochs = LeaderEpochs()
    for epoch, offset in entries:
        # Kafka reads duplicates and disorder the same way: later lines win.
        if epoch < 0 or offset < 0:
            raise CorruptEpochsError(f"epoch {epoch} at offset {offset}")
        epochs.assign(epoch, offset)
    return epochs


def _epoch(entry: EpochStart) -> int:
    return entry[0]


def _start_offset(entry: EpochStart) -> int:
    return entry[1]
