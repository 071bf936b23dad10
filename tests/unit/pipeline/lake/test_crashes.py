"""The manifest on disks that lose power: whatever step that happens at, what was committed is there and whole."""

import contextlib
import random
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kavka.pipeline.lake.commit import REPLACE, VACUUM, Commit
from kavka.pipeline.lake.entries import OffsetRange
from kavka.pipeline.lake.footers import Footer
from kavka.pipeline.lake.layout import ARCHIVE, COMPACT, Layout, compact_name
from kavka.pipeline.lake.manifest import LEAST_VERSIONS, Manifest
from kavka.pipeline.lake.partition_spec import BY_DATE
from kavka.pipeline.lake.publishing import Publisher, StagedFile
from kavka.pipeline.lake.recovery import delete_leftovers
from kavka.storage.files import AnyPath
from tests.support.crash_tree import CrashTree
from tests.support.lakes import COLUMNS, TOPIC, entry

LAKE = Path("/lake")
ROWS = 5


class PowerCutError(BaseException):
    """The machine stopped: nothing runs after it."""


class CountedTree(CrashTree):
    """Stops before the call of a number: of those that change something on the disk."""

    left = -1

    def _count(self) -> None:
        if self.left == 0:
            raise PowerCutError
        self.left -= 1

    def fsync(self, fd: int) -> None:
        self._count()
        super().fsync(fd)

    def pwrite(self, fd: int, data: bytes | bytearray | memoryview, position: int) -> int:
        self._count()
        return super().pwrite(fd, data, position)

    def fsync_directory(self, path: AnyPath) -> None:
        self._count()
        super().fsync_directory(path)

    def _change(self, operation: tuple[Any, ...]) -> None:
        self._count()
        super()._change(operation)


def _reborn(tree: CrashTree) -> CountedTree:
    """The machine after it came back."""
    counted = CountedTree()
    counted.__dict__.update(tree.__dict__)
    counted.left = -1
    return counted


