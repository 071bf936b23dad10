"""Lakes for tests, made without Spark: entries that say what they are told, and files whose rows are numbered."""

from collections.abc import Iterable
from pathlib import Path

import pyarrow
import pyarrow.parquet

from kavka.pipeline.lake.commit import APPEND, Commit
from kavka.pipeline.lake.entries import DataFile, OffsetRange
from kavka.pipeline.lake.layout import ARCHIVE, Layout
from kavka.pipeline.lake.manifest import Manifest
from kavka.pipeline.lake.partition_spec import BY_DATE

TOPIC = "visits"
COLUMNS = (
    ("topic", "string"),
    ("partition", "int32"),
    ("offset", "int64"),
    ("timestamp", "timestamp[us, tz=UTC]"),
    ("value", "binary"),
)
SCHEMA = pyarrow.schema(
    [
        ("topic", pyarrow.string()),
        ("partition", pyarrow.int32()),
        ("offset", pyarrow.int64()),
        ("timestamp", pyarrow.timestamp("us", "UTC")),
        ("value", pyarrow.binary()),
    ]
)
DAY_US = 86_400_000_000
FIRST_DAY_US = 20_000 * DAY_US
"""2024-10-04."""


def rows(offsets: Iterable[int], partition: int = 0, topic: str = TOPIC, seconds_apart: int = 1) -> pyarrow.Table:
    """Rows with these offsets: so far apart from the first day on, and values that tell where they are from."""
    listed = list(offsets)
    return pyarrow.table(
        {
            "topic": [topic] * len(listed),
            "partition": [partition] * len(listed),
            "offset": listed,
            "timestamp": [FIRST_DAY_US + offset * seconds_apart * 1_000_000 for offset in listed],
            "value": [f"{topic}-{partition}-{offset}".encode() for offset in listed],
        },
        schema=SCHEMA,
    )


def entry(path: str, start: int, end: int, partition: int = 0, sequence: int = 1, topic: str = TOPIC) -> DataFile:
    """The entry of a file with the rows of these offsets."""
    return DataFile(
        path=path,
        rows=end - start,
        size_bytes=(end - start) * 10,
        spec_id=0,
        schema_id=0,
        partition={"date": "2024-10-04"},
        offsets={topic: {partition: OffsetRange(start, end - 1, end - start)}},
        min_timestamp_us=FIRST_DAY_US + start * 1_000_000,
        max_timestamp_us=FIRST_DAY_US + (end - 1) * 1_000_000,
        sequence=sequence,
    )


def append(manifest: Manifest, start: int, end: int, partition: int = 0, query: str = "q") -> Commit:
    """Commit one file with these offsets as the query's next batch. The file itself is not written."""
    state = manifest.refresh()
    sequence = state.sequence + 1
    progress = state.queries.get(query)
    begun = progress.ranges.get(TOPIC, {}).get(partition, (start, start))[0] if progress is not None else start
    change = Commit(
        version=0,
        kind=APPEND,
        time_ms=0,
        query=query,
        batch=progress.batch + 1 if progress is not None else 0,
        sequence=sequence,
        ranges={TOPIC: {partition: (begun, end)}},
        specs={} if state.specs else {0: BY_DATE},
        schemas={} if state.schemas else {0: COLUMNS},
        add=(entry(f"data/date=2024-10-04/part-{sequence:020}-00000.parquet", start, end, partition, sequence),),
    )
    return manifest.commit(change, ARCHIVE)


def new_manifest(lake: Path) -> Manifest:
    """A manifest in a folder that has none."""
    manifest = Manifest(Layout(lake))
    manifest.create()
    return manifest


def written_lake(lake: Path, batches: Iterable[tuple[int, int, int]]) -> Manifest:
    """A lake with a file of rows for each batch: partition, first offset, end."""
    manifest = new_manifest(lake)
    for partition, start, end in batches:
        path = lake / append(manifest, start, end, partition).add[0].path
        path.parent.mkdir(parents=True, exist_ok=True)
        pyarrow.parquet.write_table(rows(range(start, end), partition), path)
    return manifest
