"""Batches brought into a lake without Spark: files as Spark would stage them, published by the archive's own code."""

from collections.abc import Callable
from pathlib import Path

import pyarrow
import pyarrow.parquet

from kavka.pipeline.lake.layout import ARCHIVE, Layout
from kavka.pipeline.lake.manifest import Manifest
from kavka.pipeline.lake.partition_spec import BY_DATE
from kavka.pipeline.lake.publishing import Publisher, staged_files
from kavka.pipeline.lake.recovery import delete_leftovers, delete_staged
from kavka.storage.files import Files
from tests.support.lakes import rows


class KilledError(BaseException):
    """Stands for kill -9: nothing of the program's runs after it."""


def killed_at(step: str, count: int = 1) -> Callable[[str], None]:
    """An observer that raises KilledError when it hears of the step for the `count`th time."""
    left = [count]

    def reached(found: str) -> None:
        left[0] -= found == step
        if found == step and left[0] == 0:
            raise KilledError(step)

    return reached


def batch_tables(batch: int, rows_each: int = 10) -> list[pyarrow.Table]:
    """The rows of a batch: a table for each of two partitions."""
    return [rows(range(batch * rows_each, (batch + 1) * rows_each), partition) for partition in range(2)]


def archive_batches(lake: Path, until: int, reached: Callable[[str], None] = lambda _: None, query: str = "q") -> None:
    """Start as the sink does, and archive the batches up to `until` that are not there yet."""
    layout, files = Layout(lake), Files()
    manifest = Manifest(layout)
    manifest.create()
    state = manifest.refresh()
    delete_leftovers(layout, state, ARCHIVE, files)
    publisher = Publisher(layout, manifest, files, reached)
    first = state.queries[query].batch + 1 if query in state.queries else 0
    for batch in range(first, until):
        reached("staging")
        folder = layout.staging(ARCHIVE) / f"attempt-{batch}"
        for number, table in enumerate(batch_tables(batch)):
            path = folder / "_kavka_0=2024-10-04" / f"part-{number}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pyarrow.parquet.write_table(table, path)
        reached("staged")
        publisher.publish(staged_files(folder, BY_DATE), BY_DATE, query, batch)
        delete_staged(folder.parent, files)


def positions(table: pyarrow.Table) -> list[tuple[int, int]]:
    """Partition and offset of each row, in order."""
    return sorted(zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True))


def expected_positions(batches: int, rows_each: int = 10) -> list[tuple[int, int]]:
    """Those of so many batches."""
    return [(partition, offset) for partition in range(2) for offset in range(batches * rows_each)]


def listed(lake: Path) -> pyarrow.Table:
    """What a plain listing of the lake's folder finds."""
    paths = sorted(map(str, lake.glob("data/**/*.parquet")))
    return pyarrow.concat_tables([pyarrow.parquet.read_table(path, partitioning=None) for path in paths])
