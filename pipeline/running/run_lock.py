"""One run of a job at a time: the process that runs it holds a lock on a file beside its checkpoint."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

_LOOKS_S: Final = 1.0
"""Longer than anybody looks, on a busy machine too."""
_PAUSE_S: Final = 0.01


class RunningAlreadyError(Exception):
    """Another process runs the job."""


@contextmanager
def run_lock(file: Path) -> Iterator[None]:
    """Raises RunningAlreadyError, OSError. The kernel lets go of it whatever becomes of the process."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a+b") as held:
        try:
            _take(held)
        except BlockingIOError:
            held.seek(0)
            holder = held.read(32).decode(errors="replace").strip()
            raise RunningAlreadyError(f"the job runs already, as process {holder or 'of somebody'} ({file})") from None
        held.truncate(0)
        held.write(f"{os.getpid()}\n".encode())
        held.flush()
        yield


def _take(held: IO[bytes]) -> None:
    """Who only looks holds it shared, for less than a moment: that is waited for. Raises BlockingIOError."""
    deadline_s = time.monotonic() + _LOOKS_S
    while True:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline_s:
                raise
            time.sleep(_PAUSE_S)
        else:
            return


def is_running(file: Path) -> bool:
    """Whether a process holds it now."""
    try:
        with file.open("rb") as looked_at:
            fcntl.flock(looked_at, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False
