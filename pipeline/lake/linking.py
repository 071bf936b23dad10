"""A file given a name that nobody has taken: what is there is never overwritten."""

import contextlib
import os
from pathlib import Path

from kavka.storage.files import Files


def link_new(files: Files, source: str | Path, target: str | Path) -> None:
    """Link the file to its name. Raises FileExistsError where another file has that name, OSError."""
    try:
        files.link(source, target)
    except FileExistsError:
        # NFS: a request that was done, and is sent again because its answer got lost, finds its own work.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(files.stat(source), files.stat(target)):
                return
        raise
