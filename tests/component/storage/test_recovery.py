"""A log opens after a crash or with damaged files, and has lost nothing that could be told from the batches."""

from pathlib import Path
from typing import Any

import pytest

from kavka.storage.files import AnyPath
from kavka.storage.partition_log import PartitionLog
from tests.support.kafka_directory import extract_kafka_directory
from tests.support.partition_logs import (
    START_MS,
    append,
    batch_of,
    cut,
    end_transaction,
    open_log,
    read_all,
    spoil,
)
from tests.support.tidy_files import TidyFiles

FIRST = "00000000000000000000"
BATCH_BYTES = len(batch_of(b"0"))


def filled(directory: Path, batches: int = 6, **settings: Any) -> PartitionLog:
    log = open_log(directory, **settings)
    for number in range(batches):
        append(log, b"%d" % number)
    return log


def values(log: PartitionLog) -> list[bytes | None]:
    return [value for _, value in read_all(log)]


@pytest.mark.parametrize("by", [*range(1, BATCH_BYTES, 7), BATCH_BYTES])
@pytest.mark.parametrize("clean", [False, True])
def test_a_torn_last_batch_goes_and_all_before_it_stays(tmp_path: Path, by: int, clean: bool) -> None:
    filled(tmp_path).close()
    cut(tmp_path / f"{FIRST}.log", by)

    recovered = open_log(tmp_path, clean=clean)

    assert values(recovered) == [b"0", b"1", b"2", b"3", b"4"]
    assert append(recovered, b"next").first_offset == 5


@pytest.mark.parametrize("position", [0, 8, 16, 18, 22, 60, BATCH_BYTES - 1])
def test_a_log_ends_at_its_first_bad_batch(tmp_path: Path, position: int) -> None:
    filled(tmp_path).close(clean=False)
    spoil(tmp_path / f"{FIRST}.log", 3 * BATCH_BYTES + position)

    recovered = open_log(tmp_path, clean=False)

    assert values(recovered)[:3] == [b"0", b"1", b"2"]
    assert recovered.log_end_offset == 3
    assert recovered.cut_bytes == 3 * BATCH_BYTES
    assert (tmp_path / f"{FIRST}.log").stat().st_size == 3 * BATCH_BYTES


def test_segments_behind_a_bad_batch_are_dropped(tmp_path: Path) -> None:
    filled(tmp_path, 12, segment_bytes=3 * BATCH_BYTES).close(clean=False)
    spoil(tmp_path / f"{3:020d}.log", BATCH_BYTES + 25)

    recovered = open_log(tmp_path, clean=False, segment_bytes=3 * BATCH_BYTES)

    assert values(recovered) == [b"0", b"1", b"2", b"3"]
    assert sorted(path.name for path in tmp_path.glob("*.log")) == [f"{FIRST}.log", f"{3:020d}.log"]


def test_segments_below_the_recovery_point_are_not_read(tmp_path: Path) -> None:
    log = filled(tmp_path, 9, segment_bytes=3 * BATCH_BYTES)
    log.flush(6)
    log.close(clean=False)

    recovered = open_log(tmp_path, clean=False, recovery_point=log.recovery_point, segment_bytes=3 * BATCH_BYTES)

    assert log.recovery_point == 6
    assert recovered.recovered_segments == 1
    assert len(values(recovered)) == 9


@pytest.mark.parametrize("suffix", ["index", "timeindex", "txnindex"])
@pytest.mark.parametrize("damage", ["missing", "torn", "garbage"])
@pytest.mark.parametrize("base_offset", [0, 4])
def test_a_damaged_index_is_built_again_and_no_record_is_lost(
    tmp_path: Path, suffix: str, damage: str, base_offset: int
) -> None:
    settings: dict[str, Any] = {"segment_bytes": 4 * BATCH_BYTES + 50, "index_interval_bytes": 0}
    log = open_log(tmp_path, **settings)
    for number in range(2):
        append(log, b"%d" % number, timestamp_ms=START_MS + number)
    append(log, b"2", producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)
    end_transaction(log, 5, aborted=True)
    for number in range(4, 7):
        append(log, b"%d" % number, timestamp_ms=START_MS + number)
    aborted = log.aborted_transactions(0, 7)
    log.close()
    path = tmp_path / f"{base_offset:020d}.{suffix}"
    good = path.read_bytes() if path.exists() else None
    damaged = {"missing": None, "torn": (good or b"")[:-3] + b"x", "garbage": b"\xff" * 68}[damage]
    path.unlink(missing_ok=True)
    if damaged is not None:
        path.write_bytes(damaged)

    recovered = open_log(tmp_path, clean=True, **settings)

    assert values(recovered) == [b"0", b"1", b"2", b"4", b"5", b"6"]
    if damage != "missing" or suffix != "txnindex":
        # A transaction index that isn't there is what most segments have: nothing tells that it is lost.
        assert recovered.aborted_transactions(0, 7) == aborted
    for number in (4, 5, 6):
        found = recovered.offset_for_time(START_MS + number)
        assert found is not None
        assert found.offset == number
    recovered.close()
    if good is not None and suffix != "txnindex":
        assert path.read_bytes() == good


