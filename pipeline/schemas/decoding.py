"""The schema stage of a job: a batch of a topic's rows into those with columns, and those that do not fit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Final

from kavka.pipeline.running.decided_ids import DecidedIds, Place
from kavka.pipeline.running.sink import GaveUpError, Report, SinkError
from kavka.pipeline.running.tables import SettingError
from kavka.pipeline.schemas.declared import declared_type
from kavka.pipeline.schemas.decoded import ColumnDecoder
from kavka.pipeline.schemas.errors import SchemaUnavailableError, SchemaUnusableError
from kavka.pipeline.schemas.json_values import JsonDecoder
from kavka.pipeline.schemas.registered import RegisteredDecoder
from kavka.pipeline.schemas.registry.catalogue import Catalogue, Waits
from kavka.pipeline.schemas.registry.client import HttpRegistry
from kavka.pipeline.schemas.registry.directory import DirectoryRegistry
from kavka.pipeline.schemas.registry.schema import Registry, WholeSchema
from kavka.pipeline.schemas.rows import CHANGED, REASON, Rows, decoded_name, missing_name
from kavka.pipeline.schemas.settings import RegistrySettings, SchemaSettings, ValueSettings, schema_settings
from kavka.pipeline.schemas.unknown_ids import PLACE

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_FEW_IDS: Final = 100
"""So many are named in a plan."""
_SOURCE_COLUMNS: Final = frozenset(
    {"key", "value", "topic", "partition", "offset", "timestamp", "timestamptype", "headers"}
)


def decoder(settings: Mapping[str, object]) -> SparkDecoder:
    """The stage that a table `[schema]` describes. Raises SettingError; asks no registry yet, and loads no Spark."""
    return SparkDecoder(schema_settings(settings))


class SparkDecoder:
    """Decodes batches, one after the other, on one thread; `close` may be called by any, and ends a wait.

    Each batch is decoded once: what came of it is kept by Spark, in memory or on disk, until the next one or `release`.
    Only what holds an id that was not known yet is read and decoded again, once the registry has said what it is.
    """

    def __init__(self, settings: SchemaSettings, wait: Callable[[float], bool] | None = None) -> None:
        """`wait`: see Catalogue. Raises SettingError."""
        self._settings: Final = settings
        self._wait: Final = wait
        self._catalogue: Catalogue | None = None
        self._is_closed = False
        self._readers: dict[str, WholeSchema] = {}
        self._kept: DataFrame | None = None
        self._report: Report | None = None
        self._decided = DecidedIds()
        """The job's own, once it was told of."""
        self.bad_rows = 0
        """Of the last batch."""
        for column in settings.columns:
            _check(column)

    @property
    def waits(self) -> Waits | None:
        """How long batches have waited for the registry; None before the first that needs it."""
        return None if self._catalogue is None else self._catalogue.waits

    def report_to(self, report: Report) -> None:
        """Count bad rows (`bad_rows`) and waits (`schema_waits`), and note what is waited for."""
        self._report = report

    def decide_by(self, decided: DecidedIds) -> None:
        """What was and is decided about ids that the registry does not have, where these are `dead_letters`."""
        self._decided = decided

    def decode(self, rows: DataFrame) -> tuple[DataFrame, DataFrame]:
        """(rows with decoded columns, rows as they came with the column `reason`).

        Waits for a registry that cannot be reached, or that does not have an id. Raises SinkError where the schema has
        changed and `on_change` is fail, and where the reader's schema is unusable. Raises GaveUpError after `close`.
        """
        from pyspark.sql import functions
        from pyspark.sql.pandas.types import from_arrow_schema
        from pyspark.sql.types import StructField, StructType
        from pyspark.storagelevel import StorageLevel

        self.release()
        if self._catalogue is not None:
            self._catalogue.forget_unknown()
        decoders = self._decoders()
        bad_before = [column.column for column in self._settings.columns if _decides(column)]
        if bad_before and not set(PLACE) <= set(rows.columns):
            raise SinkError(f"schema: unknown_ids = dead_letters needs the source's columns {', '.join(PLACE)}")
        source = [StructField(field.name, field.dataType) for field in rows.schema.fields]
        names = [column.column for column in self._settings.columns]
        while True:
            work = Rows(decoders, dict.fromkeys(bad_before, self._decided.bad_before))
            schema = StructType([*source, *from_arrow_schema(work.added()).fields])
            decoded = rows.mapInArrow(work.__call__, schema).persist(StorageLevel.MEMORY_AND_DISK)
            self._kept = decoded
            sets = [functions.collect_set(missing_name(name)) for name in names]
            first_change = functions.first(CHANGED, ignorenulls=True)
            bad_rows, changed, *missing = decoded.agg(functions.count(REASON), first_change, *sets).collect()[0]
            if changed is not None:
                self.release()
                raise SinkError(f"schema: {changed}")
            if not any(missing):
                break
            wanted = dict(zip(names, missing, strict=True))
            self._settle(wanted, decoded)
            self.release()
            self._load(wanted)
            decoders = self._decoders()
        self.bad_rows = bad_rows
        if self._report is not None:
            self._report.add("bad_rows", self.bad_rows)
        good = decoded.where(functions.col(REASON).isNull()).select(*self._columns(decoded))
        return good, decoded.where(functions.col(REASON).isNotNull()).select(*rows.columns, REASON)

    def release(self) -> None:
        """Lets go of what was kept of the last batch; frames made of it would be read and decoded anew."""
        if self._kept is not None:
            self._kept.unpersist()
            self._kept = None

    def close(self) -> None:
        """Ends a wait, now and later. The thread that decodes has to `release`."""
        self._is_closed = True
        if self._catalogue is not None:
            self._catalogue.stop()

    def _decoders(self) -> dict[str, ColumnDecoder]:
        try:
            return {column.column: self._column_decoder(column) for column in self._settings.columns}
        except SchemaUnusableError as error:
            raise SinkError(f"schema: the reader's schema is unusable: {error}") from None
        except SchemaUnavailableError as error:
            raise self._unavailable(error) from None

    def _column_decoder(self, column: ValueSettings) -> ColumnDecoder:
        if column.format == "json":
            return JsonDecoder(declared_type(column.fields or {}), column.required, column.on_change)
        catalogue = self._opened()
        reader, known = self._reader(column, catalogue), catalogue.known
        if _decides(column):
            self._decided.make_known(known)
        return RegisteredDecoder(
            column.format,
            reader,
            known,
            catalogue.refused,
            message=column.message,
            fails_on_change=column.on_change == "fail",
        )

    def _reader(self, column: ValueSettings, catalogue: Catalogue) -> WholeSchema:
        """As declared, or as it stood in the registry when the job began; for `evolve` as it stands there now."""
        if column.subject is not None and (column.on_change == "evolve" or column.schema is None):
            if column.on_change == "evolve":
                return catalogue.version(column.subject, column.version)
            if column.column not in self._readers:
                # Another query may have begun before, when another version was the latest.
                found = catalogue.version(column.subject, column.version)
                self._readers[column.column] = self._decided.reader(column.column, found)
            return self._readers[column.column]
        return WholeSchema(0, column.format.upper(), column.schema or "")

    def _settle(self, missing: Mapping[str, Collection[int]], decoded: DataFrame) -> None:
        """Ask once for the ids that a column does not wait for, and decide about those that there are not."""
        catalogue = self._opened()
        for column in filter(_decides, self._settings.columns):
            ids = [each for each in sorted(missing[column.column]) if not self._decided.is_known(each)]
            try:
                catalogue.load(ids, wait_for_unknown=False)
            except SchemaUnavailableError as error:
                raise self._unavailable(error) from None
            if unknown := [each for each in ids if each in catalogue.unknown]:
                # What has got known meanwhile, by another query, stays it, and is waited for.
                self._decided.make_bad(_furthest(decoded, missing_name(column.column), unknown))

    def _load(self, missing: Mapping[str, Collection[int]]) -> None:
        """Wait for the ids that a column waits for, and for those that others have found."""
        try:
            for column in self._settings.columns:
                ids = sorted(missing[column.column])
                wanted = [each for each in ids if not _decides(column) or self._decided.is_known(each)]
                self._opened().load(wanted)
        except SchemaUnavailableError as error:
            raise self._unavailable(error) from None

    def _unavailable(self, error: SchemaUnavailableError) -> SinkError:
        return GaveUpError(f"schema: {error}") if self._is_closed else SinkError(f"schema: {error}")

    def _opened(self) -> Catalogue:
        if self._catalogue is None:
            registry = _registry(self._settings.registry or RegistrySettings(directory="."))
            self._catalogue = Catalogue(registry, self._wait, self._waiting)
            if self._is_closed:
                self._catalogue.stop()
        return self._catalogue

    def _waiting(self, reason: str) -> None:
        if self._report is not None:
            self._report.add("schema_waits", 1)
            self._report.note(f"waits for a schema: {reason}")

    def _columns(self, decoded: DataFrame) -> list[Column | str]:
        """The source's columns, those with bytes replaced: by one column, or by the fields at the end."""
        from pyspark.sql import functions
        from pyspark.sql.types import StructType

        into = {column.column: column.into for column in self._settings.columns}
        columns: list[Column | str] = []
        fields: list[Column | str] = []
        added = {made(column) for column in into for made in (decoded_name, missing_name)} | {REASON, CHANGED}
        for name in decoded.columns:
            if name in added:
                continue
            if name not in into:
                columns.append(functions.col(name))
                continue
            values = decoded_name(name)
            kind = decoded.schema[values].dataType
            target = into[name]
            if target is None and isinstance(kind, StructType):
                fields += [
                    functions.col(values)
                    .getField(each)
                    .alias(f"{name}_{each}" if each.lower() in _SOURCE_COLUMNS else each)
                    for each in kind.names
                ]
            else:
                columns.append(functions.col(values).alias(target or name))
        return columns + fields


