"""The archive into an Iceberg table, by pyiceberg: Spark writes files, and one snapshot makes a batch's count.

    [[sinks]]
    kind = "archive"
    table = "iceberg"
    path = "/srv/lake/visits"        # where the data files go
    identifier = "web.visits"
    [sinks.catalog]                  # pyiceberg's settings of a catalog
    type = "sql"
    uri = "sqlite:////srv/lake/catalog.db"
    warehouse = "file:///srv/lake"

How far each query has come is a property of each snapshot (`kavka.progress`), beside the query and batch that made it:
so a batch that comes again is known, after a lost checkpoint too. Snapshots expire, after a compaction of the table all
that an archive made: so the table itself has it, too. There is no Iceberg runtime for Spark 4.2.
"""

import json
import shutil
import uuid
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from kavka.pipeline.lake.entries import Offsets
from kavka.pipeline.lake.errors import LakeError, said
from kavka.pipeline.lake.fields import Fields
from kavka.pipeline.lake.layout import Layout, lake_folder
from kavka.pipeline.lake.lock import LakeLock
from kavka.pipeline.lake.partition_spec import PartitionSpec, parsed_spec
from kavka.pipeline.lake.publishing import StagedFile, fsync_staged, ranges_after, staged_files
from kavka.pipeline.lake.sayable_statistics import leave_out_unsayable
from kavka.pipeline.lake.spark_rows import Ranges, check_columns, stage, to_cut, without
from kavka.pipeline.lake.state import LakeState, queries_from_json, queries_to_json
from kavka.pipeline.running.sink import RunContext, SinkError
from kavka.pipeline.running.tables import Table
from kavka.pipeline.secret_references import resolved
from kavka.storage.files import Files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

QUERY: Final = "kavka.query"
BATCH: Final = "kavka.batch"
PROGRESS: Final = "kavka.progress"
"""Properties of a snapshot; the last one is the table's, too."""

_ATTEMPTS: Final = 10
_ROWS_PER_FILE: Final = 5_000_000
_COMPRESSION: Final = "zstd"


class IcebergTable:
    """One Iceberg table, which one query at a time appends to. Owned by one thread."""

    def __init__(self, identifier: str, catalog: dict[str, str]) -> None:
        """Raises LakeError where pyiceberg is not installed or the catalog's settings are none."""
        try:
            from pyiceberg.catalog import load_catalog
        except ImportError:
            raise LakeError("Iceberg needs pyiceberg: pip install 'kavka[iceberg]'") from None
        self._identifier = identifier
        try:
            self._catalog: Any = load_catalog("kavka", **catalog)
        except (ValueError, ImportError) as error:
            raise LakeError(f"catalog: {error}") from None

    def close(self) -> None:
        """Let go of the catalog's connections."""
        self._catalog.close()

    def state(self) -> LakeState:
        """How far the queries have come, by the newest snapshot that an archive made. Raises ManifestError."""
        if not self._catalog.table_exists(self._identifier):
            return LakeState()
        return self._state_of(self._catalog.load_table(self._identifier))

    def add(self, staged: list[StagedFile], query: str, batch: int, cut: Ranges | None = None) -> None:
        """Make the files part of the table, in one snapshot; the table is made where it is missing.

        `cut` are the offsets that were left out of the files, as the table had them. Raises LakeError where it has got
        others of theirs meanwhile, the batch goes back behind what its query archived, or others always are first.
        """
        import pyarrow.parquet
        from pyiceberg.exceptions import CommitFailedException

        schemas = {str(each): each for each in (pyarrow.parquet.read_schema(file.path) for file in staged)}
        self._make(next(iter(schemas.values())))
        for left in range(_ATTEMPTS - 1, -1, -1):
            table = self._catalog.load_table(self._identifier)
            state = self._state_of(table)
            _check_news(to_cut(state, query, batch), cut or {}, staged)
            state.go_on(query, batch, ranges_after(state, staged, query, batch))
            progress = json.dumps({"queries": queries_to_json(state.queries)}, separators=(",", ":"))
            try:
                with table.transaction() as transaction:
                    with transaction.update_schema() as update:
                        for schema in schemas.values():
                            update.union_by_name(schema)
                    transaction.set_properties({PROGRESS: progress})
                    properties = {QUERY: query, BATCH: str(batch), PROGRESS: progress}
                    # Not as_uri(): pyiceberg opens the path as it stands, and that would escape folders' `=`.
                    transaction.add_files([f"file://{file.path}" for file in staged], properties)
            except CommitFailedException as error:
                # Somebody else changed the table meanwhile, which takes nothing from what is to be added.
                if not left:
                    raise LakeError(f"{self._identifier}: {error}") from error
            else:
                return

    def _make(self, schema: Any) -> None:
        if not self._catalog.table_exists(self._identifier):
            self._catalog.create_namespace_if_not_exists(self._identifier.rpartition(".")[0])
            self._catalog.create_table_if_not_exists(self._identifier, schema.remove_metadata())

    def _state_of(self, table: Any) -> LakeState:
        snapshot = table.current_snapshot()
        while snapshot is not None:
            found = snapshot.summary.additional_properties if snapshot.summary is not None else {}
            if PROGRESS in found:
                return self._parsed(found[PROGRESS], f"snapshot {snapshot.snapshot_id} of {self._identifier}")
            parent = snapshot.parent_snapshot_id
            snapshot = table.snapshot_by_id(parent) if parent is not None else None
        # A snapshot that is there says it better: a table that was rolled back has lost what came after it.
        if PROGRESS in table.properties:
            return self._parsed(table.properties[PROGRESS], self._identifier)
        return LakeState()

    def _parsed(self, progress: str, where: str) -> LakeState:
        return LakeState(queries=queries_from_json(Fields.parsed(progress.encode(), f"{where}, {PROGRESS}")))


