"""The tables that a job shows when all is read: queries over what its archives hold by then."""

from typing import TYPE_CHECKING, Any, Final

from kavka.pipeline.running.job_file import Job, Show
from kavka.pipeline.running.parts import Parts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_ROWS: Final = 1000


def shown_table(spark: "SparkSession", show: Show) -> dict[str, Any]:
    """An event with the query's rows, at most a thousand. Raises what Spark does."""
    found = spark.sql(show.sql)
    rows = [[_plain(value) for value in row] for row in found.take(MOST_ROWS)]
    return {"event": "table", "title": show.title, "columns": found.columns, "rows": rows}


def open_views(spark: "SparkSession", job: Job, parts: Parts) -> None:
    """Let queries name the archives by their sinks' names: the files that the manifest counts, and no others."""
    if not job.shows:
        return
    from kavka.pipeline.lake.lake import Lake
    from kavka.pipeline.lake.spark_paths import to_read

    for table, _, _ in parts.sinks:
        if table.kind == "archive" and table.settings.get("table", "parquet") == "parquet":
            lake = Lake(str(table.settings["path"]))
            paths = [to_read(lake.path.absolute() / file.path) for file in lake.files()]
            if paths:
                spark.read.option("mergeSchema", "true").parquet(*paths).createOrReplaceTempView(table.name)


def _plain(value: Any) -> Any:
    """As JSON has it; times and the rest as text."""
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
