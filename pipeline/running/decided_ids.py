"""What was decided about schema ids that the registry did not have: once, for all queries of a job, and for good.

Each sink's query, and that of the dead letters, decodes by itself, at its own time. Had each asked the registry for
itself, an id that got known in between would have its rows in the table and among the dead letters, or in neither.

A row whose id nobody has is bad, and so are all that lie before it. The first one that is good makes the id known for
good: from then on who does not find it waits for it. Records come in the order of their offsets, so that each row is
the same to all who read it, now or years later. A dead letter that is sent again lies behind those that are bad.
"""

import json
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from kavka.pipeline.running.query_files import CheckpointError
from kavka.storage.files import Files

Ends = dict[str, dict[int, int]]
"""By topic and partition the offset before which rows are bad."""

Reader = TypeVar("Reader")

_MOST_IDS: Final = 1000
"""Who may write to a topic may name any ids: those beyond are bad before the furthest row of such."""


class Place(NamedTuple):
    """Of a row that is bad."""

    topic: str
    partition: int
    offset: int


class BadBefore(NamedTuple):
    """Where rows are bad: by id, and of those that are not named. Picklable."""

    by_id: Mapping[int, Ends]
    others: Ends

    def ends(self, schema_id: int) -> Ends:
        """Of an id's rows."""
        return self.by_id.get(schema_id, self.others)


class DecidedIds:
    """Kept in a file of the job's own folder. One for all queries of a run. Any thread."""

    def __init__(self, file: Path | None = None, files: Files | None = None) -> None:
        """No file: forgotten with the object. Raises CheckpointError for a file that is none of these, OSError."""
        self._file: Final = file
        self._files: Final = files or Files()
        self._lock: Final = threading.Lock()
        self._known: Final[dict[int, Ends]] = {}
        self._dead: Final[dict[int, Ends]] = {}
        self._others: Final[Ends] = {}
        self._readers: Final[dict[str, Any]] = {}
        """By columns; of this run alone."""
        self._is_written = True
        if file is None:
            return
        try:
            self._read(json.loads(file.read_text()))
        except FileNotFoundError:
            pass
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CheckpointError(f"{file}: it is not what a run writes there: {error}") from None

    def reader(self, column: str, found: Reader) -> Reader:
        """The reader's schema that a query was the first to find for a column: all others go by it, too."""
        with self._lock:
            reader: Reader = self._readers.setdefault(column, found)
            return reader

    def is_known(self, schema_id: int) -> bool:
        """Whether rows of it were good before."""
        with self._lock:
            return schema_id in self._known

    @property
    def bad_before(self) -> BadBefore:
        """As it is now."""
        with self._lock:
            return BadBefore({each: self._ends(each) for each in (*self._known, *self._dead)}, _copy(self._others))

    def make_known(self, schema_ids: Iterable[int]) -> None:
        """Before the first row of them counts as good. Raises OSError."""
        with self._lock:
            new = {each: self._ends(each) for each in schema_ids if each not in self._known}
            if not new and self._is_written:
                return
            self._is_written = False
            self._known.update(new)
            for each in new:
                self._dead.pop(each, None)
            self._write()

    def make_bad(self, places: Mapping[int, Iterable[Place]]) -> None:
        """Rows of ids, before they count as bad; ids that are known stay it. Raises OSError."""
        with self._lock:
            self._is_written = False
            for schema_id, those in places.items():
                if schema_id in self._known:
                    continue
                if schema_id in self._dead or len(self._dead) < _MOST_IDS:
                    ends = self._dead.setdefault(schema_id, {})
                else:
                    ends = self._others
                for topic, partition, offset in those:
                    _extend(ends, topic, partition, offset + 1)
            self._write()

    def _ends(self, schema_id: int) -> Ends:
        if schema_id in self._known:
            return _copy(self._known[schema_id])
        found = _copy(self._others)
        for topic, partitions in self._dead.get(schema_id, {}).items():
            for partition, end in partitions.items():
                _extend(found, topic, partition, end)
        return found

    def _write(self) -> None:
        # Where it fails nobody goes on by what is not kept: whoever comes next writes it.
        if self._file is not None:
            document = {"known": self._known, "dead": self._dead, "others": self._others}
            self._files.write_atomically(self._file, json.dumps(document).encode())
        self._is_written = True

    def _read(self, document: Any) -> None:
        for name, into in (("known", self._known), ("dead", self._dead)):
            into.update({int(each): _ends_of(ends) for each, ends in document[name].items()})
        self._others.update(_ends_of(document["others"]))


def _ends_of(document: Any) -> Ends:
    return {str(topic): {int(n): int(end) for n, end in ends.items()} for topic, ends in document.items()}


def _copy(ends: Ends) -> Ends:
    return {topic: dict(partitions) for topic, partitions in ends.items()}


def _extend(ends: Ends, topic: str, partition: int, end: int) -> None:
    partitions = ends.setdefault(topic, {})
    partitions[partition] = max(partitions.get(partition, 0), end)
