"""A lake with rows of one topic, as the archive would have left it, made without Spark; and a replay of it that dies.

`python -m tests.support.sample_lake BOOTSTRAP LAKE TARGET NAME STEP TIMES`: kills itself at the step, as by kill -9.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import pyarrow
import pyarrow.parquet

from kavka.pipeline.lake.commit import Commit
from kavka.pipeline.lake.entries import DataFile, OffsetRange
from kavka.pipeline.lake.layout import ARCHIVE, Layout
from kavka.pipeline.lake.manifest import Manifest
from kavka.pipeline.lake.partition_spec import BY_DATE
from kavka.pipeline.sending.marked_producer import Transactions
from kavka.pipeline.sending.replaying import Replay, replay
from tests.support.dying_writer import FIRST_MS, HEADERS, dying_at

TOPIC = "visits"
SCHEMA = pyarrow.schema(
    [
        ("topic", pyarrow.string()),
        ("partition", pyarrow.int32()),
        ("offset", pyarrow.int64()),
        ("timestamp", pyarrow.timestamp("us", "UTC")),
        ("key", pyarrow.binary()),
        ("value", pyarrow.binary()),
        ("headers", HEADERS),
    ]
)
FILES_A_BATCH = 2


def row(partition: int, offset: int, first_ms: int = FIRST_MS) -> dict[str, object]:
    """A row as it was archived: some have no key, some no value, some a header."""
    return {
        "topic": TOPIC,
        "partition": partition,
        "offset": offset,
        "timestamp": (first_ms + 1000 * offset + partition) * 1000 + 7,
        "key": None if offset % 5 == 4 else b"key-%d" % (offset % 3),
        "value": None if offset % 7 == 6 else b"%d-%d" % (partition, offset),
        "headers": [{"key": "n", "value": b"%d" % offset}] if offset % 4 == 0 else None,
    }


def sample_lake(
    path: Path, batches: Sequence[Sequence[int]], partitions: int = 2, first_ms: int = FIRST_MS
) -> list[dict[str, object]]:
    """Make it: of each batch's offsets two files that overlap, in no order; all rows by partition and offset."""
    manifest = Manifest(Layout(path))
    manifest.create()
    rows: list[dict[str, object]] = []
    for number, offsets in enumerate(batches):
        files = []
        for part in range(FILES_A_BATCH):
            own = [
                row(p, o, first_ms) for p in range(partitions) for o in reversed(offsets) if o % FILES_A_BATCH == part
            ]
            if own:
                files.append(
                    _file(path, f"data/date=2023-11-14/part-{number:020d}-{part:05d}.parquet", own, number + 1)
                )
                rows += own
        ranges = {TOPIC: dict.fromkeys(range(partitions), (batches[0][0], offsets[-1] + 1))}
        schema = tuple((field.name, str(field.type)) for field in SCHEMA)
        change = Commit(0, "append", 0, "archive", number, number + 1, ranges, {1: BY_DATE}, {1: schema}, tuple(files))
        manifest.commit(change, ARCHIVE)
    return sorted(rows, key=lambda each: (str(each["partition"]), int(str(each["offset"]))))


def _file(lake: Path, path: str, rows: list[dict[str, object]], sequence: int) -> DataFile:
    (lake / path).parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows, SCHEMA), lake / path)
    offsets: dict[int, list[int]] = {}
    for each in rows:
        offsets.setdefault(int(str(each["partition"])), []).append(int(str(each["offset"])))
    times = [int(str(each["timestamp"])) for each in rows]
    ranges = {each: OffsetRange(min(found), max(found), len(found)) for each, found in offsets.items()}
    size = (lake / path).stat().st_size
    return DataFile(
        path, len(rows), size, 1, 1, {"date": "2023-11-14"}, {TOPIC: ranges}, min(times), max(times), sequence
    )


def replay_of(bootstrap: str, lake: Path, target: str, name: str = "again") -> Replay:
    """Seven rows a transaction."""
    settings = {"bootstrap.servers": bootstrap}
    return Replay(lake, TOPIC, target, settings, name, transactions=Transactions(20_000, rows=7))


if __name__ == "__main__":
    dying = replay_of(sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4])
    print(replay(dying._replace(on_step=dying_at(sys.argv[5], int(sys.argv[6])))))