@pytest.mark.parametrize("damage", ["missing", "garbage"])
def test_lost_leader_epochs_are_read_from_the_batches(tmp_path: Path, damage: str) -> None:
    log = open_log(tmp_path, segment_bytes=2 * BATCH_BYTES)
    for number, epoch in enumerate([0, 0, 2, 2, 7]):
        append(log, b"%d" % number, leader_epoch=epoch)
    epochs = log.epochs.entries
    log.close()
    path = tmp_path / "leader-epoch-checkpoint"
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(b"0\nnonsense\n")

    recovered = open_log(tmp_path)

    assert recovered.epochs.entries == epochs == ((0, 0), (2, 2), (7, 4))


def test_leftovers_of_deletion_and_compaction_are_cleared(tmp_path: Path) -> None:
    filled(tmp_path).close()
    for name in (f"{FIRST}.log.deleted", f"{9:020d}.log.cleaned", f"{9:020d}.index", "leader-epoch-checkpoint.tmp"):
        (tmp_path / name).write_bytes(b"left over")

    recovered = open_log(tmp_path)

    assert len(values(recovered)) == 6
    assert not {path.suffix for path in tmp_path.iterdir()} & {".deleted", ".cleaned", ".tmp"}
    assert not (tmp_path / f"{9:020d}.index").exists()


def test_a_log_opens_while_a_worker_that_outlived_its_broker_takes_its_files_away(tmp_path: Path) -> None:
    filled(tmp_path).close()
    for suffix in ("log", "index", "timeindex"):
        (tmp_path / f"{FIRST}.{suffix}.0123456789abcdef.cleaned").touch()

    class FilesOfAWorker(TidyFiles):
        def listdir(self, path: AnyPath) -> list[str]:
            names = super().listdir(path)
            for cleaned in tmp_path.glob("*.cleaned"):
                cleaned.unlink()
            return names

    assert len(values(open_log(tmp_path, files=FilesOfAWorker()))) == 6


def test_a_finished_compaction_takes_the_place_of_its_segments(tmp_path: Path) -> None:
    filled(tmp_path, 6, segment_bytes=2 * BATCH_BYTES).close()
    # The cleaner kept the batches of offsets 1 and 3 of the first two segments.
    kept = (tmp_path / f"{FIRST}.log").read_bytes()[BATCH_BYTES:] + (tmp_path / f"{2:020d}.log").read_bytes()[
        BATCH_BYTES:
    ]
    (tmp_path / f"{FIRST}.log.swap").write_bytes(kept)

    recovered = open_log(tmp_path, segment_bytes=2 * BATCH_BYTES)

    assert values(recovered) == [b"1", b"3", b"4", b"5"]


@pytest.mark.parametrize("clean", [False, True])
@pytest.mark.parametrize("folder", ["visits-0", "visits-1", "visits-2", "keyed.table-0", "__transaction_state-1"])
def test_what_is_rebuilt_is_what_kafka_wrote_byte_for_byte(tmp_path: Path, folder: str, clean: bool) -> None:
    directory = extract_kafka_directory(tmp_path) / folder
    before = {path.name: path.read_bytes() for path in directory.iterdir() if path.suffix != ".deleted"}

    open_log(directory, clean=clean, producer_id_expiration_ms=1 << 60).close()

    after = {path.name: path.read_bytes() for path in directory.iterdir()}
    assert after == before


def test_an_empty_folder_and_a_start_beyond_the_end_begin_anew(tmp_path: Path) -> None:
    filled(tmp_path).close()

    moved = open_log(tmp_path, log_start_offset=100)

    assert (moved.log_start_offset, moved.log_end_offset) == (100, 100)
    assert append(moved, b"a").first_offset == 100


def test_an_empty_time_index_is_believed_after_a_clean_stop_as_kafka_does(tmp_path: Path) -> None:
    filled(tmp_path).close()
    (tmp_path / f"{FIRST}.timeindex").write_bytes(b"")

    opened = open_log(tmp_path, clean=True)

    assert opened.recovered_segments == 0
    assert opened.max_timestamp_offset() is None


def test_a_missing_time_index_is_rebuilt_after_a_clean_stop(tmp_path: Path) -> None:
    filled(tmp_path).close()
    (tmp_path / f"{FIRST}.timeindex").unlink()

    opened = open_log(tmp_path, clean=True)

    assert opened.recovered_segments == 1
    assert opened.max_timestamp_offset() is not None
