"""A streaming query of Spark that dies at a step: `python -m tests.support.dying_job WHAT BOOTSTRAP FOLDER STEP TIMES`.

WHAT: "write" copies topic `visits` to `copied`, eight rows a batch; "aggregate" counts its rows by key and hour in
`counted`. The process that does the step for the n-th time kills itself as by kill -9: the driver, or a worker of
Spark's. "none" has it go on to the end of what is there. A file in the folder counts over all processes and runs.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from kavka.pipeline import Transactions, WriteOptions, write
from kavka.pipeline.jobs.aggregate import AggregateSink
from kavka.pipeline.running.tables import Table
from tests.support.job_runs import Reports, run_of
from tests.support.spark_session import spark_session

SOURCE = "visits"
COPIED = "copied"
COUNTED = "counted"
TRANSACTIONS = Transactions(timeout_ms=20_000)


class DyingAt:
    """Kills its process at the step; picklable, as Spark's workers have one too."""

    def __init__(self, note: Path, step: str, times: int) -> None:
        self._note: Final = note
        self._step: Final = step
        self._times: Final = times

    def __call__(self, done: str) -> None:
        if done != self._step:
            return
        with self._note.open("ab") as file:
            file.write(b".")
            file.flush()
            seen = file.tell()
        if seen == self._times:
            os.kill(os.getpid(), signal.SIGKILL)


def run(spark: SparkSession, what: str, bootstrap: str, folder: Path, on_step: DyingAt) -> None:
    """Go on with what is there, until the end of it."""
    directory = folder / "notes"
    directory.mkdir(exist_ok=True)
    settings = {"bootstrap.servers": bootstrap}
    table = {"topic": COUNTED, "time": "timestamp", "window": "1h", "by": ["site"], "transaction_timeout": "20s"}
    sink = AggregateSink(Table(table), on_step)
    sink.open(run_of(spark, directory, bootstrap, "aggregate", Reports()))

    def batch(df: DataFrame, batch_id: int) -> None:
        if what == "write":
            options = WriteOptions(COPIED, partitions="source", transactions=TRANSACTIONS, on_step=on_step)
            write(df, batch_id, settings, options=options)
        else:
            sink.write(df.withColumn("site", df["key"].cast("string")), batch_id)

    stream = spark.readStream.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("subscribe", SOURCE)
    rows = stream.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", 8).load()
    query = rows.writeStream.foreachBatch(batch).option("checkpointLocation", str(folder / "checkpoint"))
    query.trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    where = Path(sys.argv[3])
    with spark_session(where / "spark") as session:
        run(session, sys.argv[1], sys.argv[2], where, DyingAt(where / "steps", sys.argv[4], int(sys.argv[5])))
