"""A lake has one writer, and who is refused hears whose it is; a killed one's lock is free."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kavka.pipeline.lake.errors import LakeLockedError
from kavka.pipeline.lake.lock import LakeLock

HOLDER = """
import sys
from pathlib import Path
from kavka.pipeline.lake.lock import LakeLock
lock = LakeLock(Path(sys.argv[1]))
lock.take("query 7 of job visits")
print("taken", flush=True)
sys.stdin.read()
"""


def test_a_lock_says_whose_it_is_and_ends_with_a_killed_process(tmp_path: Path) -> None:
    path = tmp_path / "lake" / "_kavka" / "lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "taken\n"
    lock = LakeLock(path)
    with pytest.raises(
        LakeLockedError, match=rf"lake is being written by query 7 of job visits, process {holder.pid} "
    ):
        lock.take("query 8")

    os.kill(holder.pid, signal.SIGKILL)
    holder.communicate()
    lock.take("query 8")
    assert path.read_text().startswith(f"query 8, process {os.getpid()} on ")
    lock.release()


def test_two_sinks_of_one_process_are_two_owners(tmp_path: Path) -> None:
    first, second = LakeLock(tmp_path / "a" / "lock"), LakeLock(tmp_path / "a" / "lock")
    first.take("first")
    assert not second.try_take("second")
    first.release()
    assert second.try_take("second")
    second.release()
