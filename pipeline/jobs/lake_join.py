"""A topic's rows with what a lake knows of their keys: of each key the newest row that the lake has.

Which files of the lake a batch is joined with is noted before its first row is sent, so that it is joined with the
same when it comes again: the lake keeps files for some hours after they were replaced. When they are gone by then it is
joined with those of now; where it was sent in part, and its rows are others now, `write` says so.
"""

import json
from pathlib import Path
from typing import Final, NamedTuple

from pyspark.sql import DataFrame, Window, functions
from pyspark.sql.types import StructType

from kavka.client.api_errors import KafkaError
from kavka.pipeline.lake.errors import LakeError
from kavka.pipeline.lake.lake import Lake
from kavka.pipeline.lake.spark_paths import to_read
from kavka.pipeline.lake.spark_reading import reader, spark_schema
from kavka.pipeline.running.sink import RunContext, SinkError
from kavka.pipeline.running.tables import Table
from kavka.pipeline.sending.steps import OnStep, unwatched
from kavka.pipeline.sending.topic_sink import options_of
from kavka.pipeline.sending.writing import write
from kavka.storage.files import Files

HOWS: Final = ("left", "inner")
CHOSEN: Final = "chosen"
_OF_RECORDS: Final = ("key", "value", "headers", "topic", "partition", "offset", "timestamp", "timestampType")
_POSITION: Final = ("timestamp", "topic", "partition", "offset")
_NEWEST: Final = "_newest"


def newest(table: DataFrame, on: list[str], columns: list[str]) -> DataFrame:
    """Of each key's rows the one with the latest time, and of these that of the highest partition and offset."""
    position = [functions.col(name).desc_nulls_last() for name in _POSITION]
    order = Window.partitionBy(*on).orderBy(*position)
    numbered = table.withColumn(_NEWEST, functions.row_number().over(order))
    return numbered.filter(functions.col(_NEWEST) == 1).select(*on, *columns)


class LakeJoinSink:
    """See the head of the module. Threads: one."""

    def __init__(self, table: Table, on_step: OnStep = unwatched) -> None:
        """Raises SettingError."""
        self._lake: Final = table.text("lake")
        self._on: Final = table.texts("on")
        self._columns: Final = table.texts("lake_columns")
        self._how: Final = table.choice("how", HOWS, "left")
        self._options: Final = options_of(table, table.text("topic"))._replace(on_step=on_step)
        self._client: Final = table.table("client").flat()
        self._on_step: Final = on_step
        self._run: RunContext | None = None
        taken = set(self._columns) & {*_OF_RECORDS, *self._on}
        if not self._on or not self._columns or taken:
            raise table.wrong("lake_columns", f"needs columns beside {', '.join((*self._on, *_OF_RECORDS))}")

    def open(self, run: RunContext) -> None:
        """Raises SinkError where there is no lake."""
        self._run = run
        try:
            Lake(self._lake)
        except (LakeError, OSError) as error:
            raise SinkError(f"{run.name}: {error}") from error

    def write(self, batch: DataFrame, batch_id: int) -> None:
        """Send a batch's rows with the lake's columns. Raises SinkError."""
        run = self._run
        assert run is not None, "write comes after open"
        there = set(self._columns) & set(batch.columns)
        if there:
            raise SinkError(f"{run.name}: rows have columns {', '.join(sorted(there))} already")
        try:
            chosen = self._chosen(run, batch_id)
            settings = {**run.client_settings, **self._client}
            rows = self._joined(run, batch, chosen)
            written = write(rows, batch_id, settings, query=run.query_id, options=self._options)
        except (KafkaError, LakeError, OSError, ValueError) as error:
            raise SinkError(f"{run.name}: {error}") from error
        run.report.add("rows_out", written.sent)

    def _joined(self, run: RunContext, batch: DataFrame, chosen: "_Chosen") -> DataFrame:
        if chosen.files:
            paths = [to_read(Path(each)) for each in chosen.files]
            table = reader(run.spark, chosen.schema).parquet(*paths)
            joined = batch.join(newest(table, self._on, self._columns), self._on, self._how)
        else:
            missing = {name: functions.lit(None).cast("string") for name in self._columns}
            joined = batch.withColumns(missing).filter(functions.lit(self._how == "left"))
        names = [name for name in joined.columns if name not in _OF_RECORDS]
        fields = functions.struct(*[functions.col(name) for name in names])
        return joined.withColumn("value", functions.to_json(fields, {"ignoreNullFields": "false"}))

    def _chosen(self, run: RunContext, batch_id: int) -> "_Chosen":
        """The lake's files for this batch, as they were chosen before if they are there, or those of now."""
        note = run.directory / f"lake-{batch_id:020d}.json"
        if (before := _noted(note)) is not None:
            return before
        lake = Lake(self._lake)
        files = [str(lake.path.absolute() / each.path) for each in lake.files()]
        chosen = _Chosen(files, spark_schema(lake, [*self._on, *self._columns, *_POSITION]))
        fields = None if chosen.schema is None else chosen.schema.jsonValue()
        Files().write_atomically(note, json.dumps({"files": files, "schema": fields}).encode())
        self._on_step(CHOSEN)
        for old in run.directory.glob("lake-*.json"):
            if old < note:
                Path(old).unlink(missing_ok=True)
        return chosen

    def close(self) -> None:
        """Nothing is open between batches."""


class _Chosen(NamedTuple):
    """Files of a lake, by their whole paths, and the schema by which they are read (None: they all have one)."""

    files: list[str]
    schema: StructType | None


def _noted(note: Path) -> _Chosen | None:
    """None where nothing was noted, or the lake has deleted a file since."""
    try:
        found = json.loads(note.read_text())
    except FileNotFoundError:
        return None
    files, schema = [str(each) for each in found["files"]], found["schema"]
    if not all(Path(each).exists() for each in files):
        return None
    return _Chosen(files, None if schema is None else StructType.fromJson(schema))
