"""A lake as a reader has it, without Spark: the files that count, how far they go, and their rows by pyarrow.

lake = Lake("/srv/lake/visits")
lake.next_offsets()                                   # {"visits": {0: 1200, 1: 1187}}
lake.to_arrow(["offset", "value"], Filter(topic="visits", partition=0, start_offset=1000))
"""

import operator
import os
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from kavka.pipeline.lake.commit import Commit
from kavka.pipeline.lake.entries import DataFile, Filter, Offsets
from kavka.pipeline.lake.errors import LakeError
from kavka.pipeline.lake.layout import Layout, lake_folder
from kavka.pipeline.lake.manifest import Manifest
from kavka.storage.files import Files

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.dataset


class Lake:
    """The lake in a folder, at the version that was the newest when it was made or last refreshed. Owned by one thread.

    Whatever its writers do meanwhile, and wherever they are killed, it has whole batches, each once. The files of a
    version stay for the hours that the archive and `compact` keep them; after that reading them raises
    FileNotFoundError: refresh then. Raises LakeError for a folder without a lake, ManifestError, OSError.
    """

    def __init__(self, path: str | os.PathLike[str], files: Files | None = None) -> None:
        self.path = lake_folder(os.fspath(path))
        self._manifest = Manifest(Layout(self.path), files)
        if not (files or Files()).is_directory(self._manifest.layout.manifest):
            raise LakeError(f"{self.path}: there is no lake (no folder {self._manifest.layout.manifest})")
        self.refresh()

    @property
    def version(self) -> int:
        """The manifest's version; 0: nothing was archived yet."""
        return self._manifest.state.version

    def refresh(self) -> None:
        """Go on to the newest version."""
        self._manifest.refresh()

    def files(self, filters: Filter | None = None) -> list[DataFile]:
        """The files that may hold rows that are wanted, in the order of their paths."""
        found = self._manifest.state.files.values()
        return sorted((each for each in found if each.may_hold(filters or Filter())), key=lambda each: each.path)

    def next_offsets(self) -> Offsets:
        """By topic and partition, the offset after the last one that is in the lake."""
        return self._manifest.state.next_offsets()

    def archived(self) -> Mapping[str, Mapping[int, list[tuple[int, int]]]]:
        """By topic and partition the offsets that were archived, as ranges [start, end) in order.

        Offsets within that no file counts were no records, or were dropped by the job.
        """
        return self._manifest.state.archived()

    def commits(self) -> list[Commit]:
        """The versions that the manifest still has one by one, oldest first; earlier ones are in a checkpoint."""
        return self._manifest.commits()

    def schema(self, columns: Sequence[str] | None = None) -> "pyarrow.Schema":
        """The columns of all files; of these names alone, as far as there are such. Raises pyarrow.ArrowException."""
        import pyarrow

        schemas = self._schemas(self.files())
        if columns is not None:
            schemas = [pyarrow.schema([field for field in each if field.name in columns]) for each in schemas]
        return _schema(schemas)

    def dataset(self, filters: Filter | None = None) -> "pyarrow.dataset.Dataset":
        """The files that may hold wanted rows as a dataset of pyarrow; its schema has the columns of all files."""
        import pyarrow
        import pyarrow.dataset

        files = self.files(filters)
        if not self._manifest.state.files:
            return pyarrow.dataset.dataset(_no_rows())
        if not files:
            return pyarrow.dataset.dataset(_schema(self._schemas(self.files())).empty_table())
        paths = [str(self.path / each.path) for each in files]
        schema = _schema(self._schemas(files))
        return pyarrow.dataset.dataset(paths, schema=schema, format="parquet")

    def to_arrow(self, columns: Sequence[str] | None = None, filters: Filter | None = None) -> "pyarrow.Table":
        """The wanted rows, all in memory, in no order in particular; `dataset` gives them in pieces."""
        if not self._manifest.state.files:
            return _no_rows(columns)
        return self.dataset(filters).to_table(columns=columns, filter=row_filter(filters or Filter()))

    def _schemas(self, files: Sequence[DataFile]) -> "list[pyarrow.Schema]":
        """The schema of each kind of file, read from one of them."""
        import pyarrow.parquet

        examples = {each.schema_id: each for each in files}
        return [pyarrow.parquet.read_schema(self.path / examples[each].path) for each in sorted(examples)]


def row_filter(wanted: Filter) -> Any:
    """The filter as an expression of pyarrow's on the columns that say where a row comes from; None: all rows."""
    import pyarrow
    import pyarrow.dataset

    topic, partition, offset, timestamp = map(pyarrow.dataset.field, ("topic", "partition", "offset", "timestamp"))
    conditions = [
        topic == wanted.topic if wanted.topic is not None else None,
        partition == wanted.partition if wanted.partition is not None else None,
        offset >= wanted.start_offset if wanted.start_offset is not None else None,
        offset < wanted.end_offset if wanted.end_offset is not None else None,
        timestamp >= _time(wanted.start_us) if wanted.start_us is not None else None,
        timestamp < _time(wanted.end_us) if wanted.end_us is not None else None,
    ]
    given = [each for each in conditions if each is not None]
    return reduce(operator.and_, given) if given else None


def _time(value_us: int) -> Any:
    import pyarrow

    return pyarrow.scalar(value_us, pyarrow.timestamp("us", "UTC"))


def _no_rows(columns: Sequence[str] | None = None) -> "pyarrow.Table":
    """Of a lake that has no files yet: the columns of a topic's rows, and nobody knows what type others will have."""
    import pyarrow

    known = {
        "key": pyarrow.binary(),
        "value": pyarrow.binary(),
        "topic": pyarrow.string(),
        "partition": pyarrow.int32(),
        "offset": pyarrow.int64(),
        "timestamp": pyarrow.timestamp("us", "UTC"),
        "timestampType": pyarrow.int32(),
    }
    names = known if columns is None else columns
    return pyarrow.schema([(name, known.get(name, pyarrow.null())) for name in names]).empty_table()


def _schema(schemas: "list[pyarrow.Schema]") -> "pyarrow.Schema":
    """One with the columns of all."""
    import pyarrow

    unify: Callable[..., Any] = pyarrow.unify_schemas
    return unify(schemas, promote_options="permissive")
