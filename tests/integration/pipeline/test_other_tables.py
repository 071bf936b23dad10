"""The archive into Delta and Iceberg tables: a batch that comes again changes nothing, nor does a lost checkpoint."""

import re
import sys
from pathlib import Path

import pytest
from pyiceberg.catalog import load_catalog
from pyspark.sql import SparkSession

from kavka.pipeline.lake.archive import sink
from kavka.pipeline.lake.delta import DeltaSink
from kavka.pipeline.lake.iceberg import IcebergSink
from kavka.pipeline.running.sink import SinkError
from tests.support import maven
from tests.support.archiving import DDL, run_context
from tests.support.lakes import TOPIC, rows
from tests.support.processes import Process

TIMEOUT_S = 560


def test_delta_passes_over_what_it_has(tmp_path: Path) -> None:
    maven.classpath("delta-4.4")
    process = Process([sys.executable, "-m", "tests.support.delta_archiving", str(tmp_path)], tmp_path / "log")

    try:
        assert process.wait(TIMEOUT_S) == 0, process.log_text()[-3000:]
    finally:
        process.kill()
    assert re.findall(r"^rows (\d+)$", process.log_text(), re.MULTILINE) == ["5", "5", "8", "8"]


def test_a_spark_without_delta_says_what_to_set(spark: SparkSession, tmp_path: Path) -> None:
    made = sink({"table": "delta", "path": str(tmp_path / "table")})
    assert isinstance(made, DeltaSink)
    with pytest.raises(SinkError, match=r"spark\.jars\.packages = io\.delta"):
        made.open(run_context(spark, tmp_path / "checkpoint", "query"))


def test_iceberg_has_each_row_once_after_a_lost_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    catalog = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": (tmp_path / "tables").as_uri()}
    (tmp_path / "tables").mkdir()
    settings = {"table": "iceberg", "path": str(tmp_path / "lake"), "identifier": "web.visits", "catalog": catalog}

    def write(query: str, batch: int, offsets: range) -> list[int]:
        made = sink(settings)
        assert isinstance(made, IcebergSink)
        made.open(run_context(spark, tmp_path / "checkpoint", query))
        given = [(TOPIC, 0, offset, rows([offset])["timestamp"][0].as_py(), b"v") for offset in offsets]
        made.write(spark.createDataFrame(given, DDL), batch)
        made.close()
        with load_catalog("kavka", **catalog) as reader:
            return sorted(reader.load_table("web.visits").scan().to_arrow()["offset"].to_pylist())

    assert write("first", 0, range(5)) == list(range(5))
    assert write("first", 0, range(5)) == list(range(5))
    assert write("second", 0, range(8)) == list(range(8))
