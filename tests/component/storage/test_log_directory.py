"""One broker a directory, in this process and beyond; marks of a clean stop."""

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from kavka.storage.files import AnyPath, Files
from kavka.storage.log_directory import DirectoryInUseError, LogDirectory

HOLD = """
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def test_a_second_broker_of_this_process_is_refused(tmp_path: Path) -> None:
    first = LogDirectory(tmp_path, Files())
    first.lock()
    (tmp_path / "other").symlink_to(tmp_path)
    with pytest.raises(DirectoryInUseError, match="another broker of this process"):
        LogDirectory(tmp_path / "other", Files()).lock()
    first.unlock()
    again = LogDirectory(tmp_path, Files())
    again.lock()
    again.unlock()


def test_a_refused_second_broker_does_not_cost_the_first_its_lock(tmp_path: Path) -> None:
    first = LogDirectory(tmp_path, Files())
    first.lock()
    with pytest.raises(DirectoryInUseError):
        LogDirectory(tmp_path, Files()).lock()
    assert _another_process_can_lock(tmp_path) is False
    first.unlock()
    assert _another_process_can_lock(tmp_path) is True


def test_a_directory_that_another_process_holds_is_refused(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / ".lock")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        directory = LogDirectory(tmp_path, Files())
        with pytest.raises(DirectoryInUseError, match="locked by another process"):
            directory.lock()
    finally:
        holder.communicate("")
    directory.lock()
    directory.unlock()


def test_a_lock_that_could_not_be_taken_is_not_held(tmp_path: Path) -> None:
    (tmp_path / ".lock").mkdir()
    directory = LogDirectory(tmp_path, Files())
    with pytest.raises(IsADirectoryError):
        directory.lock()
    (tmp_path / ".lock").rmdir()
    directory.lock()
    directory.unlock()


def test_a_mark_of_a_clean_stop_is_taken_once(tmp_path: Path) -> None:
    directory = LogDirectory(tmp_path, Files())
    assert not directory.take_clean_shutdown_mark()
    directory.mark_clean(-1)
    assert (tmp_path / ".kafka_cleanshutdown").read_bytes() == b'{"version":0,"brokerEpoch":-1}'
    assert directory.take_clean_shutdown_mark()
    assert not directory.take_clean_shutdown_mark()


def test_the_empty_mark_of_an_older_kafka_counts(tmp_path: Path) -> None:
    (tmp_path / ".kafka_cleanshutdown").touch()
    assert LogDirectory(tmp_path, Files()).take_clean_shutdown_mark()


def test_a_mark_that_cannot_be_removed_is_an_error(tmp_path: Path) -> None:
    class ReadOnly(Files):
        @staticmethod
        def unlink(path: AnyPath) -> None:
            raise OSError(errno.EROFS, "read-only file system", str(path))

    directory = LogDirectory(tmp_path, ReadOnly())
    directory.mark_clean()
    with pytest.raises(OSError, match="read-only"):
        directory.take_clean_shutdown_mark()


class NotedFiles(Files):
    """Notes which folders are fsynced."""

    def __init__(self) -> None:
        self.fsynced: list[Path] = []

    def fsync_directory(self, path: AnyPath) -> None:
        self.fsynced.append(Path(path))


def test_a_start_after_a_kill_makes_durable_that_the_mark_is_gone_and_folders_came(tmp_path: Path) -> None:
    """Who was killed had taken the mark, or made a topic, and fsynced neither: what is acknowledged relies on it."""
    files = NotedFiles()

    assert not LogDirectory(tmp_path, files).take_clean_shutdown_mark()

    assert files.fsynced == [tmp_path]


def test_a_directory_that_is_made_outlives_a_power_cut(tmp_path: Path) -> None:
    files = NotedFiles()
    path = tmp_path / "data" / "logs"
    directory = LogDirectory(path, files)

    directory.lock()

    assert sorted(files.fsynced) == [tmp_path, tmp_path / "data"]
    directory.unlock()
    files.fsynced.clear()
    directory.lock()
    assert files.fsynced == []
    directory.unlock()


def _another_process_can_lock(directory: Path) -> bool:
    code = "import fcntl,sys; fcntl.lockf(open(sys.argv[1], 'w'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    result = subprocess.run([sys.executable, "-c", code, str(directory / ".lock")], capture_output=True, check=False)
    return result.returncode == 0
