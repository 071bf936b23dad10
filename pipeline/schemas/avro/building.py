"""From the kernel's numbers to Arrow arrays of the reader's types; the second half of Avro's schema resolution."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kavka.pipeline.schemas.avro.program import Program
from kavka.pipeline.schemas.avro.resolving import branch_for, misfit, written_field
from kavka.pipeline.schemas.avro.tree import Node
from kavka.pipeline.schemas.avro.types import arrow_type, decimal_of, default_value, member_types
from kavka.pipeline.schemas.errors import UnfitValueError

Integers = np.ndarray[Any, np.dtype[np.int64]]


class Builder:
    """Builds one batch. Raises UnfitValueError or Arrow's errors if a value does not fit, without saying which."""

    def __init__(self, program: Program, data: pa.Buffer, numbers: Integers, bounds: Integers) -> None:
        """`bounds`: where in `numbers` each stream begins, and the last one ends."""
        self._program: Final = program
        self._data: Final = data
        self._numbers: Final = numbers
        self._bounds: Final = bounds

    def build(self, writer: Node, reader: Node, count: int) -> pa.Array:
        """`count` values of a node."""
        if writer.kind == "union":
            return self._from_union(writer, reader, count)
        if reader.kind == "union":
            branch = self._branch(writer, reader)
            return _united(reader, [(branch, np.arange(count), self.build(writer, branch, count))], count)
        if reason := misfit(writer, reader):
            raise UnfitValueError(reason)
        if writer.kind == "record":
            return self._record(writer, reader, count)
        if writer.kind == "array":
            offsets, total = self._offsets(writer)
            items = self.build(writer.item, reader.item, total)
            return pa.ListArray.from_arrays(pa.array(offsets), items, type=arrow_type(reader))
        if writer.kind == "map":
            offsets, total = self._offsets(writer)
            keys = self._binary(writer, 1).cast(pa.string())
            items = self.build(writer.item, reader.item, total)
            return pa.MapArray.from_arrays(pa.array(offsets), keys, items, type=arrow_type(reader))
        return self._logical(self._plain(writer, reader, count), reader)

    def _record(self, writer: Node, reader: Node, count: int) -> pa.Array:
        columns = []
        for field in reader.fields:
            written = written_field(field, writer)
            if written is not None:
                columns.append(self.build(written.node, field.node, count))
            else:
                one = pa.array([default_value(field.node, field.default)], type=arrow_type(field.node))
                columns.append(one.take(pa.array(np.zeros(count, np.int64))))
        if not columns:
            return pa.array([{}] * count, type=arrow_type(reader))
        return pa.StructArray.from_arrays(columns, fields=list(arrow_type(reader)))

    def _from_union(self, writer: Node, reader: Node, count: int) -> pa.Array:
        chosen = self._stream(writer)
        parts: list[tuple[Node, Integers, pa.Array]] = []
        for place, branch in enumerate(writer.branches):
            rows = np.flatnonzero(chosen == place)
            if not len(rows):
                continue
            target = self._branch(branch, reader) if reader.kind == "union" else reader
            parts.append((target, rows, self.build(branch, target, len(rows))))
        return _united(reader, parts, count)

    def _branch(self, writer: Node, reader: Node) -> Node:
        branch = branch_for(writer, reader)
        if branch is None:
            raise UnfitValueError(misfit(writer, reader) or f"{reader.path}: no branch takes it")
        return branch

    def _plain(self, writer: Node, reader: Node, count: int) -> pa.Array:
        kind = writer.kind
        if kind == "null":
            return pa.nulls(count)
        if kind in ("string", "bytes"):
            return self._binary(writer).cast(pa.string() if reader.kind == "string" else pa.binary())
        numbers = self._stream(writer)
        if kind == "fixed":
            return self._slices(numbers, np.full(len(numbers), writer.size_bytes))
        if kind == "enum":
            return self._enum(writer, reader, numbers)
        if kind == "boolean":
            return pa.array(numbers != 0)
        if kind == "float":
            return pa.array(numbers.astype(np.uint32).view(np.float32)).cast(arrow_type(reader))
        if kind == "double":
            return pa.array(numbers.view(np.float64))
        wanted = {"int": pa.int32(), "long": pa.int64(), "float": pa.float32(), "double": pa.float64()}[reader.kind]
        return pa.array(numbers).cast(wanted, safe=False)

    def _enum(self, writer: Node, reader: Node, numbers: Integers) -> pa.Array:
        symbols: list[str] = []
        for place, symbol in enumerate(writer.symbols):
            read = symbol if symbol in reader.symbols else reader.default_symbol
            if read is None and (numbers == place).any():
                raise UnfitValueError(f"{reader.path or reader.name}: {symbol} is not one of the reader's symbols")
            symbols.append(read or "")
        return pa.array(symbols, pa.string()).take(pa.array(numbers))

    def _logical(self, raw: pa.Array, reader: Node) -> pa.Array:
        if not reader.logical:
            return raw
        wanted = arrow_type(reader)
        if reader.logical == "date":
            return raw.view(pa.date32())
        if reader.logical == "decimal":
            return pa.array([_decimal(each, reader) for each in raw.to_pylist()], type=wanted)
        unit = {"millis": "ms", "micros": "us", "nanos": "ns"}[reader.logical.rpartition("-")[2]]
        # Nanoseconds lose their last digits; milliseconds beyond the year 294,000 are an error.
        return raw.view(pa.timestamp(unit, wanted.tz)).cast(wanted, safe=unit != "ns")

    def _stream(self, node: Node, number: int = 0) -> Integers:
        stream = self._program.streams[id(node)] + number
        return self._numbers[self._bounds[stream] : self._bounds[stream + 1]]

    def _offsets(self, node: Node) -> tuple[np.ndarray[Any, np.dtype[np.int32]], int]:
        counts = self._stream(node)
        offsets = np.zeros(len(counts) + 1, np.int64)
        np.cumsum(counts, out=offsets[1:])
        if offsets[-1] > np.iinfo(np.int32).max:
            raise UnfitValueError(f"{node.path}: more items than a column can hold")
        return offsets.astype(np.int32), int(offsets[-1])

    def _binary(self, node: Node, number: int = 0) -> pa.Array:
        return self._slices(self._stream(node, number), self._stream(node, number + 1))

    def _slices(self, begins: Integers, sizes: Integers) -> pa.Array:
        """Slices of the data. They lie in order: with the bytes between them they are one array; half is taken."""
        count = len(begins)
        if not count:
            return pa.array([], pa.binary())
        edges = np.empty(2 * count, np.int32)
        edges[0::2] = begins
        edges[1::2] = begins + sizes
        both = pa.Array.from_buffers(pa.binary(), 2 * count - 1, [None, pa.py_buffer(edges), self._data])
        return both.take(pa.array(np.arange(0, 2 * count, 2)))


