"""A lake's files read by Spark: those that are chosen, with the columns of all of them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import pyarrow

from kavka.pipeline.lake.errors import LakeError
from kavka.pipeline.lake.lake import Lake
from kavka.pipeline.lake.spark_paths import to_read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.types import StructType

_MERGED: Final = "mergeSchema"


def read_lake(spark: "SparkSession", lake: Lake) -> "DataFrame | None":
    """All rows of the lake's version; None where it has no files. Raises LakeError, OSError; what Spark raises."""
    paths = [to_read(lake.path.absolute() / each.path) for each in lake.files()]
    return reader(spark, spark_schema(lake)).parquet(*paths) if paths else None


def reader(spark: "SparkSession", schema: "StructType | None") -> "DataFrameReader":
    """For files whose schema `spark_schema` has told."""
    return spark.read.option(_MERGED, "true") if schema is None else spark.read.schema(schema)


def spark_schema(lake: Lake, columns: Sequence[str] | None = None) -> "StructType | None":
    """Of files with several schemas: a column that has become wider is wide, which Spark's own merging refuses.

    None: all files have the same. Of these `columns` alone, as far as they are there, or of all. Raises LakeError for
    columns of types that have nothing in common, OSError.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    if len({each.schema_id for each in lake.files()}) < 2:
        return None
    try:
        return from_arrow_schema(lake.schema(columns))
    except pyarrow.ArrowException as error:
        raise LakeError(f"{lake.path}: its files cannot be read together: {error}") from error
