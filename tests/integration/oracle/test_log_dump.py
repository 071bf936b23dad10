"""Kafka's own DumpLogSegments reads our files without complaint: data, indexes, producers, transactions."""

from pathlib import Path

import pytest

from tests.support.java import run_java
from tests.support.partition_logs import START_MS, append, end_transaction, open_log

pytestmark = pytest.mark.java

COMPLAINTS = ("mismatch", "corrupt", "not found", "out of order", "should be", "error", "invalid", "non-consecutive")


def written(directory: Path) -> list[Path]:
    log = open_log(directory, segment_bytes=20_000, index_interval_bytes=1000)
    for number in range(300):
        # Times that go back now and then, so that the time index has more to say than the offset index.
        timestamp_ms = START_MS + number + number * 7 % 50
        append(log, b"%d" % number, b"x" * (number % 40), timestamp_ms=timestamp_ms, codec=number % 5)
    for number in range(20):
        append(log, b"i", b"j", b"k", producer_id=9, producer_epoch=1, base_sequence=3 * number)
    for producer_id, aborted in ((10, True), (11, False)):
        fields = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
        append(log, b"in a transaction", timestamp_ms=START_MS + 1000, **fields)
        end_transaction(log, producer_id, aborted=aborted)
    append(log, b"big" * 5000, leader_epoch=4, timestamp_ms=START_MS + 2000)
    log.close()
    return sorted(path for path in directory.iterdir() if path.suffix.endswith(("log", "index", "snapshot")))


@pytest.mark.parametrize(
    ("bundle", "tool"),
    [("kafka-3.9", "kafka.tools.DumpLogSegments"), ("kafka-4.3", "org.apache.kafka.tools.DumpLogSegments")],
)
@pytest.mark.parametrize("option", ["--print-data-log", "--index-sanity-check", "--verify-index-only"])
def test_kafkas_tool_has_no_complaint(tmp_path: Path, bundle: str, tool: str, option: str) -> None:
    paths = written(tmp_path / "visits-0")

    printed = run_java(tool, [option, "--files", ",".join(map(str, paths))], bundle=bundle)

    lines = printed.splitlines()
    complaints = [line for line in lines if any(word in line.lower() for word in COMPLAINTS)]
    assert complaints == []
    assert all(f"Dumping {path}" in lines for path in paths)
    if option == "--print-data-log":
        assert sum("| offset:" in line for line in lines) == 300 * 2 + 20 * 3 + 2 * 2 + 1
        assert any("producerId: 10 firstOffset: 660" in line for line in lines)
    if option == "--index-sanity-check":
        assert f"{paths[0].with_suffix('.index')} passed sanity check." in lines
