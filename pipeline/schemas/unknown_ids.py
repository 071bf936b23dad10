"""Rows that are bad as the registry did not have their schema id when somebody decided so."""

from collections.abc import Collection
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kavka.pipeline.running.decided_ids import BadBefore, Ends
from kavka.pipeline.schemas.wire import framed

PLACE: Final = ("topic", "partition", "offset")
"""The columns by which it is decided."""


def no_schema(schema_id: int) -> str:
    """Why a row is bad."""
    return f"the registry has no schema with id {schema_id}"


def unknown_ids(values: pa.Array, batch: pa.RecordBatch, bad_before: BadBefore) -> dict[int, int]:
    """By row its id, where that makes it bad. The batch has the columns of PLACE."""
    found: dict[int, int] = {}
    if not bad_before.others and not any(bad_before.by_id.values()):
        return found
    limits = _Limits(batch)
    for schema_id, rows in framed(values).rows_of.items():
        if ends := bad_before.ends(schema_id):
            found |= dict.fromkeys(rows[limits.are_before(rows, ends)].tolist(), schema_id)
    return found


def without(values: pa.Array, rows: Collection[int]) -> pa.Array:
    """The values, with null for those of these rows."""
    if not rows:
        return values
    mask = np.zeros(len(values), bool)
    mask[list(rows)] = True
    return pc.if_else(pa.array(mask), pa.scalar(None, values.type), values)


class _Limits:
    """The places of a batch's rows."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        topics = batch.column("topic").dictionary_encode()
        self._topics: Final[list[str]] = topics.dictionary.to_pylist()
        self._codes: Final = topics.indices.to_numpy(zero_copy_only=False)
        self._partitions: Final = batch.column("partition").to_numpy(zero_copy_only=False)
        self._offsets: Final = batch.column("offset").to_numpy(zero_copy_only=False)

    def are_before(
        self, rows: "np.ndarray[tuple[int], np.dtype[np.int64]]", ends: Ends
    ) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
        """Whether each of the rows lies before where its partition's bad ones end."""
        codes, partitions, offsets = self._codes[rows], self._partitions[rows], self._offsets[rows]
        limits = np.zeros(len(rows), np.int64)
        for code, topic in enumerate(self._topics):
            for partition, end in ends.get(topic, {}).items():
                limits[(codes == code) & (partitions == partition)] = end
        found: np.ndarray[tuple[int], np.dtype[np.bool_]] = offsets < limits
        return found