def _united(reader: Node, parts: Sequence[tuple[Node, Integers, pa.Array]], count: int) -> pa.Array:
    """Parts of `count` rows as one array of the reader's type; rows in no part, or of a null branch, are null."""
    if reader.kind != "union":
        return _spread([(rows, each) for _, rows, each in parts], arrow_type(reader), count)
    members = member_types(reader)
    if len(members) == 1:
        filled = [(rows, each.cast(members[0])) for branch, rows, each in parts if branch.kind != "null"]
        return _spread(filled, members[0], count)
    branches = [branch for branch in reader.branches if branch.kind != "null"]
    columns = [
        _spread([(rows, each) for branch, rows, each in parts if branch is wanted], kind, count)
        for wanted, kind in zip(branches, members, strict=True)
    ]
    given = np.zeros(count, bool)
    for branch, rows, _ in parts:
        given[rows] = branch.kind != "null"
    return pa.StructArray.from_arrays(columns, fields=list(arrow_type(reader)), mask=pa.array(~given))


def _spread(parts: Sequence[tuple[Integers, pa.Array]], kind: pa.DataType, count: int) -> pa.Array:
    if len(parts) == 1 and len(parts[0][0]) == count:
        return parts[0][1]
    if not parts:
        return pa.nulls(count, kind)
    places = np.full(count, -1, np.int64)
    begin = 0
    for rows, each in parts:
        places[rows] = np.arange(begin, begin + len(each))
        begin += len(each)
    whole = pa.concat_arrays([each for _, each in parts]) if len(parts) > 1 else parts[0][1]
    return whole.take(pc.replace_with_mask(pa.array(places), pa.array(places < 0), pa.scalar(None, pa.int64())))


def _decimal(data: bytes | None, node: Node) -> Decimal | None:
    return None if data is None else decimal_of(data, node.scale)
