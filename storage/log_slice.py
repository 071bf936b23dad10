"""A piece of a segment's `.log` file on its way to a consumer or a follower."""

import errno
from pathlib import Path
from typing import Protocol

from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.records.header import BATCH_LENGTH_POSITION, LOG_OVERHEAD_BYTES
from kavka.storage.segment_file import SegmentFile


class SlicedLog(Protocol):
    """The log that a slice is of, as the slice sees it. Any thread."""

    truncations: int
    """How often it was truncated."""

    def holds(self, piece: "LogSlice") -> bool:
        """Whether the slice's segment still belongs to the log."""

    def disk_failed(self, what: str, error: OSError, folder: Path) -> BrokerError:
        """Report the failure of the log directory with that folder if the error is its disk's; gives what to raise."""


class LogSlice:
    """Bytes `position .. position + size_bytes` of one segment; starts with the batch that holds the offset read from.

    The last batch may be cut. Whoever sends it by descriptor brackets that with `acquire` and `release`, and tells by
    `failed` what the disk refused. Immutable.

    What touches the disk raises BrokerError (KAFKA_STORAGE_ERROR), after the log directory's failure was reported;
    FileNotFoundError where the log has let go of the segment since: it has the answer to the same question.
    """

    __slots__ = (
        "_first_batch_bytes",
        "_log",
        "_truncations",
        "base_offset",
        "file",
        "position",
        "segment_base_offset",
        "size_bytes",
    )

    def __init__(
        self,
        log: SlicedLog,
        truncations: int,
        file: SegmentFile,
        position: int,
        size_bytes: int,
        base_offset: int,
        segment_base_offset: int,
        first_batch_bytes: int = 0,
    ) -> None:
        """`truncations`: the log's, from before it was looked at. `first_batch_bytes`: 0 where it was not looked at."""
        self._log = log
        self._truncations = truncations
        self.file = file
        self.position = position
        self.size_bytes = size_bytes
        self.base_offset = base_offset
        """The offset that was asked for."""
        self.segment_base_offset = segment_base_offset
        self._first_batch_bytes = first_batch_bytes

    def acquire(self) -> int:
        """Pin the file; the descriptor stays valid until `release`."""
        try:
            return self.file.acquire()
        except OSError as error:
            raise self._refusal(error) from error

    def release(self) -> None:
        self.file.release()

    def fileno(self) -> int:
        """The descriptor, between `acquire` and `release`."""
        return self.file.fileno()

    def read_bytes(self) -> bytes:
        """The slice's bytes; fewer where the log was truncated meanwhile."""
        return self._read(self.size_bytes) if self.size_bytes else b""

    def begins_with_whole_batch(self) -> bool:
        """Whether the first batch isn't cut."""
        if self._first_batch_bytes:
            return self._first_batch_bytes <= self.size_bytes
        head = self._read(LOG_OVERHEAD_BYTES) if self.size_bytes >= LOG_OVERHEAD_BYTES else b""
        if len(head) < LOG_OVERHEAD_BYTES:
            return False
        return LOG_OVERHEAD_BYTES + int.from_bytes(head[BATCH_LENGTH_POSITION:], "big") <= self.size_bytes

    def failed(self, error: OSError | None) -> None:
        """Whoever sends the slice met an error of the file, or with None, its end: reported if it is the disk's."""
        if error is None:
            error = self._ended_early()
        if error is not None:
            self._refusal(error)

    def _read(self, size_bytes: int) -> bytes:
        try:
            data = self.file.read(size_bytes, self.position)
        except OSError as error:
            raise self._refusal(error) from error
        if len(data) < size_bytes and (early := self._ended_early()) is not None:
            raise self._refusal(early) from early
        return data

    def _ended_early(self) -> OSError | None:
        """The error that it is that the file ends before the slice does; None where a truncation cut it."""
        if self._log.truncations != self._truncations:
            return None
        return OSError(errno.EIO, "the file is shorter than what was written to it", self.file.path)

    def _refusal(self, error: OSError) -> Exception:
        if isinstance(error, FileNotFoundError):
            if not self._log.holds(self):
                return error
            return BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"a segment is gone: {error}")
        # By its own file: the log may lie in another directory by now.
        return self._log.disk_failed("read failed", error, Path(self.file.path).parent)

    def __len__(self) -> int:
        return self.size_bytes
