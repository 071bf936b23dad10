"""A job's own state, one file a batch: what a batch came to is read when it comes again, and not worked out anew."""

import json
import os
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow
import pyarrow.parquet

from kavka.pipeline.running.sink import SinkError

_NOTE: Final = b"kavka.note"
_KEPT: Final = 2
"""States: that of the last batch, which may come again, and the one that it was made of."""


class Note(NamedTuple):
    """Beside a batch's state. `split_us` is the watermark by which the batch was split, `watermark_us` the next one's.

    `read`, `counted`, `late` are rows of this batch, `read_in_all` and its like of all batches up to it.
    """

    batch_id: int
    split_us: int
    watermark_us: int
    read: int = 0
    counted: int = 0
    late: int = 0
    read_in_all: int = 0
    counted_in_all: int = 0
    late_in_all: int = 0

    def following(self, read: int, late: int, latest_us: int | None, delay_us: int) -> "Note":
        """The next batch's: of so many rows, whose latest event time is this (None: none has one)."""
        watermark_us = self.watermark_us if latest_us is None else max(self.watermark_us, latest_us - delay_us)
        return Note(
            self.batch_id + 1,
            self.watermark_us,
            watermark_us,
            read,
            read - late,
            late,
            self.read_in_all + read,
            self.counted_in_all + read - late,
            self.late_in_all + late,
        )


class State(NamedTuple):
    """Groups that may change, or have changed in this batch, and the note."""

    note: Note
    groups: pyarrow.Table


class States:
    """Files `state-<batch>.parquet` in a folder. One writer at a time. Threads: one."""

    def __init__(self, directory: Path) -> None:
        """The folder is there."""
        self._directory: Final = directory

    def _path(self, batch_id: int) -> Path:
        return self._directory / f"state-{batch_id:020d}.parquet"

    def load(self, batch_id: int) -> State | None:
        """What `save` has kept; None where there is none. Raises SinkError for a file that is none of these."""
        path = self._path(batch_id)
        try:
            table = pyarrow.parquet.read_table(path, partitioning=None)
            note = json.loads((table.schema.metadata or {})[_NOTE])
            return State(Note(**note), table.replace_schema_metadata())
        except FileNotFoundError:
            return None
        except (pyarrow.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
            raise SinkError(f"{path} cannot be read: {error}; begin anew with a new checkpoint") from error

    def before(self, batch_id: int) -> State | None:
        """What the batch is to begin with; None for the first one. Raises SinkError when it is gone."""
        found = self.load(batch_id - 1)
        if found is None and batch_id > 0:
            raise SinkError(
                f"the state of batch {batch_id - 1} is not in {self._directory}: begin anew with a new checkpoint"
            )
        return found

    def save(self, state: State) -> None:
        """Keep it, whole or not at all, and forget those that nobody needs any more."""
        note: dict[str, Any] = state.note._asdict()
        table = state.groups.replace_schema_metadata({_NOTE: json.dumps(note).encode()})
        path = self._path(state.note.batch_id)
        new = path.with_suffix(".new")
        with new.open("wb") as file:
            pyarrow.parquet.write_table(table, file, compression="zstd")
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
        folder = os.open(self._directory, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        for old in sorted(self._directory.glob("state-*.parquet"))[:-_KEPT]:
            old.unlink(missing_ok=True)
