"""Spark for the pipeline's tests: one session per test process, on two threads of its own JVM.

The jars of Spark's own Kafka connector are in it, which is the reference for Kavka's data source. A session takes up to
ten seconds to start, so that everything in tests/integration/pipeline has the same one (fixture `spark`). What a test
sets in `spark.conf` it puts back. Tasks are tried four times, as on a cluster.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.support import maven

CONNECTOR = "spark-kafka-4.2"
"""The bundle of `spark.read.format("kafka")`."""
_TOO_SLOW = "Python worker failed to connect back"
_TRIES = 10


@contextmanager
def spark_session(directory: Path, settings: dict[str, str] | None = None) -> Iterator[SparkSession]:
    """The session, with its files below `directory`; `settings` are Spark's and go before those here.

    Skips the test where Java or Maven is missing.
    """
    jars = maven.classpath(CONNECTOR).split(os.pathsep)
    # Driver and workers run this Python, and find what the tests define.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    chosen = {
        "spark.master": "local[2,4]",
        "spark.app.name": "kavka-tests",
        "spark.driver.memory": "512m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.default.parallelism": "2",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.local.dir": str(directory / "local"),
        "spark.executorEnv.PYTHONPATH": str(maven.REPOSITORY),
        "spark.jars": ",".join(jars),
    } | (settings or {})
    builder = SparkSession.Builder()
    for name, value in chosen.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()


def in_spite_of_slowness(call: Callable[[], None]) -> None:
    """Do it again where Spark has given up a Python process that had not begun in ten seconds: no setting changes that.

    For streams, which go on where they were. Raises what else goes wrong.
    """
    for _ in range(_TRIES):
        try:
            return call()
        except PySparkException as error:
            if _TOO_SLOW not in str(error):
                raise
    return call()
