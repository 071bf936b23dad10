"""Records as JSON, a line each: what `kavka produce --json` reads.

    {"topic":"visits","partition":0,"offset":42,"timestamp":1767250800000,"timestamp_type":"CreateTime",
     "headers":[{"key":"trace","value":"7"}],"key":"a","value":"b"}

Bytes that are no UTF-8 are under `key_base64` or `value_base64`, in place of `key` or `value`; null is null.
"""

import base64
import json
import re
from typing import Any, Final

from kavka.cli.consume.shown_record import ShownRecord
from kavka.cli.escaping import DRIVING

_TIMESTAMP_TYPES: Final = ("CreateTime", "LogAppendTime")
_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def json_line(record: ShownRecord) -> bytes:
    """The record's line, with its end. Control characters are JSON's escapes: any terminal may have it."""
    return line_of(record, {**_named("key", record.key), **_named("value", record.value)})


def line_of(record: ShownRecord, parts: dict[str, Any]) -> bytes:
    """The record's line, with `parts` in the place of key and value."""
    fields = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp_ms,
        "timestamp_type": _TIMESTAMP_TYPES[record.timestamp_type],
        "headers": [{"key": name, **_named("value", value)} for name, value in record.headers],
        **parts,
    }
    # JSON leaves some of what drives terminals as it is; it only ever stands inside strings.
    return DRIVING.sub(_escape, _encode(fields)).encode() + b"\n"


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def _named(name: str, data: bytes | None) -> dict[str, str | None]:
    if data is None:
        return {name: None}
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode()}
