"""A log that others write to goes on growing: what is old is set aside, and what was set aside before goes."""

import logging
import os
import shutil
from pathlib import Path
from typing import Final

MOST_BYTES: Final = 32 << 20

logger = logging.getLogger(__name__)


def aside(log: Path) -> Path:
    """Where the older half is."""
    return log.with_name(f"{log.name}.1")


def keep_small(log: Path, most_bytes: int = MOST_BYTES) -> None:
    """Where the log has become longer, copy it to `aside`, and empty it: whoever appends to it goes on doing so.

    Lines that are written just then may be lost; all, where there is no room for a copy. Raises OSError.
    """
    try:
        if log.stat().st_size <= most_bytes:
            return
    except FileNotFoundError:
        return
    try:
        shutil.copyfile(log, aside(log))
    except OSError as error:
        # Room is what emptying it makes: a job goes on without its old log.
        logger.warning("%s is not kept: %s", aside(log), error)
    os.truncate(log, 0)
