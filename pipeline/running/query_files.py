"""What lies in a streaming query's checkpoint, read without Spark: its id, its last batch, and its offsets.

Spark's format (OffsetSeqLog, CommitLog, StreamMetadata): a file a batch, `v1`, then a line of JSON for the metadata,
and one for each source; `-` stands for a source that has none.
"""

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kavka.storage.files import Files

MOST_BYTES: Final = 64 * 1024 * 1024


class CheckpointError(Exception):
    """A checkpoint's file cannot be understood: the text names it."""


@dataclass(frozen=True)
class QueryFiles:
    """How far a query has come."""

    query_id: str
    planned: int
    """The last batch that was begun; -1: none."""
    committed: int
    """The last batch that was done; -1: none."""
    offsets: dict[str, dict[int, int]]
    """By topic and partition, where the batch after the last committed one begins; empty: none was committed."""


def read_query_files(folder: Path) -> QueryFiles | None:
    """None where there is no checkpoint. Raises CheckpointError, OSError."""
    metadata = folder / "metadata"
    if not metadata.is_file():
        return None
    try:
        query_id = json.loads(_read(metadata))["id"]
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{metadata}: {error}") from None
    committed = _last(folder / "commits")
    offsets = _offsets(folder / "offsets" / str(committed)) if committed >= 0 else {}
    return QueryFiles(str(query_id), _last(folder / "offsets"), committed, offsets)


def keep_plan(folder: Path, batch_id: int, files: Files) -> None:
    """Make durable which offsets a batch has, before anything is done by it. Raises OSError where that is not there.

    Spark leaves it to the page cache. After a power cut it would plan the batch anew, with other rows under its number,
    for which sinks that keep what a batch came to have a result already: the rest would be in none.
    """
    _keep(folder / "offsets" / str(batch_id), files)
    if batch_id > 0:
        with suppress(FileNotFoundError):
            # Without it the batch before comes once more.
            _keep(folder / "commits" / str(batch_id - 1), files)
    files.fsync_directory(folder)


def _keep(path: Path, files: Files) -> None:
    files.fsync_file(path)
    with suppress(FileNotFoundError):
        files.fsync_file(path.with_name(f".{path.name}.crc"))
    files.fsync_directory(path.parent)


def _last(folder: Path) -> int:
    if not folder.is_dir():
        return -1
    return max((int(path.name) for path in folder.iterdir() if path.name.isdecimal()), default=-1)


def _offsets(path: Path) -> dict[str, dict[int, int]]:
    lines = _read(path).splitlines()
    try:
        if lines[0] != "v1":
            raise ValueError(f"format {lines[0][:20]!r} is not known")
        source = json.loads(lines[2]) if lines[2] != "-" else {}
        return {
            str(topic): {int(number): int(offset) for number, offset in partitions.items()}
            for topic, partitions in source.items()
        }
    except (IndexError, ValueError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{path}: {error}") from None


def _read(path: Path) -> str:
    with path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise CheckpointError(f"{path}: more than {MOST_BYTES} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise CheckpointError(f"{path}: {error}") from None
