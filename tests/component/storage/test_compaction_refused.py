"""A disk that refuses one step of a compaction and is well again afterwards: the next round finds all it needs."""

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from kavka.protocol.errors import BrokerError
from kavka.protocol.records.batch import Record, build_batch
from kavka.storage.cleaner.rounds import Outcome
from kavka.storage.files import AnyPath
from kavka.storage.log_passes import delete_old_segments
from kavka.storage.partition_log import PartitionLog
from tests.support.compaction import compact, records_of, roll
from tests.support.log_managers import FailingFiles
from tests.support.partition_logs import START_MS, Jobs, append_batch, batch_of, cut, end_transaction, open_log

KEYS = 3
REFUSED = {errno.ENOSPC: ("rename", "unlink"), errno.EMFILE: ("open", "fsync_directory")}


class RefusingFiles(FailingFiles):
    """Fails once, at the `step`th call of those that change the folder or open a file. Nothing is really fsynced."""

    def __init__(self) -> None:
        super().__init__()
        self.step = 0
        self.error = 0
        self.fsync = self._on_descriptor("fsync", lambda _: None)  # type: ignore[assignment]  # a double of one instance

    def refuse(self, step: int, error: int) -> None:
        self.step, self.error = step, error

    def fsync_directory(self, path: AnyPath) -> None:
        self._check("fsync_directory", str(path))

    def _check(self, operation: str, path: str) -> None:
        if operation in REFUSED.get(self.error, ()):
            self.step -= 1
            if self.step == 0:
                raise OSError(self.error, "refused once", path)


class Scene:
    """A compacted log with a few closed segments, `latest` value of each key known."""

    def __init__(self, folder: Path) -> None:
        self.files = RefusingFiles()
        self.jobs = Jobs()
        self.folder = folder
        self.latest: dict[bytes | None, bytes | None] = {}
        self.log = self.open(clean=True)
        self.write()

    def open(self, *, clean: bool) -> PartitionLog:
        return open_log(
            self.folder, clean=clean, files=self.files, jobs=self.jobs, cleanup_policy="compact", segment_bytes=200
        )

    def write(self) -> None:
        for number in range(3 * KEYS):
            key, value = b"key-%d" % (number % KEYS), b"value-%d" % self.log.log_end_offset
            append_batch(self.log, bytearray(build_batch([Record(0, START_MS, key, value)])))
            self.latest[key] = value
        roll(self.log)

    def refused_at(self, step: int, error: int) -> bool:
        """Run a round in which that step is refused; whether there was such a step."""
        self.files.refuse(step, error)
        try:
            compact(self.log)
        except BrokerError:
            assert self.jobs.failures == []
        return self.files.step <= 0

    def found(self, log: PartitionLog) -> dict[bytes | None, bytes | None]:
        return {record.key: record.value for record in records_of(log)}

    def names(self) -> list[str]:
        return [path.name for path in self.folder.iterdir() if path.suffix in (".swap", ".cleaned", ".deleted")]


def go_on(scene: Scene) -> None:
    """More is written, and compacted again."""
    scene.write()
    assert compact(scene.log).outcome is Outcome.CLEANED
    assert len(records_of(scene.log)) == KEYS
    scene.jobs.run_all()
    assert scene.names() == []


def crash(scene: Scene) -> None:
    """Nothing is done any more: the next start puts the files in order."""
    scene.log = scene.open(clean=False)
    offsets = [record.offset for record in records_of(scene.log)]
    assert offsets == sorted(set(offsets))


def cut_and_go_on(scene: Scene) -> None:
    """The last values are taken back; no segment that was replaced comes back with them."""
    scene.log.truncate_to(KEYS)
    crash(scene)
    assert scene.log.log_end_offset <= KEYS
    assert all(record.offset < KEYS for record in records_of(scene.log))
    scene.latest = {}
    scene.write()


def shorten(scene: Scene) -> None:
    """All of it goes."""
    scene.log.truncate_fully_and_start_at(0)
    scene.latest = {}
    scene.write()
    crash(scene)


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EMFILE], ids=["ENOSPC", "EMFILE"])
@pytest.mark.parametrize("follows", [go_on, crash, cut_and_go_on, shorten], ids=lambda follows: follows.__name__)
def test_a_step_that_is_refused_once_costs_a_round_and_nothing_else(
    tmp_path: Path, follows: Callable[[Scene], None], error: int
) -> None:
    step = 1
    while True:
        scene = Scene(tmp_path / f"{step}")
        if not scene.refused_at(step, error):
            break
        assert scene.found(scene.log) == scene.latest, f"step {step}"

        follows(scene)

        assert scene.found(scene.log) == scene.latest, f"step {step}"
        scene.log.close()
        assert scene.found(scene.open(clean=True)) == scene.latest, f"step {step}"
        step += 1
    assert step > 5


@pytest.mark.parametrize("suffix", [".index.swap", ".timeindex.swap", ".log.swap", "0002.log", "0004.log"])
@pytest.mark.parametrize("timestamp_ms", [START_MS, -1])
def test_a_swap_that_was_refused_is_finished_without_another_round(
    tmp_path: Path, suffix: str, timestamp_ms: int
) -> None:
    files, jobs = FailingFiles(), Jobs()
    log = open_log(tmp_path, files=files, jobs=jobs, cleanup_policy="compact,delete", index_interval_bytes=0)
    for number in range(6):
        append_batch(log, batch_of(b"%d" % number, key=b"k", timestamp_ms=timestamp_ms))
        if number % 2:
            roll(log)
    append_batch(log, batch_of(b"last", key=b"other", timestamp_ms=timestamp_ms))
    files.fail("rename", suffix, errno.ENOSPC)
    with pytest.raises(BrokerError):
        compact(log)
    assert log.swapped is not None

    # While it is refused, whoever looks at the log finds all files, and nothing takes its directory offline.
    newest = log.max_timestamp_offset()
    assert (newest is None) == (timestamp_ms < 0)
    log.offset_for_time(START_MS)
    assert delete_old_segments([log], START_MS, lambda: None) == 0
    assert [record.value for record in records_of(log)] == [b"5", b"last"]
    assert (jobs.failures, log.swapped is None) == ([], False)

    files.heal()
    delete_old_segments([log], START_MS, lambda: None)
    jobs.run_all()

    assert log.swapped is None
    names = {path.name for path in tmp_path.iterdir() if path.name.startswith("0")}
    assert not [name for name in names if name.endswith((".swap", ".deleted"))]
    assert sorted(name for name in names if name.endswith(".log")) == [f"{base:020d}.log" for base in log.published[3]]
    assert jobs.failures == []
    log.close()
    assert [record.value for record in records_of(open_log(tmp_path))] == [b"5", b"last"]


def test_a_transaction_index_that_is_damaged_while_the_log_is_used_ends_its_compaction(tmp_path: Path) -> None:
    log = open_log(tmp_path, jobs=Jobs(), cleanup_policy="compact")
    append_batch(log, batch_of(b"v", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True))
    end_transaction(log, 7, aborted=True)
    roll(log)
    cut(tmp_path / f"{0:020d}.txnindex", by=3)

    assert compact(log).outcome is Outcome.CORRUPT
