"""What a manifest says of a Parquet file: where it lies, how much is in it, and of which offsets and times."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from kavka.pipeline.lake.fields import Fields

Offsets: TypeAlias = Mapping[str, Mapping[int, int]]
"""By topic and partition."""

DATA: Final = "data/"
"""All data files' paths begin so, below the lake's folder."""

NO_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"
"""The name of a partition folder for rows without a value."""


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Offsets of one partition: `first` and `last` are both in it.

    `rows` may be fewer than lie between, and more where a job makes several rows of one record.
    """

    first: int
    last: int
    rows: int


@dataclass(frozen=True)
class Filter:
    """Which rows somebody wants; None: all. Bounds are half open, times microseconds since 1970 in UTC."""

    topic: str | None = None
    partition: int | None = None
    start_offset: int | None = None
    end_offset: int | None = None
    start_us: int | None = None
    end_us: int | None = None


@dataclass(frozen=True, slots=True)
class DataFile:
    """One Parquet file of the lake. Immutable.

    `path` is relative to the lake's folder. `partition` has the values of the folder's names by the fields of the
    partition spec `spec_id`, None for rows without one. Times are microseconds since 1970 in UTC, None where no row has
    one. `sequence` is the archive's count of its batches, 0 for a file that compaction made.
    """

    path: str
    rows: int
    size_bytes: int
    spec_id: int
    schema_id: int
    partition: Mapping[str, str | None]
    offsets: Mapping[str, Mapping[int, OffsetRange]]
    min_timestamp_us: int | None
    max_timestamp_us: int | None
    sequence: int = field(default=0)

    def may_hold(self, wanted: Filter) -> bool:
        """Whether rows that are wanted may be in it."""
        if wanted.start_us is not None and (self.max_timestamp_us is None or self.max_timestamp_us < wanted.start_us):
            return False
        if wanted.end_us is not None and (self.min_timestamp_us is None or self.min_timestamp_us >= wanted.end_us):
            return False
        return any(
            (wanted.topic is None or wanted.topic == topic)
            and (wanted.partition is None or wanted.partition == partition)
            and (wanted.start_offset is None or offsets.last >= wanted.start_offset)
            and (wanted.end_offset is None or offsets.first < wanted.end_offset)
            for topic, partitions in self.offsets.items()
            for partition, offsets in partitions.items()
        )

    def to_json(self) -> dict[str, object]:
        """As it stands in the manifest."""
        offsets = {
            topic: {str(partition): [each.first, each.last, each.rows] for partition, each in partitions.items()}
            for topic, partitions in self.offsets.items()
        }
        return {
            "path": self.path,
            "rows": self.rows,
            "size_bytes": self.size_bytes,
            "spec": self.spec_id,
            "schema": self.schema_id,
            "sequence": self.sequence,
            "partition": dict(self.partition),
            "offsets": offsets,
            "timestamps_us": [self.min_timestamp_us, self.max_timestamp_us],
        }

    @classmethod
    def from_json(cls, fields: Fields) -> "DataFile":
        """Raises ManifestError."""
        times = fields.values("timestamps_us", 2)
        low, high = (None if each is None else fields.whole("timestamps_us", each) for each in times)
        found = cls(
            path=data_path(fields, fields.text("path")),
            rows=fields.number("rows", least=1),
            size_bytes=fields.number("size_bytes"),
            spec_id=fields.number("spec"),
            schema_id=fields.number("schema"),
            sequence=fields.number("sequence"),
            partition={name: _optional_text(fields, value) for name, value in fields.table("partition").items()},
            offsets=_offsets(fields),
            min_timestamp_us=low,
            max_timestamp_us=high,
        )
        if (low is None) != (high is None) or (low is not None and high is not None and low > high):
            raise fields.wrong("timestamps_us", "are no bounds")
        counted = sum(each.rows for partitions in found.offsets.values() for each in partitions.values())
        if counted != found.rows:
            raise fields.wrong("offsets", f"count {counted} rows and not {found.rows}")
        return found


def data_path(fields: Fields, path: str) -> str:
    """The path of a data file, as it is given. Raises ManifestError for one that leads out of the lake's data."""
    parts = path.split("/")
    if not path.startswith(DATA) or "\0" in path or any(part in ("", ".", "..") for part in parts):
        raise fields.wrong("path", f"{path!r} does not lie in {DATA}")
    return path


def _optional_text(fields: Fields, value: object) -> str | None:
    if value is not None and not isinstance(value, str):
        raise fields.wrong("partition", f"{value!r} is not a text")
    return value


def _offsets(fields: Fields) -> dict[str, dict[int, OffsetRange]]:
    found: dict[str, dict[int, OffsetRange]] = {}
    for topic, partitions in fields.by_partition("offsets").items():
        found[topic] = {}
        for partition, value in partitions.items():
            first, last, rows = fields.numbers("offsets", value, 3)
            if first > last or rows < 1:
                raise fields.wrong("offsets", f"{value!r} is no range")
            found[topic][partition] = OffsetRange(first, last, rows)
    return found
