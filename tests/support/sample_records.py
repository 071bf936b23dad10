"""Records with everything in them that a client may send: null and empty keys and values, headers, timestamps."""

from dataclasses import dataclass

FIRST_TIMESTAMP_MS = 1_700_000_000_000
Header = tuple[str, bytes | None]


@dataclass(frozen=True)
class SampleRecord:
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    timestamp_ms: int


def sample_records(count: int, *, null_header_values: bool = True) -> list[SampleRecord]:
    """The same records for the same count; no two alike. Not every client can send a header without a value."""
    return [_record(number, (("none", None),) if null_header_values else ()) for number in range(count)]


def _record(number: int, null_header: tuple[Header, ...]) -> SampleRecord:
    keys: tuple[bytes | None, ...] = (b"key-%d" % number, None, b"", "kl\u00ed\u010d".encode())
    values: tuple[bytes | None, ...] = (b"value-%d " % number * 20, b"%d" % number, bytes(range(256)) + b"%d" % number)
    headers: tuple[tuple[Header, ...], ...] = ((), (("a", b"1"), ("a", b"2"), ("empty", b""), *null_header))
    is_tombstone = number % 10 == 9
    return SampleRecord(
        b"tombstone-%d" % number if is_tombstone else keys[number % len(keys)],
        None if is_tombstone else values[number % len(values)],
        headers[number % len(headers)],
        FIRST_TIMESTAMP_MS + number,
    )