def _check_news(archived: Ranges, cut: Ranges, staged: Iterable[StagedFile]) -> None:
    """Another job may write the same table, by a folder and a lock of its own, and the same topic: raises LakeError."""
    for each in staged:
        for topic, partitions in each.footer.offsets.items():
            for partition, offsets in partitions.items():
                known = cut.get(topic, {}).get(partition, [])
                for start, end in archived.get(topic, {}).get(partition, []):
                    begin, stop = max(start, offsets.first), min(end, offsets.last + 1)
                    if begin < stop and not any(first <= begin and stop <= last for first, last in known):
                        raise LakeError(
                            f"another query has archived offsets {begin} to {stop - 1} of {topic}-{partition} while "
                            "this one did: the batch comes again without them in the next run"
                        )


def iceberg_sink(table: Table) -> "IcebergSink":
    """The sink of a job's table. Raises SettingError."""
    key = "path"
    try:
        layout = Layout(lake_folder(table.text("path")).absolute())
        key = "partition_by"
        spec = parsed_spec(table.texts("partition_by", ["day(timestamp)"]))
    except LakeError as error:
        raise table.wrong(key, str(error)) from None
    identifier = table.text("identifier")
    if "." not in identifier:
        raise table.wrong("identifier", f"{identifier!r} is no NAMESPACE.TABLE")
    return IcebergSink(layout, spec, identifier, table.table("catalog").flat())


class IcebergSink:
    """One query's way into one Iceberg table. Calls come from one thread at a time."""

    def __init__(
        self,
        layout: Layout,
        spec: PartitionSpec,
        identifier: str,
        catalog: Mapping[str, str],
        files: Files | None = None,
    ) -> None:
        """`catalog` may hold references to secrets."""
        self._files = files or Files()
        self._layout = layout
        self._spec = spec
        self._identifier = identifier
        self._catalog = catalog
        self._lock = LakeLock(layout.lock)
        self._run: RunContext | None = None
        self._table: IcebergTable | None = None

    def open(self, run: RunContext) -> None:
        """Take the folder's lock, and reach the catalog. Raises SinkError."""
        with said():
            self._lock.take(f"query {run.query_id} of job {run.job}, sink {run.name}")
            self._table = IcebergTable(self._identifier, {key: resolved(text) for key, text in self._catalog.items()})
        self._run = run

    def starting_offsets(self) -> Offsets | None:
        """Where a query without a checkpoint goes on, by the table's snapshots."""
        return self._table.state().starting_offsets() if self._table is not None else None

    def write(self, batch: "DataFrame", batch_id: int) -> None:
        """Archive the batch's rows, but for those that are in the table. Raises SinkError; what Spark raises."""
        if self._run is None or self._table is None:
            raise SinkError("the sink is not open")
        with said():
            check_columns(batch, self._spec)
            state = self._table.state()
            cut = to_cut(state, self._run.query_id, batch_id)
            rows = without(batch, cut)
            # A folder for each attempt, which stays: what no snapshot names is nothing to a reader of the table.
            folder = self._layout.data / uuid.uuid4().hex
            folder.parent.mkdir(parents=True, exist_ok=True)
            written = stage(rows, folder, self._spec, _COMPRESSION, _ROWS_PER_FILE)
            staged = staged_files(folder, self._spec)
            seen = sum(each.footer.rows for each in staged)
            if seen != written:
                raise LakeError(f"{folder}: Spark wrote {written} rows and {seen} are here: all must share the folder")
            if staged:
                for each in staged:
                    leave_out_unsayable(each.path, _COMPRESSION)
                # A snapshot may outlive a power cut: what it names has to, too.
                fsync_staged(staged, self._layout.data, self._files)
                self._table.add(staged, self._run.query_id, batch_id, cut)
                self._run.report.add("rows_out", seen)
                self._run.report.add("files", len(staged))
            else:
                shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """Let others have the folder, and go of the catalog."""
        table, self._run, self._table = self._table, None, None
        try:
            if table is not None:
                table.close()
        finally:
            self._lock.release()
