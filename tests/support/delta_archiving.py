"""Batches into a Delta table, in a Spark of its own with Delta's jars; prints how many rows are there after each.

python -m tests.support.delta_archiving DIRECTORY
"""

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from kavka.pipeline.lake.delta import EXTENSION, DeltaSink
from tests.support import maven
from tests.support.archiving import DDL, run_context
from tests.support.lakes import TOPIC, rows
from tests.support.spark_session import spark_session


def write(spark: SparkSession, directory: Path, query: str, batch: int, offsets: range) -> None:
    """One batch by a sink of its own, as after a restart."""
    sink = DeltaSink(str(directory / "table"))
    sink.open(run_context(spark, directory / query / "checkpoint", query))
    given = [(TOPIC, 0, offset, rows([offset])["timestamp"][0].as_py(), b"v") for offset in offsets]
    sink.write(spark.createDataFrame(given, DDL), batch)
    sink.close()
    print("rows", spark.read.format("delta").load(str(directory / "table")).count(), flush=True)


def main(directory: Path) -> None:
    jars = maven.resolve("delta-4.4").split(os.pathsep)
    settings = {
        "spark.jars": ",".join(jars),
        "spark.sql.extensions": EXTENSION,
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # Tables are tiny here: fifty tasks to put a version together take longer than all else.
        "spark.databricks.delta.snapshotPartitions": "1",
    }
    with spark_session(directory / "spark", settings) as spark:
        write(spark, directory, "first", 0, range(5))
        write(spark, directory, "first", 0, range(5))
        write(spark, directory, "second", 0, range(8))
        write(spark, directory, "second", 0, range(8))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
