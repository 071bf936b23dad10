"""A writer that dies at a step: `python -m tests.support.dying_writer BOOTSTRAP TARGET STEP TIMES`.

It writes the rows of `batch_of` as batch 7 of query "dying", two target partitions one after the other, and kills
itself as by kill -9 when the step is done for the n-th time; "none" has it end by itself.
"""

import os
import signal
import sys
from collections import Counter
from collections.abc import Callable

import pyarrow

from kavka.client import Admin
from kavka.pipeline.sending.marked_producer import Transactions
from kavka.pipeline.sending.marker_reading import NOTHING_READ
from kavka.pipeline.sending.markers import marker_place
from kavka.pipeline.sending.partition_task import PARTITION, TOPIC, PartitionTask
from kavka.pipeline.sending.steps import unwatched

ROWS = 40
FIRST_MS = 1_700_000_000_000
QUERY = "dying"
BATCH_ID = 7
HEADERS = pyarrow.list_(pyarrow.struct([("key", pyarrow.string()), ("value", pyarrow.binary())]))
COLUMNS = pyarrow.schema(
    [
        (TOPIC, pyarrow.string()),
        (PARTITION, pyarrow.int32()),
        ("key", pyarrow.binary()),
        ("value", pyarrow.binary()),
        ("timestamp", pyarrow.timestamp("us", "UTC")),
        ("headers", HEADERS),
    ]
)


def batch_of(target: str, partition: int, rows: int = ROWS, first: int = 0) -> pyarrow.RecordBatch:
    """Rows of one target partition: keys, values, times of their own; every third has a header."""
    numbers = range(first, first + rows)
    columns = {
        TOPIC: [target] * rows,
        PARTITION: [partition] * rows,
        "key": [b"key-%d" % number for number in numbers],
        "value": [b"%d-%d" % (partition, number) for number in numbers],
        "timestamp": [(FIRST_MS + number) * 1000 for number in numbers],
        "headers": [[{"key": "n", "value": b"%d" % number}] if number % 3 == 0 else None for number in numbers],
    }
    return pyarrow.RecordBatch.from_arrays(
        [pyarrow.array(columns[field.name], field.type) for field in COLUMNS], schema=COLUMNS
    )


def task(
    bootstrap: str, batch_id: int = BATCH_ID, rows: int = 0, on_step: Callable[[str], None] = unwatched
) -> PartitionTask:
    """What a driver gives to its tasks, as one does that has not read any marker."""
    settings = {"bootstrap.servers": bootstrap}
    with Admin(settings) as admin:
        place = marker_place(admin, settings)
    return PartitionTask(place, QUERY, batch_id, NOTHING_READ, Transactions(timeout_ms=20_000, rows=rows), on_step)


def dying_at(step: str, times: int) -> Callable[[str], None]:
    """Kills this process when the step is done for the n-th time."""
    seen: Counter[str] = Counter()

    def on_step(done: str) -> None:
        seen[done] += 1
        if done == step and seen[done] == times:
            os.kill(os.getpid(), signal.SIGKILL)

    return on_step


if __name__ == "__main__":
    writing = task(sys.argv[1], rows=15, on_step=dying_at(sys.argv[3], int(sys.argv[4])))
    for report in writing([batch_of(sys.argv[2], partition) for partition in (0, 1)]):
        print(report.to_pylist())
