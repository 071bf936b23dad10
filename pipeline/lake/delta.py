"""The archive into a Delta table, by delta-spark: Delta passes over a batch that it has (`txnAppId`, `txnVersion`).

    [[sinks]]
    kind = "archive"
    table = "delta"
    path = "/srv/lake/visits"

Spark needs Delta's jars and two settings, see docs/pipeline-lake.md. A query with a new checkpoint is another
application to Delta: what the table had when it began is cut off by its offsets.
"""

import json
from typing import TYPE_CHECKING, Any, Final

from kavka.pipeline.lake.entries import Offsets
from kavka.pipeline.lake.errors import LakeError, said
from kavka.pipeline.lake.fields import MAX_FILE_BYTES, Fields
from kavka.pipeline.lake.partition_spec import BY_DATE
from kavka.pipeline.lake.spark_rows import Ranges, check_columns, without
from kavka.pipeline.running.sink import RunContext, SinkError
from kavka.storage.files import Files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

JARS: Final = "io.delta:delta-spark_4.2_2.13:4.4.0"
EXTENSION: Final = "io.delta.sql.DeltaSparkSessionExtension"

_HAD: Final = "delta-had.json"
"""In the sink's own folder: the offsets that the table had before the query's first batch."""


class DeltaSink:
    """One query's way into one Delta table. Calls come from one thread at a time."""

    def __init__(self, path: str, files: Files | None = None) -> None:
        self._path = path
        self._files = files or Files()
        self._run: RunContext | None = None
        self._had: Ranges = {}

    def open(self, run: RunContext) -> None:
        """See what the table has, where the query is new. Raises SinkError without Delta's jars."""
        with said():
            if EXTENSION not in (run.spark.conf.get("spark.sql.extensions", "") or ""):
                raise LakeError(
                    f"{self._path}: this Spark has no Delta: set spark.jars.packages = {JARS}, spark.sql.extensions = "
                    f"{EXTENSION} and spark.sql.catalog.spark_catalog = org.apache.spark.sql.delta.catalog.DeltaCatalog"
                )
            self._had = self._noted(run)
        self._run = run

    def starting_offsets(self) -> Offsets | None:
        """Where a query without a checkpoint goes on: after what the table had."""
        return {topic: {key: bounds[-1][1] for key, bounds in had.items()} for topic, had in self._had.items()} or None

    def write(self, batch: "DataFrame", batch_id: int) -> None:
        """Append the batch's rows, once. Raises SinkError; what Spark raises."""
        if self._run is None:
            raise SinkError("the sink is not open")
        with said():
            check_columns(batch, BY_DATE)
        writer = without(batch, self._had).write.format("delta").mode("append")
        writer = writer.option("txnAppId", self._run.query_id).option("txnVersion", batch_id)
        writer.option("mergeSchema", "true").save(self._path)

    def close(self) -> None:
        """Forget the run."""
        self._run = None

    def _noted(self, run: RunContext) -> Ranges:
        """What the table had when the query began: by the note, which is made before its first batch."""
        path = run.directory / _HAD
        if self._files.exists(path):
            fields = Fields.parsed(self._files.read_bytes(path, MAX_FILE_BYTES), str(path))
            if fields.text("query") == run.query_id:
                return _ranges(fields)
        found = self._found(run)
        self._files.makedirs(run.directory)
        self._files.write_atomically(path, json.dumps({"query": run.query_id, "ranges": found}).encode())
        return found

    def _found(self, run: RunContext) -> Ranges:
        from delta.tables import DeltaTable
        from pyspark.sql import functions as f

        if not DeltaTable.isDeltaTable(run.spark, self._path):
            return {}
        grouped: Any = run.spark.read.format("delta").load(self._path).groupBy("topic", "partition")
        found: Ranges = {}
        for row in grouped.agg(f.min("offset").alias("first"), f.max("offset").alias("last")).collect():
            found.setdefault(row["topic"], {})[row["partition"]] = [(row["first"], row["last"] + 1)]
        return found


def _ranges(fields: Fields) -> Ranges:
    found: Ranges = {}
    for topic, partitions in fields.by_partition("ranges").items():
        for partition, value in partitions.items():
            bounds = value if isinstance(value, list) else [value]
            pairs = [fields.numbers("ranges", each, 2) for each in bounds]
            found.setdefault(topic, {})[partition] = [(start, end) for start, end in pairs]
    return found
