"""Fields of JSON that somebody else may have written: each is taken by its kind, and an error names the file."""

import json
from collections.abc import Mapping
from typing import Final

from kavka.pipeline.lake.errors import ManifestError

MAX_FILE_BYTES: Final = 1 << 30
"""No file of a manifest is longer: a million data files' entries take half of it."""

_MAX_NUMBER: Final = 2**63 - 1


class Fields:
    """A table of JSON, read field by field. Each method raises ManifestError."""

    def __init__(self, table: Mapping[str, object], where: str) -> None:
        """`where`: the file's path, for errors."""
        self._table = table
        self._where = where

    @classmethod
    def parsed(cls, data: bytes, where: str) -> "Fields":
        """The table that a file holds."""
        try:
            found = json.loads(data, parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            raise ManifestError(f"{where}: it is not JSON ({error or type(error).__name__})") from None
        if not isinstance(found, dict):
            raise ManifestError(f"{where}: it holds no table of JSON")
        return cls(found, where)

    def has(self, name: str) -> bool:
        """Whether the field is there."""
        return name in self._table

    def text(self, name: str) -> str:
        """A text."""
        found = self._table.get(name)
        if not isinstance(found, str):
            raise self.wrong(name, f"{_short(found)} is not a text")
        return found

    def number(self, name: str, least: int = 0) -> int:
        """A whole number of 63 bits, from `least` on."""
        found = self.whole(name, self._table.get(name))
        if found < least:
            raise self.wrong(name, f"{found} is less than {least}")
        return found

    def whole(self, name: str, value: object) -> int:
        """A value of the field `name` that has to be a whole number."""
        if not isinstance(value, int) or isinstance(value, bool) or not -_MAX_NUMBER <= value <= _MAX_NUMBER:
            raise self.wrong(name, f"{_short(value)} is no whole number of 63 bits")
        return value

    def values(self, name: str, count: int | None = None) -> list[object]:
        """A list, of `count` values where that is given."""
        found = self._table.get(name)
        if not isinstance(found, list) or (count is not None and len(found) != count):
            raise self.wrong(name, f"{_short(found)} is no list" + ("" if count is None else f" of {count}"))
        return found

    def numbers(self, name: str, value: object, count: int) -> list[int]:
        """A value of the field `name` that has to be a list of so many numbers, none negative."""
        if not isinstance(value, list) or len(value) != count:
            raise self.wrong(name, f"{_short(value)} is no list of {count} numbers")
        found = [self.whole(name, each) for each in value]
        if min(found) < 0:
            raise self.wrong(name, f"{_short(value)} has a negative number")
        return found

    def texts(self, name: str) -> list[str]:
        """A list of texts."""
        listed = self.values(name)
        found = [each for each in listed if isinstance(each, str)]
        if len(found) != len(listed):
            raise self.wrong(name, "is no list of texts")
        return found

    def table(self, name: str) -> dict[str, object]:
        """A table."""
        found = self._table.get(name)
        if not isinstance(found, dict):
            raise self.wrong(name, f"{_short(found)} is no table")
        return found

    def inner(self, name: str, value: object) -> "Fields":
        """A value of the field `name` that has to be a table."""
        if not isinstance(value, dict):
            raise self.wrong(name, f"{_short(value)} is no table")
        return Fields(value, self._where)

    def by_partition(self, name: str) -> dict[str, dict[int, object]]:
        """A table of topics, each a table by partition."""
        found: dict[str, dict[int, object]] = {}
        for topic, partitions in self.table(name).items():
            if not isinstance(partitions, dict):
                raise self.wrong(name, f"{_short(partitions)} is no table by partition")
            found[topic] = {self.key(name, partition): value for partition, value in partitions.items()}
        return found

    def key(self, name: str, text: str) -> int:
        """A key in the field `name` that stands for a whole number."""
        if not (text.isascii() and text.isdigit() and len(text) <= 10 and str(int(text)) == text):
            raise self.wrong(name, f"{_short(text)} is no number")
        return int(text)

    def wrong(self, name: str, problem: str) -> ManifestError:
        """What to raise about a field."""
        return ManifestError(f"{self._where}: {name}: {problem}")


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is no number of JSON")


def _short(value: object) -> str:
    text = repr(value) if isinstance(value, str | int | float | bool | None) else type(value).__name__
    return text if len(text) <= 60 else f"{text[:57]}..."