def _decides(column: ValueSettings) -> bool:
    """Whether values may be bad as the registry does not have their ids."""
    return column.unknown_ids == "dead_letters"


def _furthest(decoded: DataFrame, missing: str, schema_ids: Collection[int]) -> dict[int, list[Place]]:
    """By id the last row of each partition that waits for it."""
    from pyspark.sql import functions

    wanted = (
        decoded.where(functions.col(missing).isNotNull())
        if len(schema_ids) > _FEW_IDS
        else decoded.where(functions.col(missing).isin([int(each) for each in schema_ids]))
    )
    found: dict[int, list[Place]] = {each: [] for each in schema_ids}
    topic, partition, offset = PLACE
    for row in wanted.groupBy(missing, topic, partition).agg(functions.max(offset)).collect():
        if row[0] in found:
            found[row[0]].append(Place(*row[1:]))
    return found


def _check(column: ValueSettings) -> None:
    """What can be checked without a registry: declared fields, and a schema that needs no other."""
    prefix = "key." if column.column == "key" else ""
    try:
        if column.format == "json":
            JsonDecoder(declared_type(column.fields or {}), column.required, column.on_change)
        elif column.schema is not None:
            _check_schema(column, WholeSchema(0, column.format.upper(), column.schema))
    except SettingError as error:
        raise SettingError(prefix + error.key, error.problem) from None
    except SchemaUnusableError as error:
        raise SettingError(f"{prefix}schema", str(error)) from None


def _check_schema(column: ValueSettings, schema: WholeSchema) -> None:
    # Not by the decoders: these load compilers, and `check` is to be quick.
    if column.format == "avro":
        from kavka.pipeline.schemas.avro.tree import tree_of
        from kavka.pipeline.schemas.avro.types import arrow_type

        arrow_type(tree_of(schema))
    else:
        from kavka.pipeline.schemas.protobuf.building import MessageColumns
        from kavka.pipeline.schemas.protobuf.linking import linked, message_of

        MessageColumns(message_of(linked(schema), column.message))


def _registry(settings: RegistrySettings) -> Registry:
    if settings.directory is not None:
        return DirectoryRegistry(settings.directory, settings.max_bytes)
    return HttpRegistry(settings)
