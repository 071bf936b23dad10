"""After a crash: what was staged, and files that were renamed but are in no version of the manifest, are deleted.

Each of the two writers looks after its own, under its own lock: files of the other may be about to be committed. Names
that neither of them gives are never touched.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from kavka.pipeline.lake.layout import Layout, maker_of
from kavka.pipeline.lake.state import LakeState
from kavka.storage.files import Files


def delete_leftovers(layout: Layout, state: LakeState, who: str, files: Files) -> list[str]:
    """Delete what `who` (`ARCHIVE` or `COMPACT`) left in staging and what is orphaned; the orphans' paths.

    `who`'s lock is held, and the state is the newest. Raises OSError.
    """
    delete_staged(layout.staging(who), files)
    found = [path for path in _data_files(layout, files) if maker_of(path.name) == who]
    orphans = [path for path in found if not _is_known(str(path.relative_to(layout.lake)), state)]
    for path in orphans:
        files.unlink(path)
    return [str(path.relative_to(layout.lake)) for path in orphans]


def delete_staged(folder: Path, files: Files) -> None:
    """Delete what lies in a staging folder, whose owner's lock is held.

    Tasks of a driver that is gone may still write there: what they add meanwhile goes the next time.
    """
    for name in _listed(folder, files):
        path = folder / name
        if files.is_directory(path) and not files.is_link(path):
            delete_staged(path, files)
            with contextlib.suppress(OSError):
                files.rmdir(path)
        else:
            with contextlib.suppress(FileNotFoundError):
                files.unlink(path)


def _is_known(path: str, state: LakeState) -> bool:
    return path in state.files or path in state.removed


def _data_files(layout: Layout, files: Files) -> Iterator[Path]:
    folders = [layout.data]
    while folders:
        folder = folders.pop()
        for name in _listed(folder, files):
            path = folder / name
            # A folder's name may end as a file's does: it has a value of the rows.
            if "=" in name and files.is_directory(path) and not files.is_link(path):
                folders.append(path)
            elif name.endswith(".parquet"):
                yield path


def _listed(folder: Path, files: Files) -> list[str]:
    with contextlib.suppress(FileNotFoundError):
        return files.listdir(folder)
    return []
