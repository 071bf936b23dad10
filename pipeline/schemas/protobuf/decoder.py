"""The format Protobuf: values of any writer's schema read by a reader's message, field numbers deciding."""

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from kavka.pipeline.schemas.decoded import reason_of
from kavka.pipeline.schemas.errors import SchemaUnusableError, UnfitValueError
from kavka.pipeline.schemas.protobuf.building import MessageColumns
from kavka.pipeline.schemas.protobuf.fitting import Comparison
from kavka.pipeline.schemas.protobuf.linking import linked, message_at, message_of
from kavka.pipeline.schemas.registry.schema import WholeSchema
from kavka.pipeline.schemas.wire import HEADER_SIZE_BYTES, message_indexes

_MOST_BYTES_AT_ONCE: Final = 4 << 20
"""Of values that are messages at the same time: a hostile one takes some fifty times its bytes."""


class ProtobufFormat:
    """A reader's message. Raises SchemaUnusableError if no table can be made of it."""

    def __init__(self, reader: WholeSchema, message: str | None) -> None:
        self._reader: Final = message_of(linked(reader), message)
        self._columns: Final = MessageColumns(self._reader)
        self.type: Final = self._columns.type

    def writer(self, schema: WholeSchema) -> "ProtobufWriter":
        """Raises SchemaUnusableError if its messages cannot be read."""
        return ProtobufWriter(linked(schema), self._reader, self._columns)


class ProtobufWriter:
    """Decodes values of one writer's schema. One thread's."""

    def __init__(self, file: Any, reader: Any, columns: MessageColumns) -> None:
        self._file: Final = file
        self._reader: Final = reader
        self._columns: Final = columns
        self._parse: Final = GetMessageClass(reader).FromString
        self._places: dict[tuple[int, ...], str | None] = {}
        written = self._written_message()
        comparison = None if written is None else Comparison(written, reader)
        if comparison is not None and comparison.misfits:
            raise SchemaUnusableError(comparison.misfits[0])
        self.unseen: Final = comparison.unseen if comparison is not None else []

    def decode(self, values: pa.Array) -> tuple[pa.Array, dict[int, str]]:
        """Framed values without nulls. The array has a null, and the reasons an entry, for each that does not fit."""
        parts: list[pa.Array] = []
        reasons: dict[int, str] = {}
        begin = 0
        while begin < len(values):
            count = _that_many(values, begin)
            part, unfit = self._decode(values.slice(begin, count).to_pylist())
            parts.append(part)
            reasons |= {begin + row: reason for row, reason in unfit.items()}
            begin += count
        return pa.concat_arrays(parts) if parts else pa.nulls(0, self._columns.type), reasons

    def _decode(self, values: Sequence[bytes]) -> tuple[pa.Array, dict[int, str]]:
        messages: list[Any] = []
        reasons: dict[int, str] = {}
        rows: list[int | None] = []
        for row, value in enumerate(values):
            try:
                message = self._parse(self._body(value))
            except (DecodeError, UnfitValueError, UnicodeDecodeError, RecursionError) as error:
                reasons[row] = f"no {self._reader.full_name}: {reason_of(error)}"
                rows.append(None)
                continue
            rows.append(len(messages))
            messages.append(message)
        built, unfit = self._built(messages)
        if not reasons:
            return built, unfit
        fitting = [row for row, place in enumerate(rows) if place is not None]
        return built.take(pa.array(rows, pa.int64())), reasons | {fitting[place]: each for place, each in unfit.items()}

    def _built(self, messages: Sequence[Any]) -> tuple[pa.Array, dict[int, str]]:
        try:
            return self._columns.build(messages), {}
        except (UnfitValueError, pa.ArrowException, ValueError, ArithmeticError, TypeError, RecursionError) as error:
            if len(messages) == 1:
                return pa.nulls(1, self._columns.type), {0: reason_of(error)}
        middle = len(messages) // 2
        left, reasons = self._built(messages[:middle])
        right, moved = self._built(messages[middle:])
        return pa.concat_arrays([left, right]), reasons | {middle + row: reason for row, reason in moved.items()}

    def _body(self, value: bytes) -> bytes:
        # The first message of its file, as nearly always.
        indexes: tuple[int, ...]
        if value[HEADER_SIZE_BYTES : HEADER_SIZE_BYTES + 1] == b"\0":
            indexes, position = (0,), HEADER_SIZE_BYTES + 1
        else:
            indexes, position = message_indexes(value)
        if indexes not in self._places:
            if len(self._places) > 1000:
                self._places.clear()
            found = message_at(self._file, indexes)
            self._places[indexes] = found.full_name if found is not None else None
        name = self._places[indexes]
        if name != self._reader.full_name:
            raise UnfitValueError(f"it is {name}" if name else "its schema has no such message")
        return value[position:]

    def _written_message(self) -> Any | None:
        """The reader's message in the writer's file; None where the file has none of that name."""
        try:
            return message_of(self._file, self._reader.full_name)
        except SchemaUnusableError:
            return None


def _that_many(values: pa.Array, begin: int) -> int:
    """How many values from one on are decoded together: one at least."""
    rest = values.slice(begin)
    count = len(rest)
    while count > 1 and rest.slice(0, count).nbytes > _MOST_BYTES_AT_ONCE:
        count = (count + 1) // 2
    return count
