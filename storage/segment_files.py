"""The files of a log's folder at start: what is a segment, what a crash left half done.

X.deleted            a deletion whose delay a stop cut short: unlinked
X.cleaned            a compaction that wasn't finished: unlinked
X.swap               a compaction that was: takes the place of the segments that it covers
X.index without log  left over: unlinked
X.tmp                a checkpoint that wasn't renamed: unlinked
"""

from collections.abc import Iterable
from typing import Final

from kavka.protocol.records.errors import CorruptRecordsError
from kavka.storage.batch_scan import last_batch
from kavka.storage.files import TEMPORARY_SUFFIX, Files
from kavka.storage.segment import DELETED_SUFFIX, LOG_SUFFIX, SUFFIXES

CLEANED_SUFFIX: Final = ".cleaned"
SWAP_SUFFIX: Final = ".swap"
_INDEX_SUFFIXES: Final = SUFFIXES[1:]
_LEFT_OVER: Final = (DELETED_SUFFIX, CLEANED_SUFFIX, SWAP_SUFFIX, TEMPORARY_SUFFIX)


def tidy_folder(directory: str, files: Files) -> list[str]:
    """Finish or undo what a crash cut short; the names that are left. Raises OSError."""
    names = kept = files.listdir(directory)
    if not any(name.endswith(_LEFT_OVER) for name in names):
        return _drop_lone_indexes(directory, names, files)
    unfinished = [offset for name in names if name.endswith(CLEANED_SUFFIX) and (offset := _offset(name)) is not None]
    lowest_unfinished = min(unfinished, default=None)
    swaps = []
    for name in names:
        if name.endswith((DELETED_SUFFIX, CLEANED_SUFFIX, TEMPORARY_SUFFIX)):
            files.unlink(f"{directory}/{name}")
            kept = []
        elif name.endswith(SWAP_SUFFIX):
            offset = _offset(name)
            if offset is None or (lowest_unfinished is not None and offset >= lowest_unfinished):
                # The cleaner renames all of a group to .swap before it drops any .cleaned: the group is incomplete.
                files.unlink(f"{directory}/{name}")
            else:
                swaps.append(name)
            kept = []
    if swaps:
        _complete_swaps(directory, files, swaps)
    return _drop_lone_indexes(directory, kept or files.listdir(directory), files)


def base_offsets(names: Iterable[str]) -> list[int]:
    """Where the segments begin, ascending."""
    return sorted(offset for name in names if name.endswith(LOG_SUFFIX) and (offset := _offset(name)) is not None)


def _complete_swaps(directory: str, files: Files, swaps: list[str]) -> None:
    segments = base_offsets(files.listdir(directory))
    for name in swaps:
        final = name.removesuffix(SWAP_SUFFIX)
        base_offset = _offset(name)
        if final.endswith(LOG_SUFFIX) and base_offset is not None:
            end_offset = _end_offset(f"{directory}/{name}", base_offset, files)
            for replaced in segments:
                if base_offset <= replaced < end_offset:
                    _unlink_segment(directory, replaced, files)
    for name in sorted(swaps):
        files.rename(f"{directory}/{name}", f"{directory}/{name.removesuffix(SWAP_SUFFIX)}")
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


def _offset(name: str) -> int | None:
    digits = name.partition(".")[0]
    return int(digits) if len(digits) == 20 and digits.isdecimal() else None
