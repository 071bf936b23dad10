"""Values in a registry's wire format: told apart by schema id, each kind decoded by itself, and put back in order."""

from collections.abc import Mapping
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa

from kavka.pipeline.schemas.decoded import Decoded
from kavka.pipeline.schemas.errors import SchemaChangedError, SchemaUnusableError
from kavka.pipeline.schemas.registry.schema import WholeSchema
from kavka.pipeline.schemas.wire import framed


class Writer(Protocol):
    """Decodes what was written with one schema."""

    @property
    def unseen(self) -> list[str]:
        """What it may hold that the reader's schema does not, by path."""

    def decode(self, values: pa.Array) -> tuple[pa.Array, dict[int, str]]:
        """Framed values, none of them null, and the reasons by row."""


class Format(Protocol):
    """Avro or Protobuf, with a reader's schema."""

    @property
    def type(self) -> pa.DataType: ...

    def writer(self, schema: WholeSchema) -> Writer:
        """Raises SchemaUnusableError."""


class RegisteredDecoder:
    """Decodes by the schemas it was given; it asks nobody for others. Picklable, for one thread at a time."""

    def __init__(
        self,
        format_name: str,
        reader: WholeSchema,
        known: Mapping[int, WholeSchema],
        refused: Mapping[int, str],
        *,
        message: str | None = None,
        fails_on_change: bool = False,
    ) -> None:
        """`refused`: ids whose values are bad, and why. Raises SchemaUnusableError if the reader's schema is that."""
        self._given: Final = (format_name, reader, dict(known), dict(refused), message, fails_on_change)
        self._known: Final = self._given[2]
        self._refused: Final = self._given[3]
        self._fails_on_change: Final = fails_on_change
        self._writers: dict[int, Writer | str] = {}
        self._format: Final = _format(format_name, reader, message)

    @property
    def type(self) -> pa.DataType:
        return self._format.type

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, self._given

    def decode(self, values: pa.Array) -> Decoded:
        """Raises SchemaChangedError where values may hold what the reader's schema does not, and that is to stop it."""
        rows_of, reasons = framed(values)
        missing: dict[int, int] = {}
        parts: list[pa.Array] = []
        places = np.full(len(values), -1, np.int64)
        begin = 0
        for schema_id, rows in rows_of.items():
            if schema_id not in self._known and schema_id not in self._refused:
                missing |= dict.fromkeys(rows.tolist(), schema_id)
                continue
            writer = self._writer(schema_id)
            if isinstance(writer, str):
                reasons |= dict.fromkeys(rows.tolist(), writer)
                continue
            array, unfit = writer.decode(values if len(rows) == len(values) else values.take(pa.array(rows)))
            reasons |= {int(rows[place]): reason for place, reason in unfit.items()}
            parts.append(array)
            places[rows] = np.arange(begin, begin + len(rows))
            begin += len(rows)
        if len(parts) == 1 and len(parts[0]) == len(values):
            return Decoded(parts[0], reasons, missing)
        if not parts:
            return Decoded(pa.nulls(len(values), self.type), reasons, missing)
        whole = pa.concat_arrays(parts)
        return Decoded(whole.take(pa.array(places, mask=places < 0)), reasons, missing)

    def _writer(self, schema_id: int) -> Writer | str:
        """What decodes a schema's values, or why they are all bad."""
        if schema_id in self._refused:
            return self._refused[schema_id]
        if schema_id not in self._writers:
            try:
                self._writers[schema_id] = self._format.writer(self._known[schema_id])
            except SchemaUnusableError as error:
                self._writers[schema_id] = str(error)
            except (OverflowError, RecursionError) as error:
                # Whoever registers a schema may choose its numbers and how deep it goes.
                self._writers[schema_id] = f"schema {schema_id} cannot be used: {type(error).__name__}"
        writer = self._writers[schema_id]
        if self._fails_on_change and not isinstance(writer, str) and writer.unseen:
            raise SchemaChangedError(
                f"schema {schema_id} has {writer.unseen[0]}, which the job's has not: "
                "restart the job with the new schema, or set on_change to evolve or ignore"
            )
        return writer


def _format(name: str, reader: WholeSchema, message: str | None) -> Format:
    if name == "avro":
        from kavka.pipeline.schemas.avro.decoder import AvroFormat

        return AvroFormat(reader)
    from kavka.pipeline.schemas.protobuf.decoder import ProtobufFormat

    return ProtobufFormat(reader, message)


def _again(
    name: str,
    reader: WholeSchema,
    known: Mapping[int, WholeSchema],
    refused: Mapping[int, str],
    message: str | None,
    fails_on_change: bool,
) -> RegisteredDecoder:
    return RegisteredDecoder(name, reader, known, refused, message=message, fails_on_change=fails_on_change)
