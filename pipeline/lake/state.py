"""What a lake holds at one version of its manifest: the commits so far, put together."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kavka.pipeline.lake.commit import (
    APPEND,
    FORMAT,
    REPLACE,
    Commit,
    Ranges,
    Schema,
    check_format,
    ranges_from_json,
    ranges_to_json,
    schemas_from_json,
    schemas_to_json,
    specs_from_json,
    specs_to_json,
)
from kavka.pipeline.lake.entries import DataFile, Offsets, data_path
from kavka.pipeline.lake.errors import ManifestError
from kavka.pipeline.lake.fields import Fields
from kavka.pipeline.lake.partition_spec import PartitionSpec


@dataclass
class QueryProgress:
    """How far one query has come: its last batch, and of each topic-partition the offsets it went through.

    A query goes forward only, so that one range says all: what was in it and is not in the lake was no record, or was
    archived by an earlier query.
    """

    batch: int
    ranges: dict[str, dict[int, tuple[int, int]]]


@dataclass
class LakeState:
    """The lake at `version`. Owned by one thread.

    `files` are those that count, `removed` those that compaction replaced, with the time (milliseconds since 1970), and
    that still lie there for readers of older versions. `sequence` counts the batches, `replaced` the compactions.
    """

    version: int = 0
    sequence: int = 0
    replaced: int = 0
    queries: dict[str, QueryProgress] = field(default_factory=dict)
    specs: dict[int, PartitionSpec] = field(default_factory=dict)
    schemas: dict[int, Schema] = field(default_factory=dict)
    files: dict[str, DataFile] = field(default_factory=dict)
    removed: dict[str, int] = field(default_factory=dict)

    def apply(self, commit: Commit, where: str) -> None:
        """Go on to the commit's version. Raises ManifestError, naming `where`, for one that does not fit."""
        self.check(commit, where)
        self.version = commit.version
        self.specs.update(commit.specs)
        self.schemas.update(commit.schemas)
        for path in commit.remove:
            del self.files[path]
            self.removed[path] = commit.time_ms
        for path in commit.forget:
            del self.removed[path]
        for each in commit.add:
            self.files[each.path] = each
        if commit.kind == APPEND:
            self.sequence = commit.sequence
            self.go_on(commit.query, commit.batch, commit.ranges)
        elif commit.kind == REPLACE:
            self.replaced = commit.sequence

    def go_on(self, query: str, batch: int, ranges: Ranges) -> None:
        """Note how far a query has come with a batch."""
        progress = self.queries.setdefault(query, QueryProgress(0, {}))
        progress.batch = max(progress.batch, batch)
        for topic, partitions in ranges.items():
            progress.ranges.setdefault(topic, {}).update(partitions)

    def starting_offsets(self) -> Offsets | None:
        """Where a query without a checkpoint goes on: after the first stretch of offsets of each topic-partition."""
        found = {
            topic: {partition: bounds[0][1] for partition, bounds in partitions.items()}
            for topic, partitions in self.archived().items()
        }
        return found or None

    def check(self, commit: Commit, where: str) -> None:
        """Raises ManifestError, naming `where`, for a commit that does not fit as the next version."""
        count = {APPEND: self.sequence, REPLACE: self.replaced}.get(commit.kind)
        if commit.version != self.version + 1:
            raise ManifestError(f"{where}: it is version {commit.version} and not {self.version + 1}")
        if count is not None and commit.sequence != count + 1:
            raise ManifestError(f"{where}: its sequence is {commit.sequence} and not {count + 1}")
        for path in (each.path for each in commit.add):
            if path in self.files or path in self.removed:
                raise ManifestError(f"{where}: it adds {path}, which is there")
        if len({each.path for each in commit.add}) != len(commit.add):
            raise ManifestError(f"{where}: it adds a file twice")
        for path in commit.remove:
            if path not in self.files:
                raise ManifestError(f"{where}: it removes {path}, which is not there")
        for path in commit.forget:
            if path not in self.removed:
                raise ManifestError(f"{where}: it forgets {path}, which was not removed")
        specs, schemas = self.specs.keys() | commit.specs, self.schemas.keys() | commit.schemas
        for each in commit.add:
            if each.spec_id not in specs or each.schema_id not in schemas:
                raise ManifestError(f"{where}: {each.path} has a spec or a schema that nothing tells of")

    def archived(self, but: str | None = None) -> dict[str, dict[int, list[tuple[int, int]]]]:
        """Offsets that are in the lake, by topic and partition: [start, end) in order, none touching the next.

        `but`: a query whose own offsets are left out.
        """
        found: dict[str, dict[int, list[tuple[int, int]]]] = {}
        for name, progress in self.queries.items():
            if name != but:
                for topic, partition, bounds in _each(progress.ranges):
                    found.setdefault(topic, {}).setdefault(partition, []).append(bounds)
        return {
            topic: {partition: _merged(bounds) for partition, bounds in partitions.items()}
            for topic, partitions in found.items()
        }

    def next_offsets(self) -> Offsets:
        """By topic and partition the offset that comes after all that are in the lake."""
        return {
            topic: {partition: bounds[-1][1] for partition, bounds in partitions.items()}
            for topic, partitions in self.archived().items()
        }

    def encoded(self) -> bytes:
        """A checkpoint's content: all of it."""
        table = {
            "format": FORMAT,
            "version": self.version,
            "sequence": self.sequence,
            "replaced": self.replaced,
            "queries": queries_to_json(self.queries),
            "specs": specs_to_json(self.specs),
            "schemas": schemas_to_json(self.schemas),
            "files": [each.to_json() for each in self.files.values()],
            "removed": self.removed,
        }
        return json.dumps(table, ensure_ascii=False, separators=(",", ":")).encode()

    @classmethod
    def decoded(cls, data: bytes, where: str) -> "LakeState":
        """The state that a checkpoint holds; `where` is its path. Raises ManifestError."""
        fields = Fields.parsed(data, where)
        check_format(fields)
        state = cls(
            version=fields.number("version", 1),
            sequence=fields.number("sequence"),
            replaced=fields.number("replaced"),
            specs=specs_from_json(fields),
            schemas=schemas_from_json(fields),
        )
        state.queries = queries_from_json(fields)
        for value in fields.values("files"):
            each = DataFile.from_json(fields.inner("files", value))
            if each.path in state.files or each.spec_id not in state.specs or each.schema_id not in state.schemas:
                raise fields.wrong("files", f"{each.path} is there twice, or has no spec or schema")
            state.files[each.path] = each
        for path, value in fields.table("removed").items():
            state.removed[data_path(fields, path)] = fields.whole("removed", value)
        return state


def queries_to_json(queries: Mapping[str, QueryProgress]) -> dict[str, object]:
    """As they stand in a checkpoint."""
    return {
        name: {"batch": progress.batch, "ranges": ranges_to_json(progress.ranges)} for name, progress in queries.items()
    }


def queries_from_json(fields: Fields) -> dict[str, QueryProgress]:
    """The field `queries`. Raises ManifestError."""
    found = {}
    for name, value in fields.table("queries").items():
        query = fields.inner("queries", value)
        found[name] = QueryProgress(query.number("batch"), ranges_from_json(query))
    return found


def _each(ranges: Ranges) -> Iterator[tuple[str, int, tuple[int, int]]]:
    for topic, partitions in ranges.items():
        for partition, bounds in partitions.items():
            yield topic, partition, bounds


def _merged(bounds: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same offsets in as few ranges as there can be."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(bounds):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found
