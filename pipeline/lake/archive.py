"""The sink `archive`: rows to Parquet files by date, exactly once, and a manifest that says which count.

    [[sinks]]
    kind = "archive"
    path = "/srv/lake/visits"        # on a cluster a folder that all machines share
    partition_by = ["day(timestamp)"]
    keep_hours = 24                  # how long readers may go on with an older version

A batch is staged by Spark, its files are renamed, and one new version of the manifest makes them count. Wherever that
is cut off, the batch comes again: by its query and batch id, and by the offsets in the manifest, it is known what of it
is there. So a lost checkpoint does no harm either.
"""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kavka.pipeline.lake.entries import Offsets
from kavka.pipeline.lake.errors import LakeError, said
from kavka.pipeline.lake.layout import ARCHIVE, Layout, lake_folder
from kavka.pipeline.lake.lock import COMPACTING, LakeLock
from kavka.pipeline.lake.manifest import HOUR_MS, Manifest
from kavka.pipeline.lake.partition_spec import PartitionSpec, parsed_spec
from kavka.pipeline.lake.publishing import Publisher, staged_files
from kavka.pipeline.lake.recovery import delete_leftovers, delete_staged
from kavka.pipeline.lake.spark_rows import check_columns, stage, to_cut, without
from kavka.pipeline.running.sink import RunContext, Sink, SinkError
from kavka.pipeline.running.tables import Table
from kavka.storage.files import Files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PATIENCE_S: Final = 60.0
COMPRESSIONS: Final = ("zstd", "snappy", "gzip", "lz4_raw", "uncompressed")

_OPEN: Final = "the sink is not open"


@dataclass(frozen=True)
class ArchiveSettings:
    """What the job file says. `target_file_bytes` and `keep_hours` are `compact`'s, too."""

    layout: Layout
    spec: PartitionSpec
    compression: str
    rows_per_file: int
    target_file_bytes: int
    keep_hours: int


def sink(settings: Mapping[str, object]) -> Sink:
    """The sink of these settings; `table` says what kind of table it writes. Raises SettingError."""
    table = Table(settings)
    kind = table.choice("table", ("parquet", "delta", "iceberg"), "parquet")
    if kind == "parquet":
        made: Sink = ArchiveSink(archive_settings(table))
    elif kind == "delta":
        from kavka.pipeline.lake.delta import DeltaSink

        made = DeltaSink(table.text("path"))
    else:
        from kavka.pipeline.lake.iceberg import iceberg_sink

        made = iceberg_sink(table)
    table.close()
    return made


def archive_settings(table: Table) -> ArchiveSettings:
    """Read from the sink's table. Raises SettingError."""
    key = "path"
    try:
        layout = Layout(lake_folder(table.text("path")).absolute())
        key = "partition_by"
        spec = parsed_spec(table.texts("partition_by", ["day(timestamp)"]))
    except LakeError as error:
        raise table.wrong(key, str(error).removeprefix("partition_by: ")) from None
    return ArchiveSettings(
        layout,
        spec,
        table.choice("compression", COMPRESSIONS, "zstd"),
        table.number("rows_per_file", 5_000_000, 1),
        table.number("target_file_bytes", 128 << 20, 1 << 20),
        table.number("keep_hours", 24),
    )


class ArchiveSink:
    """One query's way into one lake. Calls come from one thread at a time; the lake's lock keeps other queries out."""

    def __init__(
        self, settings: ArchiveSettings, files: Files | None = None, reached: Callable[[str], None] | None = None
    ) -> None:
        """`reached` hears of the steps of each batch (`publishing.STEPS`)."""
        self.settings = settings
        self._files = files or Files()
        self._reached = reached or (lambda _: None)
        self._lock = LakeLock(settings.layout.lock)
        self._manifest = Manifest(settings.layout, self._files)
        self._publisher = Publisher(settings.layout, self._manifest, self._files, self._reached)
        self._run: RunContext | None = None
        self._half_done = False

    def open(self, run: RunContext) -> None:
        """Take the lake's lock, and delete what a crash left. Raises SinkError."""
        with said():
            # A compaction holds this lock for the moment in which it looks for what an archive left.
            self._lock.take(f"query {run.query_id} of job {run.job}, sink {run.name}", COMPACTING, PATIENCE_S)
            self._manifest.create()
            self._recover()
        self._run = run

    def starting_offsets(self) -> Offsets | None:
        """Where a query without a checkpoint goes on: after the first stretch of offsets that are in the lake."""
        return self._manifest.state.starting_offsets()

    def write(self, batch: "DataFrame", batch_id: int) -> None:
        """Archive the batch's rows, but for those that are in the lake. Raises SinkError; what Spark raises."""
        if self._run is None:
            raise SinkError(_OPEN)
        with said():
            if self._half_done:
                self._recover()
            self._half_done = True
            self._write(batch, batch_id, self._run)
            self._half_done = False

    def close(self) -> None:
        """Let others have the lake."""
        self._run = None
        self._lock.release()

    def _write(self, batch: "DataFrame", batch_id: int, run: RunContext) -> None:
        settings = self.settings
        check_columns(batch, settings.spec)
        state = self._manifest.refresh()
        rows = without(batch, to_cut(state, run.query_id, batch_id))
        # Tasks of an attempt that was given up may still write: no two attempts share a folder.
        attempt = settings.layout.staging(ARCHIVE) / f"{state.sequence + 1}-{uuid.uuid4().hex}"
        attempt.parent.mkdir(parents=True, exist_ok=True)
        self._reached("staging")
        written = stage(rows, attempt, settings.spec, settings.compression, settings.rows_per_file)
        self._reached("staged")
        staged = staged_files(attempt, settings.spec)
        seen = sum(each.footer.rows for each in staged)
        if seen != written:
            raise LakeError(
                f"{attempt}: Spark wrote {written} rows and {seen} are here: driver and executors must share the folder"
            )
        if staged:
            made = self._publisher.publish(staged, settings.spec, run.query_id, batch_id)
            run.report.add("rows_out", seen)
            run.report.add("bytes_out", sum(each.size_bytes for each in made.add))
            run.report.add("files", len(made.add))
            self._manifest.checkpoint_if_due(ARCHIVE, settings.keep_hours * HOUR_MS)
        delete_staged(attempt.parent, self._files)

    def _recover(self) -> None:
        delete_leftovers(self.settings.layout, self._manifest.refresh(), ARCHIVE, self._files)
