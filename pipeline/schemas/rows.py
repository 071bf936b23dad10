"""Rows of a topic decoded: the function that runs in Spark's workers, from record batches to record batches."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kavka.pipeline.running.decided_ids import BadBefore
from kavka.pipeline.schemas.decoded import ColumnDecoder, Decoded
from kavka.pipeline.schemas.errors import SchemaChangedError
from kavka.pipeline.schemas.unknown_ids import no_schema, unknown_ids, without

REASON: Final = "reason"
CHANGED: Final = "_changed_schema"


def decoded_name(column: str) -> str:
    """What a column's decoded values are called beside its bytes."""
    return f"_decoded_{column}"


def missing_name(column: str) -> str:
    """Where it stands that a column's value waits for a schema id."""
    return f"_missing_schema_{column}"


class Rows:
    """Adds to each row its decoded columns, why it is bad, and what it waits for. Picklable.

    The bytes of what could be decoded are left out: only bad rows need them.
    """

    def __init__(
        self, decoders: Mapping[str, ColumnDecoder], bad_before: Mapping[str, BadBefore] | None = None
    ) -> None:
        """`bad_before`, of a column: which of its values are bad as the registry did not have their ids."""
        self._decoders: Final = dict(decoders)
        self._bad_before: Final = dict(bad_before or {})

    def added(self) -> pa.Schema:
        """The columns that come behind the source's."""
        decoded = [pa.field(decoded_name(column), decoder.type) for column, decoder in self._decoders.items()]
        missing = [pa.field(missing_name(column), pa.int32()) for column in self._decoders]
        return pa.schema([*decoded, *missing, pa.field(REASON, pa.string()), pa.field(CHANGED, pa.string())])

    def schema(self, source: pa.Schema) -> pa.Schema:
        """Of what comes out, for what comes in."""
        return pa.schema([*source, *self.added()])

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield self.decoded(batch)

    def decoded(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """One batch."""
        count = batch.num_rows
        schema = self.schema(batch.schema)
        reasons: dict[int, str] = {}
        changed: str | None = None
        arrays: dict[str, pa.Array] = dict(zip(batch.schema.names, batch.columns, strict=True))
        for column, decoder in self._decoders.items():
            values = arrays[column].cast(pa.binary())
            if column in self._bad_before:
                unknown = unknown_ids(values, batch, self._bad_before[column])
                reasons = {**{row: f"{column}: {no_schema(each)}" for row, each in unknown.items()}, **reasons}
                values = without(values, unknown)
            try:
                found = decoder.decode(values)
            except SchemaChangedError as error:
                changed = _sayable(str(error))
                found = Decoded(pa.nulls(count, decoder.type), {}, {})
            arrays[decoded_name(column)] = found.values
            arrays[missing_name(column)] = _sparse(found.missing, count, pa.int32())
            for row, reason in found.reasons.items():
                reasons.setdefault(row, _sayable(f"{column}: {reason}"))
        arrays[REASON] = _sparse(reasons, count, pa.string())
        arrays[CHANGED] = _sparse({} if changed is None or not count else {0: changed}, count, pa.string())
        for column in self._decoders:
            kept = arrays[column]
            arrays[column] = pc.if_else(pc.is_valid(arrays[REASON]), kept, pa.scalar(None, kept.type))
        return pa.RecordBatch.from_arrays([arrays[name] for name in schema.names], schema=schema)


def _sayable(text: str) -> str:
    """Reasons quote what came, a lone surrogate of JSON's too, which no column of text can hold."""
    return text.encode("utf-8", "backslashreplace").decode()


def _sparse(entries: Mapping[int, object], count: int, kind: pa.DataType) -> pa.Array:
    if not entries:
        return pa.nulls(count, kind)
    places = np.full(count, -1, np.int64)
    places[list(entries)] = np.arange(len(entries))
    return pa.array(list(entries.values()), kind).take(pa.array(places, mask=places < 0))
