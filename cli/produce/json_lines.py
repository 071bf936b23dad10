"""Records of JSON, an object a line, as `kavka consume --output json` writes them.

    {"key": "a", "value": "b", "headers": {"trace": "7"}, "partition": 0, "timestamp": 1767250800000}

`key` and `value` are text, null, or other JSON, which is sent as JSON; `key_base64` and `value_base64` are for bytes.
Headers are an object, or a list of {"key", "value"} objects or pairs where a name comes twice. Nothing is required:
without `value` it is null. What else consume writes (topic, offset, timestamp_type) is passed over.
"""

import base64
import binascii
import json
from typing import Any, Final

from kavka.cli.produce.input_record import InputRecord, RecordError

KNOWN: Final = frozenset(
    {
        "key",
        "key_base64",
        "value",
        "value_base64",
        "headers",
        "partition",
        "timestamp",
        "topic",
        "offset",
        "timestamp_type",
    }
)
LAST_TIMESTAMP_MS: Final = 2**63 - 1


def record_of_json(line: bytes, *, keeps_partition: bool) -> InputRecord:
    """The record of a line. `keeps_partition`: its partition counts. Raises RecordError."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"no JSON: {error}") from None
    if not isinstance(fields, dict):
        raise RecordError("a JSON object is expected")
    if unknown := sorted(fields.keys() - KNOWN):
        raise RecordError(f"a record has no {unknown[0]!r}; it has key, value, headers, partition, timestamp")
    return InputRecord(
        _bytes(fields, "key"),
        _bytes(fields, "value"),
        _headers(fields.get("headers")),
        _number(fields, "partition", 2**31 - 1) if keeps_partition else None,
        _timestamp(fields),
    )


def _timestamp(fields: dict[str, Any]) -> int | None:
    # What consume shows for a record without a timestamp.
    return None if fields.get("timestamp") == -1 else _number(fields, "timestamp", LAST_TIMESTAMP_MS)


def _number(fields: dict[str, Any], name: str, most: int) -> int | None:
    value = fields.get(name)
    if value is None:
        return None
    if type(value) is not int or not 0 <= value <= most:
        raise RecordError(f"{name} is {json.dumps(value)}, a number from 0 to {most} is expected")
    return value


def _bytes(fields: dict[str, Any], name: str) -> bytes | None:
    encoded = fields.get(f"{name}_base64")
    if encoded is None:
        return _encoded(fields.get(name))
    if fields.get(name) is not None:
        raise RecordError(f"{name} and {name}_base64 are both given")
    try:
        return base64.b64decode(encoded, validate=True)
    except (TypeError, ValueError, binascii.Error):
        raise RecordError(f"{name}_base64 is no base64") from None


def _encoded(value: Any) -> bytes | None:
    if value is None:
        return None
    if not isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        encoded: bytes = value.encode()
    except UnicodeEncodeError:
        raise RecordError("half of a surrogate pair is no text") from None
    return encoded


def _headers(headers: Any) -> tuple[tuple[str, bytes | None], ...]:
    if headers is None:
        return ()
    if isinstance(headers, dict):
        return tuple((_name(name), _encoded(value)) for name, value in headers.items())
    if isinstance(headers, list):
        return tuple(map(_header, headers))
    raise RecordError("headers are an object, or a list")


def _header(header: Any) -> tuple[str, bytes | None]:
    if isinstance(header, list) and len(header) == 2:
        return _name(header[0]), _encoded(header[1])
    if isinstance(header, dict) and header.keys() <= {"key", "value", "value_base64"}:
        return _name(header.get("key")), _bytes(header, "value")
    raise RecordError('a header is {"key": ..., "value": ...}, or a pair of them')


def _name(name: Any) -> str:
    if not isinstance(name, str):
        raise RecordError("a header's key is text")
    _encoded(name)
    return name
