"""How a lake's rows are laid into folders: by the UTC date of a time, its hour, or a column's value."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kavka.pipeline.lake.errors import LakeError

TRANSFORMS: Final = ("day", "hour", "identity")
NAMES: Final = {"day": "date", "hour": "hour"}

_WRITTEN: Final = re.compile(r"(?:(day|hour)\((.+)\)|([^()]+))(?: as (\w+))?")
_NAME: Final = re.compile(r"\w{1,255}")
_MAX_FIELDS: Final = 8
MOST_VALUE_BYTES: Final = 150
"""Of a value in a folder's name, as Spark escapes it. File systems end at 255, with the field's name."""
_MOST_NAME_BYTES: Final = 100


@dataclass(frozen=True, slots=True)
class PartitionField:
    """One level of folders `name=VALUE`.

    `transform` says how the value comes from `column`: `day` (2026-11-23) and `hour` (2026-11-23-05) of a timestamp, in
    UTC, or `identity`.
    """

    name: str
    column: str
    transform: str


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """The levels of folders, from the outermost; none: all files in one folder."""

    fields: tuple[PartitionField, ...]

    def to_json(self) -> list[list[str]]:
        """As it stands in the manifest."""
        return [[each.name, each.column, each.transform] for each in self.fields]


def parsed_spec(written: Sequence[str]) -> PartitionSpec:
    """The spec of settings such as `day(timestamp)`, `hour(seen_at) as seen` or `topic`. Raises LakeError."""
    fields = []
    for each in written:
        found = _WRITTEN.fullmatch(each.strip())
        if found is None:
            raise LakeError(f"partition_by: {each!r} is neither day(COLUMN), hour(COLUMN) nor a column's name")
        transform, column, plain, name = found[1] or "identity", found[2] or found[3], found[3], found[4]
        if name is None:
            name = NAMES.get(transform) or f"by_{re.sub(r'[^A-Za-z0-9_]', '_', plain)}"
        if len(name.encode()) > _MOST_NAME_BYTES:
            raise LakeError(f"partition_by: {name} is longer than {_MOST_NAME_BYTES} bytes: {each} as SHORTER")
        fields.append(PartitionField(name, column.strip(), transform))
    return checked_spec(fields)


def checked_spec(fields: Sequence[PartitionField]) -> PartitionSpec:
    """The spec of these fields. Raises LakeError where it cannot be one."""
    names = [each.name.lower() for each in fields]
    if len(fields) > _MAX_FIELDS or len(set(names)) != len(names):
        raise LakeError(f"partition_by: at most {_MAX_FIELDS} fields with different names, not {', '.join(names)}")
    for each in fields:
        if each.transform not in TRANSFORMS or not _NAME.fullmatch(each.name) or not each.column:
            raise LakeError(f"partition_by: {each.transform}({each.column}) as {each.name} is no field of folders")
    return PartitionSpec(tuple(fields))


BY_DATE: Final = PartitionSpec((PartitionField("date", "timestamp", "day"),))
"""By the UTC date of the record's timestamp."""
