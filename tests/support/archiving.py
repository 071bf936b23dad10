"""A stream into a lake as a job has it: a folder of row files, one batch each, and the archive's sink by foreachBatch.

    python -m tests.support.archiving SOURCE LAKE CHECKPOINT STEP COUNT

runs it in a process of its own, which kills itself (kill -9) when it reaches STEP for the COUNTth time.
"""

import hashlib
import os
import signal
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow
import pyarrow.dataset
import pyarrow.parquet
from pyspark.sql import DataFrame, SparkSession

from kavka.pipeline.lake.archive import ArchiveSink, archive_settings
from kavka.pipeline.lake.lake import Lake
from kavka.pipeline.running.sink import RunContext
from kavka.pipeline.running.tables import Table
from tests.support.lakes import SCHEMA, rows
from tests.support.spark_session import spark_session

DDL = "topic string, partition int, offset bigint, timestamp timestamp, value binary"


class Counts:
    """What a sink reports. Owned by one thread."""

    def __init__(self) -> None:
        self.counters: dict[str, int] = {}
        self.notes: list[str] = []

    def add(self, counter: str, amount: int) -> None:
        self.counters[counter] = self.counters.get(counter, 0) + amount

    def note(self, text: str) -> None:
        self.notes.append(text)


def run_context(spark: SparkSession, checkpoint: Path, query_id: str, report: Counts | None = None) -> RunContext:
    """What a job gives its sink."""
    return RunContext(
        spark=spark,
        job="job",
        name="archive",
        query_id=query_id,
        checkpoint=checkpoint,
        directory=checkpoint.parent / "notes",
        client_settings={},
        source={},
        report=report or Counts(),
    )


def write_source(folder: Path, batches: int, rows_each: int = 40) -> None:
    """A file for each batch: rows of three partitions, in the order of offsets, on two days where there are many."""
    folder.mkdir(parents=True)
    for batch in range(batches):
        offsets = range(batch * rows_each, (batch + 1) * rows_each)
        # 1,800 seconds apart, so that a day has 48 rows of a partition.
        tables = [rows(offsets, partition, seconds_apart=1800) for partition in range(3)]
        path = folder / f"{batch:05}.parquet"
        pyarrow.parquet.write_table(pyarrow.concat_tables(tables), path)
        # Spark takes files in the order of their times.
        os.utime(path, (1_700_000_000 + batch, 1_700_000_000 + batch))


def archive(
    spark: SparkSession,
    source: Path,
    lake: Path,
    checkpoint: Path,
    reached: Callable[[str], None] | None = None,
    files_per_batch: int = 1,
    **settings: object,
) -> Counts:
    """Run the stream until all that is there has been archived."""
    sink = ArchiveSink(archive_settings(Table({"path": str(lake), **settings})), reached=reached)
    report = Counts()
    stream = spark.readStream.schema(DDL).option("maxFilesPerTrigger", files_per_batch).parquet(str(source))
    opened: list[RunContext] = []

    def write(batch: DataFrame, batch_id: int) -> None:
        if not opened:
            query_id = str(batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId"))
            opened.append(run_context(spark, checkpoint, query_id, report))
            sink.open(opened[0])
        sink.write(batch, batch_id)

    writer = stream.writeStream.foreachBatch(write).option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    try:
        query.awaitTermination()
    finally:
        query.stop()
        sink.close()
    return report


def row_hash(table: pyarrow.Table) -> str:
    """Of all rows, in the order of topic, partition and offset."""
    ordered = table.select(SCHEMA.names).cast(SCHEMA)
    ordered = ordered.sort_by([(name, "ascending") for name in ("topic", "partition", "offset")])
    digest = hashlib.sha256()
    for row in ordered.to_pylist():
        digest.update(repr(row).encode())
    return f"{table.num_rows} rows, {digest.hexdigest()}"


def source_hash(folder: Path) -> str:
    """Of the rows that are to be in the lake."""
    return row_hash(pyarrow.parquet.read_table(folder))


def lake_hash(lake: Path) -> str:
    """Of the rows that a reader of the manifest finds."""
    return row_hash(Lake(lake).to_arrow())


def listed_hash(lake: Path) -> str:
    """Of the rows that a plain listing of the folder finds."""
    return row_hash(pyarrow.dataset.dataset(sorted(map(str, lake.glob("data/**/*.parquet")))).to_table())


def kill_at(step: str, count: int) -> Callable[[str], None]:
    """An observer that ends this process by kill -9 when it hears of the step for the `count`th time."""
    left = [count]

    def reached(found: str) -> None:
        left[0] -= found == step
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return reached


def main(arguments: Iterable[str]) -> None:
    source, lake, checkpoint, step, count = arguments
    with spark_session(Path(checkpoint).parent / "spark") as spark:
        archive(spark, Path(source), Path(lake), Path(checkpoint), kill_at(step, int(count)))


if __name__ == "__main__":
    main(sys.argv[1:])
