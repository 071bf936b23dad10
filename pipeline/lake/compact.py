"""Small files made large ones, beside an archive that goes on: no Spark, and readers see either the old or the new.

One compaction at a time works on a lake, under a lock of its own. For each folder's small files one large one is
written and renamed, and then one version of the manifest replaces them: that is the only moment at which anything
changes. The archive's commits may come between; then the same is tried on top of them. Files that were replaced stay
for readers of older versions until they are `keep_hours` old, and are deleted then (vacuum), with orphans and what was
staged.
"""

import contextlib
import os
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Final

from kavka.pipeline.lake.commit import REPLACE, VACUUM, Commit
from kavka.pipeline.lake.entries import DataFile
from kavka.pipeline.lake.errors import LakeError, ManifestError
from kavka.pipeline.lake.footers import read_footer
from kavka.pipeline.lake.layout import ARCHIVE, COMPACT, Layout, compact_name, lake_folder
from kavka.pipeline.lake.linking import link_new
from kavka.pipeline.lake.lock import COMPACTING, LakeLock
from kavka.pipeline.lake.manifest import HOUR_MS, Manifest, VersionTakenError, now_ms
from kavka.pipeline.lake.merging import merge, mixes
from kavka.pipeline.lake.recovery import delete_leftovers
from kavka.storage.files import Files

TARGET_BYTES: Final = 128 << 20
KEEP_HOURS: Final = 24
MOST_FILES: Final = 100
"""So many files become one at the most: each is open meanwhile."""

STEPS: Final = ("merging", "renaming", "manifest", "committed", "vacuuming")
"""What an observer is told of, each before it is done (`committed`: after)."""


@dataclass
class Compacted:
    """What a compaction did. `orphans` lay there and counted for nothing."""

    files_before: int = 0
    files_after: int = 0
    size_bytes: int = 0
    deleted: int = 0
    orphans: int = 0


class Compaction:
    """One compaction of a lake. Owned by one thread."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        target_bytes: int = TARGET_BYTES,
        keep_hours: int = KEEP_HOURS,
        *,
        compression: str = "zstd",
        files: Files | None = None,
        clock_ms: Callable[[], int] = now_ms,
        reached: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Files below half of `target_bytes` are put together until they have it. Raises LakeError without a lake."""
        self._layout = Layout(lake_folder(os.fspath(path)).absolute())
        if not self._layout.manifest.is_dir():
            raise LakeError(f"{path}: there is no lake (no folder {self._layout.manifest})")
        self._files = files or Files()
        self._clock_ms = clock_ms
        self._manifest = Manifest(self._layout, self._files, clock_ms)
        self._target_bytes, self._keep_ms = target_bytes, keep_hours * HOUR_MS
        self._compression = compression
        self._reached = reached
        self._done = Compacted()

    def run(self) -> Compacted:
        """Compact and vacuum. Raises LakeLockedError where another compaction runs, ManifestError, OSError."""
        lock = LakeLock(self._layout.compact_lock)
        lock.take(COMPACTING)
        try:
            self._manifest.create()
            self._done.orphans += len(delete_leftovers(self._layout, self._manifest.refresh(), COMPACT, self._files))
            for group in self._groups():
                self._compact(group)
            self._vacuum()
            self._manifest.checkpoint_if_due(COMPACT, self._keep_ms)
        finally:
            lock.release()
        return self._done

    def _groups(self) -> list[list[DataFile]]:
        """Small files that become one, of one folder and one schema each."""
        small = [each for each in self._manifest.state.files.values() if each.size_bytes < self._target_bytes // 2]
        found = []
        for _, alike in groupby(sorted(small, key=_order), key=_kind):
            found += [group for group in self._cut(alike) if len(group) > 1]
        return found

    def _cut(self, alike: Iterable[DataFile]) -> Iterator[list[DataFile]]:
        group: list[DataFile] = []
        for each in alike:
            size = sum(other.size_bytes for other in group) + each.size_bytes
            if group and (size > self._target_bytes or len(group) == MOST_FILES or mixes(each, group)):
                yield group
                group = []
            group.append(each)
        yield group

    def _compact(self, group: list[DataFile]) -> None:
        layout, sequence = self._layout, self._manifest.state.replaced + 1
        staged = layout.staging(COMPACT) / f"{uuid.uuid4().hex}.parquet"
        staged.parent.mkdir(parents=True, exist_ok=True)
        self._reached("merging")
        merge(layout.lake, group, staged, self._compression)
        made = self._entry(staged, group, sequence)
        target = layout.lake / made.path
        self._reached("renaming")
        self._files.fsync_file(staged)
        try:
            link_new(self._files, staged, target)
        except FileExistsError:
            raise LakeError(f"{target}: it is there: another compaction works here, in spite of the lock") from None
        self._files.unlink(staged)
        for folder in (target.parent, staged.parent):
            self._files.fsync_directory(folder)
        change = Commit(0, REPLACE, 0, sequence=sequence, add=(made,), remove=tuple(each.path for each in group))
        self._commit(change)
        self._done.files_before += len(group)
        self._done.files_after += 1
        self._done.size_bytes += made.size_bytes

    def _entry(self, staged: Path, group: list[DataFile], sequence: int) -> DataFile:
        """The new file's, which holds what the old ones held. Raises ManifestError where it does not."""
        footer, like = read_footer(staged), group[0]
        if footer.rows != sum(each.rows for each in group):
            raise ManifestError(f"{self._layout.lake / like.path}: rows got lost when it was put together with others")
        folder = like.path.rpartition("/")[0]
        return DataFile(
            path=f"{folder}/{compact_name(sequence, 0)}",
            rows=footer.rows,
            size_bytes=footer.size_bytes,
            spec_id=like.spec_id,
            schema_id=like.schema_id,
            partition=like.partition,
            offsets=footer.offsets,
            min_timestamp_us=footer.min_timestamp_us,
            max_timestamp_us=footer.max_timestamp_us,
        )

    def _commit(self, change: Commit) -> None:
        """On top of whatever the archive commits meanwhile, which removes no file."""
        while True:
            self._manifest.refresh()
            self._reached("manifest")
            with contextlib.suppress(VersionTakenError):
                self._manifest.commit(change, COMPACT)
                break
        self._reached("committed")

    def _vacuum(self) -> None:
        """Delete what was replaced long enough ago; and what the archive left, where no archive runs."""
        self._reached("vacuuming")
        limit_ms = self._clock_ms() - self._keep_ms
        old = [path for path, removed_ms in self._manifest.refresh().removed.items() if removed_ms <= limit_ms]
        for path in old:
            # Deleted first: who is killed here finds them in the manifest, and deletes what is left.
            with contextlib.suppress(FileNotFoundError):
                self._files.unlink(self._layout.lake / path)
        if old:
            self._commit(Commit(0, VACUUM, 0, forget=tuple(old)))
        self._done.deleted += len(old)
        lock = LakeLock(self._layout.lock)
        if lock.try_take(COMPACTING):
            try:
                self._done.orphans += len(
                    delete_leftovers(self._layout, self._manifest.refresh(), ARCHIVE, self._files)
                )
            finally:
                lock.release()


def _kind(each: DataFile) -> tuple[int, int, str]:
    return each.spec_id, each.schema_id, each.path.rpartition("/")[0]


def _order(each: DataFile) -> tuple[tuple[int, int, str], int, str]:
    return _kind(each), each.sequence, each.path
