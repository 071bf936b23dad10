"""One version of a manifest: what an append, a compaction or a vacuum changes in the lake, as one file of JSON."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from kavka.pipeline.lake.entries import DataFile, Offsets, data_path
from kavka.pipeline.lake.errors import LakeError, UnknownFormatError
from kavka.pipeline.lake.fields import Fields
from kavka.pipeline.lake.partition_spec import PartitionField, PartitionSpec, checked_spec

FORMAT: Final = 1
"""The version of the layout that this code writes and reads."""

APPEND: Final = "append"
REPLACE: Final = "replace"
VACUUM: Final = "vacuum"

Ranges: TypeAlias = Mapping[str, Mapping[int, tuple[int, int]]]
"""By topic and partition: the offset where a query began, and the one that comes after its last."""

Schema: TypeAlias = tuple[tuple[str, str], ...]
"""Names and Arrow types of a file's columns."""


@dataclass(frozen=True)
class Commit:
    """What one version of the manifest changes. Immutable.

    kind       append: a batch of a query; replace: `remove` became `add`; vacuum: the files of `forget` are deleted
    version    1, 2, 3 ... without gaps
    time_ms    when it was written, since 1970
    query      Spark's id of the query, of an append; `batch` is its batch id, `sequence` the lake's count of batches
    ranges     of the topic-partitions in this batch: all that the query has archived of them so far
    specs, schemas   those that are new, by their ids
    """

    version: int
    kind: str
    time_ms: int
    query: str = ""
    batch: int = 0
    sequence: int = 0
    ranges: Ranges = field(default_factory=dict)
    specs: Mapping[int, PartitionSpec] = field(default_factory=dict)
    schemas: Mapping[int, Schema] = field(default_factory=dict)
    add: tuple[DataFile, ...] = ()
    remove: tuple[str, ...] = ()
    forget: tuple[str, ...] = ()

    @property
    def next_offsets(self) -> Offsets:
        """Where the query goes on, of the topic-partitions in this batch."""
        return {
            topic: {partition: bounds[1] for partition, bounds in partitions.items()}
            for topic, partitions in self.ranges.items()
        }

    def encoded(self) -> bytes:
        """The file's content."""
        table: dict[str, object] = {
            "format": FORMAT,
            "version": self.version,
            "kind": self.kind,
            "time_ms": self.time_ms,
        }
        if self.kind == APPEND:
            table |= {"query": self.query, "batch": self.batch, "ranges": ranges_to_json(self.ranges)}
        if self.kind != VACUUM:
            table |= {"sequence": self.sequence, "specs": specs_to_json(self.specs)}
            table |= {"schemas": schemas_to_json(self.schemas), "add": [each.to_json() for each in self.add]}
        if self.kind == REPLACE:
            table["remove"] = list(self.remove)
        if self.kind == VACUUM:
            table["forget"] = list(self.forget)
        return json.dumps(table, ensure_ascii=False, separators=(",", ":")).encode()


def decoded(data: bytes, where: str) -> Commit:
    """The commit that a file holds; `where` is its path. Raises ManifestError."""
    fields = Fields.parsed(data, where)
    check_format(fields)
    kind = fields.text("kind")
    if kind not in (APPEND, REPLACE, VACUUM):
        raise fields.wrong("kind", f"{kind!r} is none of {APPEND}, {REPLACE}, {VACUUM}")
    version, time_ms = fields.number("version", 1), fields.number("time_ms")
    if kind == VACUUM:
        forgotten = tuple(data_path(fields, each) for each in fields.texts("forget"))
        return Commit(version, kind, time_ms, forget=forgotten)
    return Commit(
        version,
        kind,
        time_ms,
        query=fields.text("query") if kind == APPEND else "",
        batch=fields.number("batch") if kind == APPEND else 0,
        sequence=fields.number("sequence", 1),
        ranges=ranges_from_json(fields) if kind == APPEND else {},
        specs=specs_from_json(fields),
        schemas=schemas_from_json(fields),
        add=tuple(DataFile.from_json(fields.inner("add", each)) for each in fields.values("add")),
        remove=tuple(data_path(fields, each) for each in fields.texts("remove")) if kind == REPLACE else (),
    )


def check_format(fields: Fields) -> None:
    """Raises UnknownFormatError for a file of a layout that this code does not know, ManifestError for one of none."""
    found = fields.number("format", 1)
    if found != FORMAT:
        text = f"{found} is not known here, only {FORMAT}: use a newer Kavka"
        raise UnknownFormatError(str(fields.wrong("format", text)))


def ranges_to_json(ranges: Ranges) -> dict[str, object]:
    """As they stand in the manifest."""
    return {
        topic: {str(partition): list(bounds) for partition, bounds in partitions.items()}
        for topic, partitions in ranges.items()
    }


def ranges_from_json(fields: Fields) -> dict[str, dict[int, tuple[int, int]]]:
    """Raises ManifestError."""
    found: dict[str, dict[int, tuple[int, int]]] = {}
    for topic, partitions in fields.by_partition("ranges").items():
        found[topic] = {}
        for partition, value in partitions.items():
            start, end = fields.numbers("ranges", value, 2)
            if start >= end:
                raise fields.wrong("ranges", f"{value!r} is no range")
            found[topic][partition] = (start, end)
    return found


def specs_to_json(specs: Mapping[int, PartitionSpec]) -> dict[str, object]:
    """As they stand in the manifest."""
    return {str(spec_id): spec.to_json() for spec_id, spec in specs.items()}


def specs_from_json(fields: Fields) -> dict[int, PartitionSpec]:
    """Raises ManifestError."""
    found = {}
    for key, value in fields.table("specs").items():
        try:
            found[fields.key("specs", key)] = checked_spec([PartitionField(*each) for each in _pairs(fields, value, 3)])
        except LakeError as error:
            raise fields.wrong("specs", str(error)) from None
    return found


def schemas_to_json(schemas: Mapping[int, Schema]) -> dict[str, object]:
    """As they stand in the manifest."""
    return {str(schema_id): [list(column) for column in schema] for schema_id, schema in schemas.items()}


def schemas_from_json(fields: Fields) -> dict[int, Schema]:
    """Raises ManifestError."""
    found: dict[int, Schema] = {}
    for key, value in fields.table("schemas").items():
        columns = [(name, kind) for name, kind in _pairs(fields, value, 2)]
        found[fields.key("schemas", key)] = tuple(columns)
    return found


def _pairs(fields: Fields, value: object, count: int) -> list[list[str]]:
    """Lists of so many texts each."""
    listed = value if isinstance(value, list) else [None]
    found = [each for each in listed if isinstance(each, list) and len(each) == count]
    if len(found) != len(listed) or not all(isinstance(text, str) for each in found for text in each):
        raise fields.wrong("specs or schemas", f"is no list of lists of {count} texts")
    return found
