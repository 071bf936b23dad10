"""Times as people write and read them."""

import re
from datetime import UTC, datetime
from typing import Final

_DURATION: Final = re.compile(
    r"(?P<sign>[-+]?)P(?:(?P<days>\d{1,9})D)?"
    r"(?:T(?=\d)(?:(?P<hours>\d{1,9})H)?(?:(?P<minutes>\d{1,9})M)?(?:(?P<seconds>\d{1,9}(?:\.\d{1,9})?)S)?)?",
    re.IGNORECASE,
)


def datetime_ms(text: str) -> int:
    """Milliseconds since 1970 of `2026-11-23T01:20:00.000`, in UTC unless it says otherwise. Raises ValueError."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def duration_ms(text: str) -> int:
    """Milliseconds of ISO 8601's `P1DT2H3M4.5S`, as Java's Duration reads it. Raises ValueError."""
    match = _DURATION.fullmatch(text)
    parts = ("days", 86_400), ("hours", 3_600), ("minutes", 60), ("seconds", 1)
    if match is None or not any(match[name] for name, _ in parts):
        raise ValueError(f"{text!r} is no duration like P1DT2H3M4S")
    seconds = sum(float(match[name] or 0) * factor for name, factor in parts)
    return round(seconds * (-1000 if match["sign"] == "-" else 1000))


def moment_text(timestamp_ms: int) -> str:
    """`2026-11-23T01:20:00.000Z`; a number that is no time stays one."""
    try:
        moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(timestamp_ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def ago_text(timestamp_ms: int, now_ms: int) -> str:
    """How long ago that was, roughly: `40 s`, `3 min`, `5 h`, `12 d`."""
    seconds = max(now_ms - timestamp_ms, 0) // 1000
    for unit, size in ("d", 86_400), ("h", 3_600), ("min", 60):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit} ago"
    return f"{seconds} s ago"
