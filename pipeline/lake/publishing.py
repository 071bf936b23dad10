"""A batch's staged files made part of the lake: renamed to their names, and then one version of the manifest. No Spark.

Names come from the lake's count of batches and the files' order, so that a batch that comes again after a crash has the
same names: what an earlier attempt left is deleted before, as an orphan. No file is ever overwritten.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import unquote

from kavka.pipeline.lake.commit import APPEND, Commit, Ranges, Schema
from kavka.pipeline.lake.entries import NO_VALUE, DataFile
from kavka.pipeline.lake.errors import LakeError
from kavka.pipeline.lake.footers import Footer, read_footer
from kavka.pipeline.lake.layout import ARCHIVE, Layout, part_name
from kavka.pipeline.lake.linking import link_new
from kavka.pipeline.lake.manifest import Manifest, VersionTakenError
from kavka.pipeline.lake.partition_spec import PartitionSpec
from kavka.pipeline.lake.state import LakeState
from kavka.storage.files import Files

Value = TypeVar("Value")

STAGED_LEVEL: Final = "_kavka_"
"""Staged files lie in folders `_kavka_0=VALUE`, `_kavka_1=VALUE` ..., one level for each field of the spec."""

STEPS: Final = ("staging", "staged", "renaming", "renamed", "manifest", "committed")
"""What an observer is told of, in this order; `renaming` comes before each file."""


@dataclass(frozen=True)
class StagedFile:
    """A file that Spark wrote, and what is in it. `levels` are its folders' values, as they stand in their names."""

    path: Path
    levels: tuple[str, ...]
    footer: Footer


def staged_files(folder: Path, spec: PartitionSpec) -> list[StagedFile]:
    """What lies in a staging folder, in the order of names; files without rows are left out.

    Raises LakeError for a file that is not as the archive writes it, OSError.
    """
    found = []
    for path in sorted(folder.rglob("*.parquet")) if folder.is_dir() else []:
        *folders, name = path.relative_to(folder).parts
        # Spark's tasks write below `_temporary`, and a zombie may go on doing so.
        if name.startswith((".", "_")) or "_temporary" in folders:
            continue
        levels = tuple(
            each.removeprefix(f"{STAGED_LEVEL}{number}=")
            for number, each in enumerate(folders)
            if each.startswith(f"{STAGED_LEVEL}{number}=")
        )
        if len(levels) != len(folders) or len(levels) != len(spec.fields):
            raise LakeError(f"{path}: it does not lie in the folders of {spec.to_json()}")
        footer = read_footer(path)
        if footer.rows:
            found.append(StagedFile(path, levels, footer))
    return found


def fsync_staged(staged: Iterable[StagedFile], root: Path, files: Files) -> None:
    """Make files durable where they are, and the folders' names between them and `root`'s own. Raises OSError."""
    folders = {root, root.parent}
    for each in staged:
        files.fsync_file(each.path)
        folders.update(folder for folder in each.path.parents if folder.is_relative_to(root))
    for folder in sorted(folders, reverse=True):
        files.fsync_directory(folder)


class Publisher:
    """Makes staged files part of a lake whose lock the caller has. Owned by one thread."""

    def __init__(self, layout: Layout, manifest: Manifest, files: Files, reached: Callable[[str], None]) -> None:
        """`reached` is called with each of `STEPS` from `renaming` on, before it is done (`committed`: after)."""
        self._layout = layout
        self._manifest = manifest
        self._files = files
        self._reached = reached

    def publish(self, staged: list[StagedFile], spec: PartitionSpec, query: str, batch: int) -> Commit:
        """Rename, then commit. Raises LakeError where the batch goes back behind what its query archived; OSError.

        LakeError, too, where another archive writes the lake, which its lock should have kept out: nothing is changed.
        """
        state = self._manifest.refresh()
        ranges = ranges_after(state, staged, query, batch)
        sequence = state.sequence + 1
        paths = [self._renamed(each, number, spec, sequence) for number, each in enumerate(staged)]
        self._fsync_folders(paths, staged)
        self._reached("renamed")
        while True:
            change = _change(self._manifest.state, staged, paths, spec)
            self._reached("manifest")
            try:
                made = self._manifest.commit(Commit(0, APPEND, 0, query, batch, sequence, ranges, *change), ARCHIVE)
            except VersionTakenError:
                # A compaction was first: it changes nothing of what this batch adds. An archive would.
                if self._manifest.refresh().sequence + 1 != sequence:
                    raise LakeError(f"{self._layout.lake}: another archive writes here, in spite of the lock") from None
                continue
            self._reached("committed")
            return made

    def _renamed(self, each: StagedFile, number: int, spec: PartitionSpec, sequence: int) -> str:
        """The path of the file in the lake, to which it was renamed."""
        self._reached("renaming")
        levels = [f"{field.name}={value}" for field, value in zip(spec.fields, each.levels, strict=True)]
        path = "/".join(("data", *levels, part_name(sequence, number)))
        target = self._layout.lake / path
        self._files.makedirs(target.parent)
        self._files.fsync_file(each.path)
        try:
            link_new(self._files, each.path, target)
        except FileExistsError:
            raise LakeError(
                f"{target}: it is there, and was not when this archive began: another one writes here, in spite of the "
                "lock; if none does, start this one anew, or move the file away where no version names it"
            ) from None
        self._files.unlink(each.path)
        return path

    def _fsync_folders(self, paths: Iterable[str], staged: Iterable[StagedFile]) -> None:
        """Make the names durable, and those of the folders that they lie in; then that the staged ones are gone."""
        folders = {(self._layout.lake / path).parent for path in paths}
        for folder in list(folders):
            folders.update(each for each in folder.parents if each.is_relative_to(self._layout.lake))
        left = {each.path.parent for each in staged}
        for folder in (*sorted(folders, reverse=True), *sorted(left)):
            self._files.fsync_directory(folder)


