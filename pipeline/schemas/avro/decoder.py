"""The format Avro: what a reader's schema makes of values that any writer's schema describes."""

from typing import Any, Final

import numpy as np
import pyarrow as pa

from kavka.pipeline.schemas.avro.building import Builder
from kavka.pipeline.schemas.avro.kernel import FAILURES, walk
from kavka.pipeline.schemas.avro.program import Program
from kavka.pipeline.schemas.avro.resolving import misfit, unseen_fields
from kavka.pipeline.schemas.avro.tree import Node, tree_of
from kavka.pipeline.schemas.avro.types import arrow_type
from kavka.pipeline.schemas.decoded import reason_of
from kavka.pipeline.schemas.errors import SchemaUnusableError, UnfitValueError
from kavka.pipeline.schemas.registry.schema import WholeSchema
from kavka.pipeline.schemas.wire import HEADER_SIZE_BYTES


class AvroFormat:
    """A reader's schema. Raises SchemaUnusableError if no table can be made of it."""

    def __init__(self, reader: WholeSchema) -> None:
        self._reader: Final = tree_of(reader)
        self.type: Final = arrow_type(self._reader)

    def writer(self, schema: WholeSchema) -> "AvroWriter":
        """Decodes values of a writer's schema. Raises SchemaUnusableError if these cannot be read as the reader's."""
        tree = tree_of(schema)
        if reason := misfit(tree, self._reader):
            raise SchemaUnusableError(reason)
        return AvroWriter(tree, self._reader)


class AvroWriter:
    """Decodes values of one writer's schema. One thread's."""

    def __init__(self, writer: Node, reader: Node) -> None:
        self._writer: Final = writer
        self._reader: Final = reader
        self._program: Final = Program(writer)
        self.unseen: Final = unseen_fields(writer, reader)

    def decode(self, values: pa.Array) -> tuple[pa.Array, dict[int, str]]:
        """Framed values without nulls. The array has a null, and the reasons an entry, for each that does not fit."""
        _, offsets_buffer, data = values.buffers()
        offsets = np.frombuffer(offsets_buffer, np.int32)[values.offset : values.offset + len(values) + 1]
        offsets = offsets.astype(np.int64)
        failed = np.zeros(len(values), np.int64)
        arrays = (np.frombuffer(data, np.uint8), offsets[:-1] + HEADER_SIZE_BYTES, offsets[1:])
        program = self._program
        counts = np.zeros(program.stream_count, np.int64)
        walk(*arrays, program.rows, program.jumps, counts, np.zeros(0, np.int64), False, failed)
        bounds = np.zeros(program.stream_count + 1, np.int64)
        np.cumsum(counts, out=bounds[1:])
        numbers = np.empty(int(bounds[-1]), np.int64)
        walk(*arrays, program.rows, program.jumps, bounds[:-1].copy(), numbers, True, failed)
        good = np.flatnonzero(failed == 0)
        try:
            built = Builder(program, data, numbers, bounds).build(self._writer, self._reader, len(good))
        except (UnfitValueError, pa.ArrowException, ValueError, ArithmeticError) as error:
            return self._by_halves(values, error)
        return self._with_failed(built, failed, good)

    def _by_halves(self, values: pa.Array, error: Exception) -> tuple[pa.Array, dict[int, str]]:
        """The bytes were right, but a value was not, as a text that is no UTF-8: whole arrays are checked for it."""
        if len(values) == 1:
            return pa.nulls(1, arrow_type(self._reader)), {0: reason_of(error)}
        middle = len(values) // 2
        left, reasons = self.decode(values.slice(0, middle))
        right, moved = self.decode(values.slice(middle))
        return pa.concat_arrays([left, right]), reasons | {middle + row: reason for row, reason in moved.items()}

    def _with_failed(
        self, built: pa.Array, failed: "np.ndarray[Any, Any]", good: "np.ndarray[Any, Any]"
    ) -> tuple[pa.Array, dict[int, str]]:
        if len(good) == len(failed):
            return built, {}
        places = np.zeros(len(failed), np.int64)
        places[good] = np.arange(len(good))
        array = built.take(pa.array(places, mask=failed != 0))
        reasons = {}
        for row in np.flatnonzero(failed).tolist():
            at, failure = divmod(int(failed[row]), 16)
            where = self._program.path(at)
            reasons[row] = f"{where}: {FAILURES[failure]}" if where else FAILURES[failure]
        return array, reasons
