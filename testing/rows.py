"""What a test puts into a topic, and what it finds there."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, overload

MOST_SHOWN: Final = 50
"""Records, in a message of a failed assertion."""
LONGEST_SHOWN: Final = 120
"""Characters of a key or a value there."""


class Row(NamedTuple):
    """A record to be produced, where a value alone does not say enough.

    Key and value: bytes; text, which goes as UTF-8; None for none (a tombstone); anything else goes as JSON.
    """

    value: Any
    key: Any = None
    headers: Mapping[str, bytes | None] = {}
    partition: int | None = None
    """None: as the key says."""
    timestamp_ms: int | None = None
    """None: the clock of the test's brokers."""


AnyRow: TypeAlias = Any
"""A Row; a pair (key, value); or a value."""


class Record(NamedTuple):
    """A record that lies in a topic."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]

    @property
    def text(self) -> str | None:
        """The value as UTF-8; None for a tombstone."""
        return None if self.value is None else self.value.decode()

    @property
    def json(self) -> Any:
        """What the value says in JSON; None for a tombstone."""
        return None if self.value is None else json.loads(self.value)


class Records(Sequence[Record]):
    """All records of a topic, by partition and offset. Shown in full by what pytest prints of a failed assertion."""

    def __init__(self, topic: str, partition_count: int, found: Iterable[Record]) -> None:
        self.topic: Final = topic
        self._partition_count = partition_count
        self._found: Final = list(found)

    @property
    def keys(self) -> list[bytes | None]:
        return [each.key for each in self._found]

    @property
    def values(self) -> list[bytes | None]:
        return [each.value for each in self._found]

    @property
    def texts(self) -> list[str | None]:
        """The values as UTF-8."""
        return [each.text for each in self._found]

    def of(self, partition: int) -> list[Record]:
        """Those of one partition."""
        return [each for each in self._found if each.partition == partition]

    @overload
    def __getitem__(self, index: int) -> Record: ...

    @overload
    def __getitem__(self, index: slice) -> list[Record]: ...

    def __getitem__(self, index: int | slice) -> Record | list[Record]:
        return self._found[index]

    def __len__(self) -> int:
        return len(self._found)

    def __eq__(self, other: object) -> bool:
        """The same records; of a list, the same of `Record`s."""
        if isinstance(other, Records):
            return self._found == other._found
        return self._found == other

    __hash__ = None  # type: ignore[assignment]  # as for lists

    def __repr__(self) -> str:
        return f"<{self.shown()}>"

    def shown(self) -> str:
        """What is in the topic, a line for each record."""
        partitions = "partition" if self._partition_count == 1 else "partitions"
        head = f"topic {self.topic}: {len(self._found)} records in {self._partition_count} {partitions}"
        lines = [
            f"  {each.partition}@{each.offset} t={each.timestamp_ms} {_shown(each.key)}: {_shown(each.value)}"
            + (f" {dict(each.headers)!r}" if each.headers else "")
            for each in self._found[:MOST_SHOWN]
        ]
        if len(self._found) > MOST_SHOWN:
            lines.append(f"  ... and {len(self._found) - MOST_SHOWN} more")
        return "\n".join([head, *lines])


def row_of(given: AnyRow) -> Row:
    """What was given as a row, key and value as they go out."""
    if isinstance(given, Row):
        row = given
    elif isinstance(given, tuple) and len(given) == 2:
        row = Row(given[1], key=given[0])
    else:
        row = Row(given)
    return row._replace(key=outgoing(row.key), value=outgoing(row.value))


def outgoing(given: Any) -> bytes | None:
    """Raises TypeError for what is neither bytes nor text, and cannot be put in JSON."""
    if given is None or isinstance(given, bytes):
        return given
    if isinstance(given, str):
        return given.encode()
    return json.dumps(given, separators=(",", ":")).encode()


def _shown(data: bytes | None) -> str:
    if data is None:
        return "-"
    text = repr(data)[1:]
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}... ({len(data)} bytes)"