def ranges_after(state: LakeState, staged: Iterable[StagedFile], query: str, batch: int) -> Ranges:
    """How far the query has come with these files, of the topic-partitions in them. Raises LakeError."""
    found: dict[str, dict[int, tuple[int, int]]] = {}
    for topic, partition, first, end in _ranges(staged):
        known = found.setdefault(topic, {}).get(partition, (first, end))
        found[topic][partition] = (min(known[0], first), max(known[1], end))
    progress = state.queries.get(query)
    for topic, partitions in found.items() if progress is not None else ():
        for partition, (first, end) in partitions.items():
            own = progress.ranges.get(topic, {}).get(partition) if progress is not None else None
            if own is not None and first < own[1]:
                raise LakeError(
                    f"offset {first} of {topic}-{partition} comes in batch {batch}, and the query has archived up to "
                    f"{own[1]}: either the topic was made anew, which needs another lake, or the checkpoint is an old "
                    "copy, which is to be deleted: the archive then goes on by its manifest"
                )
            if own is not None:
                partitions[partition] = (own[0], end)
    return found


def _ranges(staged: Iterable[StagedFile]) -> Iterator[tuple[str, int, int, int]]:
    for each in staged:
        for topic, partitions in each.footer.offsets.items():
            for partition, offsets in partitions.items():
                yield topic, partition, offsets.first, offsets.last + 1


def _change(
    state: LakeState, staged: list[StagedFile], paths: list[str], spec: PartitionSpec
) -> tuple[dict[int, PartitionSpec], dict[int, Schema], tuple[DataFile, ...]]:
    """New specs, new schemas and the entries, with ids that fit the state."""
    specs, schemas = dict(state.specs), dict(state.schemas)
    spec_id = id_in(specs, spec)
    entries = tuple(
        entry(path, each.footer, spec, each.levels, (spec_id, id_in(schemas, each.footer.schema)), state.sequence + 1)
        for path, each in zip(paths, staged, strict=True)
    )
    new_specs = {key: value for key, value in specs.items() if key not in state.specs}
    return new_specs, {key: value for key, value in schemas.items() if key not in state.schemas}, entries


def entry(
    path: str, footer: Footer, spec: PartitionSpec, levels: Iterable[str], ids: tuple[int, int], sequence: int
) -> DataFile:
    """The manifest's entry of a file; `ids` are those of its spec and schema."""
    values = [None if value == NO_VALUE else unquote(value) for value in levels]
    return DataFile(
        path=path,
        rows=footer.rows,
        size_bytes=footer.size_bytes,
        spec_id=ids[0],
        schema_id=ids[1],
        partition={field.name: value for field, value in zip(spec.fields, values, strict=True)},
        offsets=footer.offsets,
        min_timestamp_us=footer.min_timestamp_us,
        max_timestamp_us=footer.max_timestamp_us,
        sequence=sequence,
    )


def id_in(known: dict[int, Value], value: Value) -> int:
    """The id of a value, which is given one where it has none."""
    for key, each in known.items():
        if each == value:
            return key
    key = max(known, default=-1) + 1
    known[key] = value
    return key
