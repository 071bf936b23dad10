"""What the broker and a worker process say to each other: JSON, one message a line.

to the worker     {"clean": job}   {"bytes_per_second": n}   {"abort": token}
from the worker   {"group": ...}   {"done": ...}   {"failed": ...}, one of the last two a job
"""

import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from kavka.storage.log_answers import AbortedTransaction

CORRUPT: Final = "corrupt"
"""The log holds what can't be: it isn't tried again."""
DISK: Final = "disk"
"""A system call failed; `errno` says how."""
GONE: Final = "gone"
"""A segment isn't there any more: deleted meanwhile."""
ABORTED: Final = "aborted"
BROKEN: Final = "broken"
"""The worker's own fault."""


class CleanJob(NamedTuple):
    """One round over one log. Times in milliseconds."""

    topic: str
    partition: int
    folder: str
    token: str
    """Makes the names of this round's `.cleaned` files its own."""
    segments: list[tuple[int, int]]
    """(base offset, size in bytes) of the segments that may be replaced, from the log's first one on."""
    first_dirty_offset: int
    end_offset: int
    """Where the cleanable part ends: a segment's base offset."""
    aborted: list[AbortedTransaction]
    """Those that touch the segments."""
    producers: list[tuple[int, int, int]]
    """(producer id, last data offset or -1, epoch) of the producers that are known."""
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    index_bytes: int
    index_interval_bytes: int
    map_bytes: int
    map_load_factor: float
    chunk_bytes: int
    """How much is read at a time."""
    bytes_per_second: float


class CleanedGroup(NamedTuple):
    """Segments that can be replaced by one new one, whose files are on the disk."""

    replaced: list[int]
    """Base offsets; the new segment has the first one's."""
    suffixes: list[str]
    """Of the new segment's files, without the token."""
    size_bytes: int
    max_timestamp_ms: int
    max_timestamp_offset: int


class CleanedLog(NamedTuple):
    """The end of a round."""

    clean_offset: int
    """Everything below is clean now."""
    bytes_read: int
    """In both passes: for the map, and to clean."""
    bytes_cleaned: int
    """Read to clean."""
    bytes_written: int
    records_read: int
    records_kept: int
    keyless_records: int
    map_entries: int
    map_most_entries: int
    map_ms: int
    clean_ms: int


class CleaningFailed(NamedTuple):
    """The round has ended early. The groups before are done."""

    cause: str
    reason: str
    errno: int = 0


Reply = CleanedGroup | CleanedLog | CleaningFailed
_REPLIES: Final[dict[str, type[CleanedGroup] | type[CleanedLog] | type[CleaningFailed]]] = {
    "group": CleanedGroup,
    "done": CleanedLog,
    "failed": CleaningFailed,
}


def encode_job(job: CleanJob) -> bytes:
    """A line for the worker."""
    return json.dumps({"clean": job._asdict()}).encode() + b"\n"


def encode_rate(bytes_per_second: float) -> bytes:
    return json.dumps({"bytes_per_second": bytes_per_second}).encode() + b"\n"


def encode_abort(token: str) -> bytes:
    """For the job with that token, if it still runs."""
    return json.dumps({"abort": token}).encode() + b"\n"


def decode_job(fields: dict[str, Any]) -> CleanJob:
    """The job in a message to the worker."""
    fields["segments"] = [tuple(segment) for segment in fields["segments"]]
    fields["producers"] = [tuple(producer) for producer in fields["producers"]]
    fields["aborted"] = [AbortedTransaction(*entry) for entry in fields["aborted"]]
    return CleanJob(**fields)


def encode_reply(reply: Reply) -> bytes:
    """A line for the broker."""
    name = next(name for name, kind in _REPLIES.items() if isinstance(reply, kind))
    return json.dumps({name: reply._asdict()}).encode() + b"\n"


def decode_reply(line: bytes) -> Reply:
    """Raises ValueError for what isn't one: the worker's memory was broken, or somebody else wrote."""
    try:
        [(name, fields)] = json.loads(line).items()
        return _REPLIES[name](**fields)
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"no reply of a worker: {line[:200]!r}") from error


def cleaned_name(base_offset: int, suffix: str, token: str) -> str:
    """The name of a file that isn't finished, or not taken over yet."""
    return f"{base_offset:020d}{suffix}.{token}.cleaned"


def cleaned_names(group: CleanedGroup, token: str) -> Sequence[str]:
    return [cleaned_name(group.replaced[0], suffix, token) for suffix in group.suffixes]
