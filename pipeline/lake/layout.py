"""Names in a lake's folder.

    data/date=2026-11-23/part-00000000000000000007-00000.parquet      of batch 7 of the archive, its first file
    data/date=2026-11-23/compact-00000000000000000002-00000.parquet   made by compaction 2
    _kavka/manifest/00000000000000000012.json                         version 12: what it changes
    _kavka/manifest/00000000000000000012.checkpoint.json              version 12: all that holds
    _kavka/staging/archive/, _kavka/staging/compact/                  what is not ready yet, of each by itself
    _kavka/lock, _kavka/compact.lock                                  who writes

Spark and pyarrow pass over names that begin with `_`, so that the lake's folder can be read as it is.
"""

import re
from pathlib import Path
from typing import Final

from kavka.pipeline.lake.errors import LakeError

ARCHIVE: Final = "archive"
COMPACT: Final = "compact"

_DIGITS: Final = 20
_VERSION_FILE: Final = re.compile(r"(\d{20})(\.checkpoint)?\.json")
_DATA_FILE: Final = re.compile(r"(part|compact)-\d{20}-\d{5,}\.parquet")
_URL: Final = re.compile(r"([a-z][a-z0-9+.-]+):/*(?=/|[^/])", re.IGNORECASE)
_KINDS: Final = {"part": ARCHIVE, "compact": COMPACT}


class Layout:
    """Where everything of one lake lies. Immutable."""

    def __init__(self, lake: Path) -> None:
        self.lake = lake
        self.data = lake / "data"
        self.own = lake / "_kavka"
        self.manifest = self.own / "manifest"
        self.lock = self.own / "lock"
        self.compact_lock = self.own / "compact.lock"

    def staging(self, who: str) -> Path:
        """The staging folder of `ARCHIVE` or `COMPACT`."""
        return self.own / "staging" / who

    def commit(self, version: int) -> Path:
        """The manifest's file of a version."""
        return self.manifest / f"{version:0{_DIGITS}}.json"

    def checkpoint(self, version: int) -> Path:
        """The manifest's file of all that holds at a version."""
        return self.manifest / f"{version:0{_DIGITS}}.checkpoint.json"


def part_name(sequence: int, number: int) -> str:
    """The name of a batch's file."""
    return f"part-{sequence:0{_DIGITS}}-{number:05}.parquet"


def compact_name(sequence: int, number: int) -> str:
    """The name of a compaction's file."""
    return f"compact-{sequence:0{_DIGITS}}-{number:05}.parquet"


def version_of(name: str) -> tuple[int, bool] | None:
    """Version of a manifest's file, and whether it is a checkpoint; None for another name."""
    found = _VERSION_FILE.fullmatch(name)
    return None if found is None else (int(found[1]), found[2] is not None)


def maker_of(name: str) -> str | None:
    """Whether `ARCHIVE` or `COMPACT` gave a data file its name; None: neither did."""
    found = _DATA_FILE.fullmatch(name)
    return None if found is None else _KINDS[found[1]]


def lake_folder(path: str) -> Path:
    """The lake's folder of a setting: a path, or a `file:` URL. Raises LakeError for other URLs."""
    found = _URL.match(path)
    if found is None:
        return Path(path)
    if found[1].lower() != "file":
        raise LakeError(
            f"{path}: a lake needs a file system with hard links and flock, as a path here, not {found[1]}:"
        )
    return Path("/" + path[found.end() :].lstrip("/"))
