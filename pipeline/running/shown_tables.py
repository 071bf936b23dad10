"""The tables that a job shows when all is read: queries over what its archives hold by then."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from kavka.pipeline.running.job_file import Job, Show
from kavka.pipeline.running.parts import Parts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_ROWS: Final = 1000


def shown_table(spark: "SparkSession", show: Show) -> dict[str, Any]:
    """An event with the query's rows, at most a thousand. Raises what Spark does."""
    from kavka.pipeline.arrow.plain_values import plain_values

    found = spark.sql(show.sql)
    # Not by rows of Python's: their times are in the machine's zone, and none is of the year 10000.
    columns = [plain_values(column) for column in found.limit(MOST_ROWS).toArrow().columns]
    rows = [[_plain(value) for value in row] for row in zip(*columns, strict=True)]
    return {"event": "table", "title": show.title, "columns": found.columns, "rows": rows}


def open_views(spark: "SparkSession", job: Job, parts: Parts) -> None:
    """Let queries name the archives by their sinks' names: the files that the manifest counts, and no others."""
    if not job.shows:
        return
    from kavka.pipeline.lake.lake import Lake
    from kavka.pipeline.lake.spark_reading import read_lake

    for table, _, _ in parts.sinks:
        if table.kind == "archive" and table.settings.get("table", "parquet") == "parquet":
            rows = read_lake(spark, Lake(str(table.settings["path"])))
            if rows is not None:
                rows.createOrReplaceTempView(table.name)


def _plain(value: Any) -> Any:
    """As JSON has it; times, those of UTC, and the rest as text."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
