"""A log that others write to goes on growing: what is old is set aside, and what was set aside before goes."""

import os
import shutil
from pathlib import Path
from typing import Final

MOST_BYTES: Final = 32 << 20


def aside(log: Path) -> Path:
    """Where the older half is."""
    return log.with_name(f"{log.name}.1")


def keep_small(log: Path, most_bytes: int = MOST_BYTES) -> None:
    """Where the log has become longer, copy it to `aside`, and empty it: whoever appends to it goes on doing so.

    Lines that are written just then may be lost. Raises OSError.
    """
    try:
        if log.stat().st_size <= most_bytes:
            return
    except FileNotFoundError:
        return
    shutil.copyfile(log, aside(log))
    os.truncate(log, 0)
