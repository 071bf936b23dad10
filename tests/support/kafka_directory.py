"""A small log directory as Apache Kafka 3.9.2 on ZooKeeper left it after a clean stop, and what Kafka says is in it.

`visits`: three partitions, idempotent and plain batches, all codecs, headers, a null value, a committed and an aborted
transaction. `keyed.table`: compacted by Kafka's cleaner. `__transaction_state`: two partitions.
`kafka-3.9-dump.txt` is what `DumpLogSegments --print-data-log` prints about `visits` and `keyed.table`.
"""

import tarfile
from pathlib import Path

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
KAFKA_STOPPED_MS = 1_795_260_408_000
DUMPED = (
    "visits-0/00000000000000000000.log",
    "visits-0/00000000000000000000.timeindex",
    "visits-0/00000000000000000047.snapshot",
    "visits-1/00000000000000000000.index",
    "visits-1/00000000000000000000.log",
    "visits-1/00000000000000000000.timeindex",
    "visits-1/00000000000000000000.txnindex",
    "visits-1/00000000000000000011.snapshot",
    "keyed.table-0/00000000000000000000.log",
    "keyed.table-0/00000000000000000090.log",
    "keyed.table-0/00000000000000000120.snapshot",
)


def extract_kafka_directory(target: Path) -> Path:
    """Unpack the directory at `target`, and return that."""
    with tarfile.open(GOLDEN / "kafka-3.9-log-dir.tar.gz") as archive:
        archive.extractall(target, filter="data")
    return target


def kafkas_dump() -> list[str]:
    """The lines that Kafka's tool prints about the files in `DUMPED`, in that order."""
    return (GOLDEN / "kafka-3.9-dump.txt").read_text().splitlines()
