"""Which offsets a batch has is durable before anything is done by it: after a power cut it is the same batch."""

import os
from pathlib import Path
from typing import Any

import pytest

from kavka.pipeline.running.job_file import read_job
from kavka.pipeline.running.places import Places
from kavka.pipeline.running.query import Query
from kavka.pipeline.running.sink import RunContext
from kavka.pipeline.running.stopping import Stopping
from kavka.storage.files import AnyPath, Files

JOB = """
[job]
name = "visits"
checkpoint = "state"
[source]
bootstrap.servers = "localhost:9092"
subscribe = "page_visits"
[[sinks]]
kind = "archive"
path = "lake"
"""


class NotingFiles(Files):
    """Knows which files and folders were made durable."""

    def __init__(self) -> None:
        super().__init__()
        self.durable: set[Path] = set()

    def fsync_file(self, path: AnyPath) -> None:
        super().fsync_file(path)
        self.durable.add(Path(os.fsdecode(path)))

    def fsync_directory(self, path: AnyPath) -> None:
        super().fsync_directory(path)
        self.durable.add(Path(os.fsdecode(path)))


class LookingSink:
    """Notes what was durable when a batch came."""

    def __init__(self, files: NotingFiles) -> None:
        self.files = files
        self.durable: list[set[Path]] = []

    def open(self, run: RunContext) -> None: ...

    def write(self, batch: object, batch_id: int) -> None:
        self.durable.append(set(self.files.durable))

    def close(self) -> None: ...


def planned(folder: Path, name: str, batch_id: int) -> set[Path]:
    """A file as Spark writes it, with its checksums: what has to be durable."""
    path = folder / name / str(batch_id)
    path.parent.mkdir(parents=True, exist_ok=True)
    checksums = path.with_name(f".{batch_id}.crc")
    path.write_text("v1")
    checksums.write_bytes(b"crc")
    return {folder, path.parent, path, checksums}


def test_a_sink_is_given_no_batch_that_spark_might_plan_anew(tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text(JOB)
    job, places, files = read_job(tmp_path / "job.toml"), Places(tmp_path / "state"), NotingFiles()
    folder, sink = places.query("archive"), LookingSink(files)
    query = Query(job, job.sinks[0], sink, None, places, Stopping(), files)
    rows: Any = None

    first = planned(folder, "offsets", 0)
    query._batch(rows, 0)
    second = planned(folder, "commits", 0) | planned(folder, "offsets", 1)
    query._batch(rows, 1)
    assert sink.durable == [first, first | second]
    with pytest.raises(FileNotFoundError):
        query._batch(rows, 2)
    assert len(sink.durable) == 2
