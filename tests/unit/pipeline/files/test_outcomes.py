"""How transactions ended is found out without holding a whole log open."""

from pathlib import Path

import pytest

from kavka.pipeline.files.errors import LogEndsError
from kavka.pipeline.files.isolation import READ_COMMITTED
from kavka.pipeline.files.outcomes import Outcomes
from kavka.pipeline.files.partition_reader import read
from kavka.storage.partition_log import PartitionLog
from tests.support.partition_logs import append, end_transaction, open_files_in, open_log


def _write(log: PartitionLog, value: bytes, producer_id: int, sequence: int) -> None:
    append(log, value, producer_id=producer_id, producer_epoch=0, base_sequence=sequence, transactional=True)


def _values(directory: Path, start: int, end: int) -> list[bytes | None]:
    batches = read([str(directory)], "visits", 0, start, end, READ_COMMITTED, ["value"])
    return [row["value"] for batch in batches for row in batch.to_pylist()]


def test_a_log_without_snapshots_does_not_hold_all_its_segments_open(tmp_path: Path) -> None:
    folder = tmp_path / "visits-0"
    log = open_log(folder, segment_bytes=100)
    _write(log, b"aborted far behind", 1, 0)
    _write(log, b"open", 2, 0)
    for number in range(60):
        append(log, b"%d" % number)
    end_transaction(log, 1, aborted=True)
    _write(log, b"aborted", 1, 1)
    end_transaction(log, 1, aborted=True)
    end = log.log_end_offset
    log.close()
    assert len(list(folder.glob("*.log"))) > 60
    for snapshot in folder.glob("*.snapshot"):
        snapshot.unlink()
    outcomes = Outcomes(folder, range(end))
    assert len(open_files_in(folder)) <= 40
    with pytest.raises(LogEndsError, match="producer 2 began at 1:"):
        outcomes.aborted()
    outcomes.close()
    log = open_log(folder, segment_bytes=100)
    end_transaction(log, 2, aborted=False)
    log.close()
    for snapshot in folder.glob("*.snapshot"):
        snapshot.unlink()
    outcomes = Outcomes(folder, range(end - 2, end + 1))
    assert len(open_files_in(folder)) <= 4
    outcomes.close()
    plain = [b"%d" % number for number in range(60)]
    assert _values(tmp_path, 0, end) == [b"open", *plain]
    for start in range(0, end, 7):
        read_from = _values(tmp_path, start, end)
        assert read_from == [b"open", *plain][max(start - 1, 0) :]
