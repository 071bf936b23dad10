"""Rolls and loads that the disk refuses: nothing stays open, and nothing is left that a start would trip over."""

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from kavka.storage.append_result import AppendError
from kavka.storage.files import Files
from kavka.storage.partition_log import PartitionLog
from kavka.storage.segment import Segment
from tests.support.compaction import roll
from tests.support.partition_logs import append, open_files_in, open_log, read_all, topic_config

SMALL, LARGE = 300, 100_000


class Unsized(Files):
    """Files whose size can't be told, while `refuses` says so: a new segment's file is there by then."""

    refuses = False

    def descriptor_size(self, fd: int) -> int:
        if self.refuses:
            raise OSError(errno.EIO, "broken")
        return super().descriptor_size(fd)


def refused_creation(log: PartitionLog, _monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(log.files, Unsized)
    log.files.refuses = True


def refused_sealing(_log: PartitionLog, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: Segment) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(Segment, "seal", refused)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("refuse", [refused_creation, refused_sealing])
def test_a_refused_roll_leaves_nothing_behind(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    refuse: Callable[[PartitionLog, pytest.MonkeyPatch], None],
    clean: bool,
) -> None:
    files = Unsized()
    log = open_log(tmp_path, files=files, segment_bytes=SMALL)
    append(log, b"before" * 30)
    with monkeypatch.context() as patched:
        refuse(log, patched)
        with pytest.raises(AppendError):
            append(log, b"refused" * 30)
    files.refuses = False
    assert open_logs_in(tmp_path) == ["00000000000000000000.log"]
    log.update_config(topic_config(segment_bytes=LARGE))
    append(log, b"in the old segment" * 30)
    given = read_all(log)
    assert len(given) == 2

    log.close(clean=clean)

    assert open_logs_in(tmp_path) == []
    log = open_log(tmp_path, clean=clean)
    assert read_all(log) == given
    log.close()


@pytest.mark.parametrize("index", ["offset_index", "time_index", "transaction_index"])
def test_a_segment_is_not_sealed_by_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, index: str) -> None:
    log = open_log(tmp_path, index_interval_bytes=0)
    append(log, b"one")
    active = log.published[2][-1]

    def refused(_: object) -> bool:
        raise OSError(errno.ENOSPC, "no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(type(getattr(active, index)), "save", refused)
        with pytest.raises(OSError, match="no space"):
            active.seal()
    append(log, b"two")
    append(log, b"three")

    roll(log)

    assert [value for _, value in read_all(log)] == [b"one", b"two", b"three"]
    log.close()


def test_a_segment_that_is_begun_anew_while_it_is_empty_stays_open_once(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for _ in range(3):
        roll(log)
    assert open_logs_in(tmp_path) == ["00000000000000000000.log"]
    log.close()
    assert open_logs_in(tmp_path) == []


def test_a_log_that_cannot_be_loaded_stays_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(tmp_path)
    append(log, b"one")
    log.close()

    def refused(*_: object) -> None:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr("kavka.storage.loading.LoadedLog._settle", refused)
    with pytest.raises(OSError, match="broken"):
        open_log(tmp_path)
    assert open_logs_in(tmp_path) == []


def open_logs_in(directory: Path) -> list[str]:
    """The `.log` files that are open there, each descriptor by itself."""
    names = (path.rpartition("/")[2] for path in open_files_in(directory))
    return sorted(name for name in names if ".log" in name)
