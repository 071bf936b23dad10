"""Moments and durations as people write them, and moments as people read them.

1767250800000             milliseconds since 1970
2026-01-01T08:00:00Z      ISO 8601; without a zone the computer's own
2026-01-01                its midnight
now
15m, 2h, 7d, 90s, 500ms   that long ago
PT1H30M, P1D              the same in ISO 8601
"""

import re
from datetime import UTC, datetime
from typing import Final

_UNITS_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_SHORT: Final = re.compile(r"(\d+)(ms|s|m|h|d|w)")
_ISO: Final = re.compile(r"P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.(\d{1,3}))?S)?)?")
_LAST_MS: Final = 253_402_300_799_999
"""The end of the year 9999: Python's dates go no further."""


def moment_ms(text: str, now_ms: int) -> int:
    """Milliseconds since 1970. Raises ValueError, whose text says what is expected."""
    if text.isascii() and text.isdigit():
        return int(text)
    if text == "now":
        return now_ms
    try:
        return max(now_ms - duration_ms(text), 0)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text)
        return max(int(moment.timestamp() * 1000), 0)
    except (ValueError, OverflowError, OSError):
        raise ValueError(
            f"{text!r} is no time: give milliseconds since 1970, 2026-01-01T08:00:00Z, now, or 15m (so long ago)"
        ) from None


def duration_ms(text: str) -> int:
    """Milliseconds of `15m` or `PT15M`. Raises ValueError."""
    if short := _SHORT.fullmatch(text):
        return int(short[1]) * _UNITS_MS[short[2]]
    iso = _ISO.fullmatch(text)
    if iso is None or not any(iso.groups()):
        raise ValueError(f"{text!r} is no duration: give 15m, 2h, 7d or PT15M")
    weeks, days, hours, minutes, seconds, fraction = iso.groups()
    amounts = ((weeks, "w"), (days, "d"), (hours, "h"), (minutes, "m"), (seconds, "s"))
    return sum(int(amount or 0) * _UNITS_MS[unit] for amount, unit in amounts) + int((fraction or "0").ljust(3, "0"))


def moment_text(timestamp_ms: int) -> str:
    """`2026-01-01T08:00:00.000Z`; `-` for none; the number itself for what no calendar has."""
    if timestamp_ms == -1:
        return "-"
    if not 0 <= timestamp_ms <= _LAST_MS:
        return str(timestamp_ms)
    seconds, thousandths = divmod(timestamp_ms, 1000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{thousandths:03}Z"