class Machine:
    """A machine with a lake on its disk, its programs, and what these were told is done."""

    def __init__(self) -> None:
        self.tree = CountedTree()
        self.batches = 0
        self.maybe = 0

    def cut_power(self, chance: random.Random | None) -> None:
        """None: kill -9, after which the page cache is still there."""
        self.tree = _reborn(self.tree.kill() if chance is None else self.tree.crash(chance))

    def manifest(self) -> Manifest:
        found = Manifest(Layout(LAKE), self.tree, clock_ms=lambda: 1000)
        found.refresh()
        return found

    def recover(self) -> Manifest:
        manifest = Manifest(Layout(LAKE), self.tree, clock_ms=lambda: 1000)
        manifest.create()
        for who in (ARCHIVE, COMPACT):
            delete_leftovers(manifest.layout, manifest.refresh(), who, self.tree)
        return manifest

    def append(self, files: int) -> None:
        """One batch of so many files, each of ROWS offsets of a partition of its own."""
        manifest = self.recover()
        layout = manifest.layout
        state = manifest.state
        batch = state.queries["q"].batch + 1 if state.queries else 0
        folder = layout.staging(ARCHIVE) / "attempt"
        self.tree.makedirs(folder)
        staged = []
        for number in range(files):
            path = folder / f"{number}.parquet"
            self.tree.write_file(path, _content(batch, number))
            first = batch * ROWS
            offsets = {TOPIC: {number: OffsetRange(first, first + ROWS - 1, ROWS)}}
            staged.append(StagedFile(path, ("2024-10-04",), Footer(ROWS, 8, COLUMNS, offsets, 1, 2)))
        self.maybe = batch + 1
        Publisher(layout, manifest, self.tree, lambda _: None).publish(staged, BY_DATE, "q", batch)
        self.batches = batch + 1
        manifest.checkpoint_if_due(ARCHIVE, 0)

    def compact(self) -> None:
        """Replace the two oldest files, and forget those that were replaced before."""
        manifest = self.recover()
        state, old = manifest.state, list(manifest.state.removed)
        for path in old:
            # Who was stopped before its commit has deleted them already.
            with contextlib.suppress(FileNotFoundError):
                self.tree.unlink(LAKE / path)
        if old:
            manifest.commit(Commit(0, VACUUM, 0, forget=tuple(old)), COMPACT)
        two = [each for each in state.files.values() if each.sequence][:2]
        if len(two) < 2:
            return
        layout, sequence = manifest.layout, state.replaced + 1
        staged = layout.staging(COMPACT) / "merged.parquet"
        path = f"data/date=2024-10-04/{compact_name(sequence, 0)}"
        self.tree.write_file(staged, b"".join(self.tree.read_bytes(LAKE / each.path) for each in two))
        self.tree.fsync_file(staged)
        self.tree.rename(staged, LAKE / path)
        for folder in ((LAKE / path).parent, staged.parent):
            self.tree.fsync_directory(folder)
        merged = entry(path, 0, two[0].rows + two[1].rows, partition=1000 + sequence, sequence=0)
        manifest.commit(
            Commit(0, REPLACE, 0, sequence=sequence, add=(merged,), remove=tuple(each.path for each in two)), COMPACT
        )
        manifest.checkpoint_if_due(COMPACT, 0)

    def check(self) -> None:
        """All batches that were committed are there once, whole; the one under way as well, or nothing of it."""
        state = self.manifest().state
        batches = state.queries["q"].batch + 1 if state.queries else 0
        assert self.batches <= batches <= max(self.batches, self.maybe)
        assert state.sequence == batches
        self.batches = self.maybe = batches
        there = b"".join(self.tree.read_bytes(LAKE / path) for path in state.files)
        pieces = sorted(there[at : at + 8] for at in range(0, len(there), 8))
        assert pieces == sorted(set(pieces)), "a file's rows are there twice"
        assert {piece[:4] for piece in pieces} == {b"%04d" % batch for batch in range(batches)}
        assert sum(each.rows for each in state.files.values()) == len(pieces) * ROWS

    def check_listing(self) -> None:
        """After recovery the folder has what the manifest names, and nothing else."""
        state = self.recover().state
        folder = LAKE / "data" / "date=2024-10-04"
        there = {f"data/date=2024-10-04/{name}" for name in self.tree.listdir(folder)}
        # A vacuum that was stopped has deleted files that the manifest still calls removed.
        assert {*state.files} <= there <= {*state.files, *state.removed}


def _content(batch: int, number: int) -> bytes:
    return b"%04d%04d" % (batch, number)


STEPS = st.tuples(
    st.sampled_from(["append", "append", "append", "compact"]),
    st.integers(1, 3),
    st.one_of(st.none(), st.integers(0, 60)),
    st.one_of(st.none(), st.integers(0, 2**32)),
)


@given(st.lists(STEPS, min_size=1, max_size=30))
def test_no_crash_loses_or_doubles_a_batch(steps: list[tuple[str, int, int | None, int | None]]) -> None:
    machine = Machine()
    machine.recover()
    for kind, files, calls, seed in steps:
        machine.tree.left = -1 if calls is None else calls
        try:
            machine.compact() if kind == "compact" else machine.append(files)
        except PowerCutError:
            machine.cut_power(None if seed is None else random.Random(seed))
            machine.recover()
        machine.tree.left = -1
        machine.check()
    machine.check_listing()


def test_manifests_do_not_grow_with_the_lake() -> None:
    """With nothing kept for readers of old versions, what is there is a checkpoint or two and the versions since."""
    machine = Machine()
    sizes = []
    for batch in range(60):
        machine.append(1)
        sizes.append(machine.tree.size(Layout(LAKE).commit(batch + 1)))
    names = machine.tree.listdir(Layout(LAKE).manifest)

    assert max(sizes[1:]) <= min(sizes[1:]) + 10, "a version says only what it changes"
    assert len([name for name in names if "checkpoint" in name]) == 2
    assert len(names) < 4 * LEAST_VERSIONS
    machine.check()
