"""A record as it was read, before it is sent."""

from typing import NamedTuple


class InputRecord(NamedTuple):
    """`partition` and `timestamp_ms` are None where the input says nothing of them."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int | None = None
    timestamp_ms: int | None = None


class RecordError(ValueError):
    """What was read is no record; the text says why. What comes after it may be."""
