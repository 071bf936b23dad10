"""Statistics of a Parquet file that Python cannot say: pyiceberg reads them all, and fails by the first such one.

Whoever produces may give a record a time of the year 10000, and bytes that a job calls a text need not be UTF-8.
"""

from pathlib import Path
from typing import Any, Final

import pyarrow
import pyarrow.parquet

_BATCH_ROWS: Final = 1 << 16
_REWRITTEN: Final = ".rewritten"


def leave_out_unsayable(path: Path, compression: str) -> bool:
    """Write the file anew without the statistics of columns that have such; whether there were any.

    The rows stay as they are. Nobody else reads the file yet. Raises OSError, pyarrow.ArrowException.
    """
    with pyarrow.parquet.ParquetFile(path) as file:
        unsayable, every = _columns(file.metadata)
        if not unsayable:
            return False
        # No row file's name: who is killed here leaves nothing that is taken for one.
        rewritten = path.with_name(f"_{path.name}{_REWRITTEN}")
        sayable = sorted(every - unsayable)
        with pyarrow.parquet.ParquetWriter(
            rewritten, file.schema_arrow, compression=compression, write_statistics=sayable or False
        ) as writer:
            for batch in file.iter_batches(_BATCH_ROWS):
                writer.write_batch(batch)
    rewritten.replace(path)
    return True


def _columns(metadata: Any) -> tuple[set[str], set[str]]:
    """(columns with statistics that cannot be said, all columns), by their paths."""
    unsayable, every = set(), set()
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for each in range(metadata.num_columns):
            column = group.column(each)
            every.add(column.path_in_schema)
            if not _is_sayable(column.statistics):
                unsayable.add(column.path_in_schema)
    return unsayable, every


def _is_sayable(statistics: Any) -> bool:
    if statistics is None or not statistics.has_min_max:
        return True
    try:
        return (statistics.min, statistics.max) is not None
    except (OverflowError, ValueError):
        return False
    except pyarrow.ArrowNotImplementedError:
        # Passed over by pyiceberg, too.
        return True
