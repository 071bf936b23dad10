"""Spark looks for modules called `pyspark_*` and registers their `DefaultSource`: `spark.read.format("kavka")`."""

from kavka.pipeline.source.data_source import KavkaDataSource as DefaultSource

__all__ = ["DefaultSource"]
