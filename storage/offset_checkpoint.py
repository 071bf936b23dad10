"""The four offset checkpoints at a log directory's top: one offset for each of the directory's partitions.

    0                         version
    2                         number of entries
    page_visits 0 1503        topic partition offset
    page_visits 1 1498

    recovery-point-offset-checkpoint   all below is on the disk, not only in the page cache; recovery starts here
    replication-offset-checkpoint      high watermarks
    log-start-offset-checkpoint        first offset a client may read, where it isn't the first segment's base
    cleaner-offset-checkpoint          where the cleaner's dirty part starts; only compacted partitions are in it

A file is replaced whole (temporary name, fsync, rename, fsync of the directory), so that a crash leaves the old one or
the new one. Kafka makes empty files at its start; an empty file has no entries.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, TypeAlias

from kavka.storage.files import Files

TopicPartition: TypeAlias = tuple[str, int]

RECOVERY_POINT_FILE: Final = "recovery-point-offset-checkpoint"
HIGH_WATERMARK_FILE: Final = "replication-offset-checkpoint"
LOG_START_OFFSET_FILE: Final = "log-start-offset-checkpoint"
CLEANER_OFFSET_FILE: Final = "cleaner-offset-checkpoint"
CHECKPOINT_FILES: Final = frozenset(
    {RECOVERY_POINT_FILE, HIGH_WATERMARK_FILE, LOG_START_OFFSET_FILE, CLEANER_OFFSET_FILE}
)

MAX_CHECKPOINT_BYTES: Final = 256 * 1024 * 1024
"""A larger file is refused unread: a million partitions with names of 200 characters stay below."""

_MAX_INT64: Final = (1 << 63) - 1
_MAX_INT32: Final = (1 << 31) - 1
_MAX_TOPIC_LENGTH: Final = 249


class CorruptCheckpointError(Exception):
    """A checkpoint's text is not what it must be.

    Every checkpoint can be done without: the caller logs it and goes on as if the file had no entries.
    """


class OffsetCheckpoint:
    """One checkpoint file.

    Threads: `read` at start; the rest by one thread at a time, which owns `_written` (what the file holds, so that an
    unchanged checkpoint costs no fsync every five seconds) and `_uncertain` (a write failed, maybe after the rename:
    the file holds what it held before, or what it should hold).
    """

    __slots__ = ("_files", "_uncertain", "_written", "path")

    def __init__(self, path: Path, files: Files) -> None:
        self.path = path
        self._files = files
        self._written: Mapping[TopicPartition, int] | None = None
        self._uncertain = False

    def read(self) -> dict[TopicPartition, int]:
        """The offsets; empty if there is no file. Raises CorruptCheckpointError, OSError."""
        try:
            size_bytes = self._files.size(self.path)
            if size_bytes > MAX_CHECKPOINT_BYTES:
                raise CorruptCheckpointError(f"{self.path}: {size_bytes} bytes; at most {MAX_CHECKPOINT_BYTES}")
            data = self._files.read_bytes(self.path)
        except FileNotFoundError:
            return {}
        try:
            offsets = decode_offsets(data)
        except CorruptCheckpointError as error:
            raise CorruptCheckpointError(f"{self.path}: {error}") from None
        self._written = offsets
        return offsets

    def write(self, offsets: Mapping[TopicPartition, int]) -> bool:
        """Replace the file, durably; False if it held just this. Raises OSError: the old file stands, or the new one.

        The mapping is kept: it must not change afterwards.
        """
        if offsets == self._written and not self._uncertain:
            return False
        self._uncertain = True
        self._files.write_atomically(self.path, encode_offsets(offsets))
        self._written = offsets
        self._uncertain = False
        return True

    @property
    def exists(self) -> bool:
        """Whether there may be such a file."""
        return self._uncertain or self._written is not None

    def has(self, partition: TopicPartition) -> bool:
        """Whether the file may have an entry for the partition."""
        return self._uncertain or (self._written is not None and partition in self._written)


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    """A checkpoint's text, in the order of the mapping."""
    lines = [f"{topic} {partition} {offset}\n" for (topic, partition), offset in offsets.items()]
    return f"0\n{len(lines)}\n{''.join(lines)}".encode("ascii")


def decode_offsets(data: bytes) -> dict[TopicPartition, int]:
    """The entries of a checkpoint's text. Raises CorruptCheckpointError, which names the line."""
    if not data:
        return {}
    try:
        lines = data.decode("ascii").split("\n")
    except UnicodeDecodeError as error:
        raise CorruptCheckpointError(f"byte {error.start} is not ASCII") from None
    if lines[-1] == "":
        lines.pop()
    if lines[0] != "0":
        raise CorruptCheckpointError(f"line 1: version {lines[0][:20]!r}; only 0 is known")
    if len(lines) < 2:
        raise CorruptCheckpointError("line 2: the number of entries is missing")
    count = _number(lines[1], _MAX_INT32, 2)
    if count != len(lines) - 2:
        raise CorruptCheckpointError(f"says {count} entries and has {len(lines) - 2}")
    offsets: dict[TopicPartition, int] = {}
    for number, line in enumerate(lines[2:], start=3):
        fields = line.split(" ")
        if len(fields) != 3 or not 0 < len(fields[0]) <= _MAX_TOPIC_LENGTH:
            raise CorruptCheckpointError(f"line {number}: not a topic, a partition and an offset: {line[:80]!r}")
        offsets[fields[0], _number(fields[1], _MAX_INT32, number)] = _number(fields[2], _MAX_INT64, number)
    return offsets


def _number(text: str, maximum: int, line_number: int) -> int:
    # isdecimal: int() would also take "+1", " 1" and "1_0".
    if len(text) <= 19 and text.isdecimal() and (value := int(text)) <= maximum:
        return value
    raise CorruptCheckpointError(f"line {line_number}: {text[:40]!r} is not a number from 0 to {maximum}")
