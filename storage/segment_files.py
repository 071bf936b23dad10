"""The files of a log's folder at start: what is a segment, what a crash left half done.

X.deleted            a deletion whose delay a stop cut short: unlinked
X.cleaned            a compaction that wasn't finished: unlinked
X.TOKEN.cleaned      the same, of our own cleaner, whose workers may outlive a broker, or the topic that had the name
                     before, by a moment: what is listed here may be gone before it is unlinked
X.log.swap           a compaction that was: takes the place of the segments that it covers
X.index.swap         goes with it; without it, it is unlinked, and the index built again where it is missing
X.index without log  left over: unlinked
X.tmp                a checkpoint that wasn't renamed: unlinked
"""

import contextlib
from collections.abc import Iterable
from typing import Final

from kavka.protocol.records.errors import CorruptRecordsError
from kavka.storage.batch_scan import last_batch
from kavka.storage.files import TEMPORARY_SUFFIX, Files
from kavka.storage.log_file_names import is_log_file
from kavka.storage.segment import DELETED_SUFFIX, LOG_SUFFIX, SUFFIXES

CLEANED_SUFFIX: Final = ".cleaned"
SWAP_SUFFIX: Final = ".swap"
_INDEX_SUFFIXES: Final = SUFFIXES[1:]
_LEFT_OVER: Final = (DELETED_SUFFIX, CLEANED_SUFFIX, SWAP_SUFFIX, TEMPORARY_SUFFIX)


def tidy_folder(directory: str, files: Files) -> list[str]:
    """Finish or undo what a crash cut short; the names that are left. Raises OSError."""
    names = kept = [name for name in files.listdir(directory) if is_log_file(name)]
    if not any(name.endswith(_LEFT_OVER) for name in names):
        return _drop_lone_indexes(directory, names, files)
    lowest_unfinished = min(map(_offset_of, (name for name in names if _is_kafkas_unfinished(name))), default=None)
    swaps = {
        offset
        for name in names
        if name.endswith(LOG_SUFFIX + SWAP_SUFFIX)
        and (offset := _offset(name)) is not None
        # Kafka splits a segment by renaming all parts to .swap before it drops any .cleaned: the group is incomplete.
        and (lowest_unfinished is None or offset < lowest_unfinished)
    }
    for name in names:
        is_swap = name.endswith(SWAP_SUFFIX) and _offset(name) in swaps
        if name.endswith(_LEFT_OVER):
            kept = []
            if not is_swap:
                with contextlib.suppress(FileNotFoundError):
                    files.unlink(f"{directory}/{name}")
    if swaps:
        _complete_swaps(directory, files, swaps)
    return _drop_lone_indexes(directory, kept or files.listdir(directory), files)


def base_offsets(names: Iterable[str]) -> list[int]:
    """Where the segments begin, ascending."""
    return sorted(offset for name in names if name.endswith(LOG_SUFFIX) and (offset := _offset(name)) is not None)


def _complete_swaps(directory: str, files: Files, swaps: Iterable[int]) -> None:
    segments = base_offsets(files.listdir(directory))
    for base_offset in swaps:
        log = f"{directory}/{base_offset:020d}{LOG_SUFFIX}"
        end_offset = _end_offset(log + SWAP_SUFFIX, base_offset, files)
        for replaced in segments:
            if base_offset <= replaced < max(end_offset, base_offset + 1):
                _unlink_segment(directory, replaced, files)
        # The .log comes last: without it, the others would be of no use after another crash.
        for suffix in reversed(SUFFIXES):
            path = f"{directory}/{base_offset:020d}{suffix}"
            if files.exists(path + SWAP_SUFFIX):
                files.rename(path + SWAP_SUFFIX, path)
    files.fsync_directory(directory)


def _end_offset(path: str, base_offset: int, files: Files) -> int:
    fd = files.open(path, read_only=True)
    try:
        last = last_batch(files, fd, 0, files.descriptor_size(fd))
    except CorruptRecordsError:
        last = None
    finally:
        files.close(fd)
    return base_offset if last is None else last.last_offset + 1


def _unlink_segment(directory: str, base_offset: int, files: Files) -> None:
    for suffix in SUFFIXES:
        path = f"{directory}/{base_offset:020d}{suffix}"
        if files.exists(path):
            files.unlink(path)


def _drop_lone_indexes(directory: str, names: list[str], files: Files) -> list[str]:
    present = set(names)
    lone = [
        name
        for name in names
        if name.endswith(_INDEX_SUFFIXES)
        and name.partition(".")[0] + LOG_SUFFIX not in present
        and _offset(name) is not None
    ]
    for name in lone:
        files.unlink(f"{directory}/{name}")
    return [name for name in names if name not in lone] if lone else names


def _is_kafkas_unfinished(name: str) -> bool:
    return name.endswith(tuple(suffix + CLEANED_SUFFIX for suffix in SUFFIXES)) and _offset(name) is not None


def _offset_of(name: str) -> int:
    return int(name.partition(".")[0])


def _offset(name: str) -> int | None:
    digits = name.partition(".")[0]
    return int(digits) if len(digits) == 20 and digits.isdecimal() else None
