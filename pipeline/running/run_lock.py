"""One run of a job at a time: the process that runs it holds a lock on a file beside its checkpoint."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class RunningAlreadyError(Exception):
    """Another process runs the job."""


@contextmanager
def run_lock(file: Path) -> Iterator[None]:
    """Raises RunningAlreadyError, OSError. The kernel lets go of it whatever becomes of the process."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a+b") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            held.seek(0)
            holder = held.read(32).decode(errors="replace").strip()
            raise RunningAlreadyError(f"the job runs already, as process {holder or 'of somebody'} ({file})") from None
        held.truncate(0)
        held.write(f"{os.getpid()}\n".encode())
        held.flush()
        yield


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
