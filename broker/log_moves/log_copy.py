"""One copy of a log in another directory, and the steps that make it the log.

A step copies a piece of the log's records to the copy's end, as they are. Where the log was cut meanwhile, or the copy
is one that an earlier start began, it is cut first to what both have, as a follower's log is (KIP-101).
"""

import logging
from enum import Enum
from typing import TYPE_CHECKING, Final

from kavka.broker.replication.fetch_state import NO_EPOCH, Position, truncation_offset
from kavka.protocol.errors import BrokerError, DecodeError, ErrorCode
from kavka.storage.log_exchange import MoreToCopyError
from kavka.storage.offset_index import CorruptIndexError

if TYPE_CHECKING:
    from kavka.storage.log_manager import LogManager
    from kavka.storage.partition_log import PartitionLog

log: Final = logging.getLogger(__name__)

_NOT_COMPARED: Final = -1


class Progress(Enum):
    """What a step has done."""

    COPIED = 1
    """Or at least changed something; go on."""
    DONE = 2
    """The log lies where the copy was, or there is nothing to be copied any more."""
    STUCK = 3
    """Nothing, though the copy is behind: go on later."""


class LogCopy:
    """A log and its copy. Used by one thread."""

    def __init__(
        self, logs: "LogManager", key: tuple[str, int], current: "PartitionLog", future: "PartitionLog"
    ) -> None:
        self._logs: Final = logs
        self.key: Final = key
        self.current: Final = current
        self.future: Final = future
        self._truncations = _NOT_COMPARED
        """The log's when the copy was compared with it: until they change, the copy holds nothing but its records."""

    def step(self, max_bytes: int) -> tuple[Progress, int]:
        """Copy up to `max_bytes`, at least one batch: (what was done, bytes copied). Waits for the disks.

        Raises BrokerError: a disk refused, or a record can't be read.
        """
        current, future = self.current, self.future
        if self._logs.get(*self.key) is not current or self._logs.moves.future(self.key) is not future:
            return Progress.DONE, 0
        if self._truncations != current.truncations:
            try:
                self._cut_to_common_history()
            except (DecodeError, CorruptIndexError) as broken:
                log.warning("begins a copy anew, for it is broken log=%s error=%r", future, str(broken))
                future.truncate_fully_and_start_at(current.log_start_offset)
                return Progress.COPIED, 0
        truncations = self._truncations
        try:
            copied = self._copy(max_bytes)
        except BrokerError as failure:
            # The log's start moved on, or its end back, or a segment went while it was read.
            if failure.code is ErrorCode.OFFSET_OUT_OF_RANGE or current.truncations != truncations:
                return Progress.COPIED, 0
            raise
        except FileNotFoundError:
            return Progress.COPIED, 0
        if current.truncations != truncations:
            return Progress.COPIED, copied
        future.follow(current.high_watermark, current.log_start_offset, NO_EPOCH)
        if future.log_end_offset < current.log_end_offset and copied:
            return Progress.COPIED, copied
        try:
            is_done = self._logs.moves.complete(self.key, future, truncations)
        except MoreToCopyError:
            return (Progress.COPIED if copied else Progress.STUCK), copied
        except BrokerError as failure:
            if failure.code is not ErrorCode.FENCED_LEADER_EPOCH:
                raise
            # Cut at the last moment, or about to go: the next step sees which.
            return (Progress.COPIED if current.truncations != truncations else Progress.STUCK), copied
        return (Progress.DONE if is_done else Progress.COPIED), copied

    def _copy(self, max_bytes: int) -> int:
        current, future = self.current, self.future
        if future.log_end_offset < (start_offset := current.log_start_offset):
            future.truncate_fully_and_start_at(start_offset)
        next_offset, end_offset = future.log_end_offset, current.log_end_offset
        if next_offset >= end_offset:
            return 0
        piece = current.read(next_offset, max_bytes, min_one=True, end_offset=end_offset)
        records = piece.read_bytes()
        if current.truncations != self._truncations:
            return 0
        if records:
            future.append_as_follower(records)
            return len(records)
        future.end_at(current.empty_end)
        return 0

    def _cut_to_common_history(self) -> None:
        current, future = self.current, self.future
        truncations = current.truncations
        before = future.log_end_offset
        while True:
            position = Position(
                future.log_end_offset, future.log_start_offset, future.high_watermark, future.epochs.latest_epoch
            )
            if position.latest_epoch == NO_EPOCH:
                offset = min(position.high_watermark, position.end_offset)
            else:
                epoch, end_offset = current.end_offset_for_epoch(position.latest_epoch)
                offset = truncation_offset(epoch, end_offset, position, future.end_offset_for_epoch)
            offset = max(min(offset, current.log_end_offset), 0)
            if offset < future.log_start_offset:
                future.truncate_fully_and_start_at(current.log_start_offset)
                break
            future.truncate_to(offset)
            if (future.log_end_offset, future.epochs.latest_epoch) == (position.end_offset, position.latest_epoch):
                break
        if future.log_end_offset != before:
            log.info("cut a copy log=%s from=%d to=%d", future, before, future.log_end_offset)
        self._truncations = truncations
