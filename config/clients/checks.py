"""What clients' values must satisfy, beyond the checks that brokers' settings need too."""

from __future__ import annotations

import re
from typing import Any, Final

from kavka.config.checks import Problem

_DURATION: Final = re.compile(
    r"([-+]?)P(?:([-+]?[0-9]+)D)?"
    r"(T(?:([-+]?[0-9]+)H)?(?:([-+]?[0-9]+)M)?(?:([-+]?[0-9]+)(?:[.,]([0-9]{0,9}))?S)?)?",
    re.IGNORECASE | re.ASCII,
)
_LONGEST_MS: Final = 2**63 - 1
BY_DURATION: Final = "by_duration:"


class NotEmpty:
    """Not the empty text; null passes."""

    __slots__ = ()

    def problem(self, value: Any) -> Problem | None:
        return (value, "String must be non-empty") if value is not None and not value else None

    def __str__(self) -> str:
        return "non-empty string"


class OffsetReset:
    """earliest, latest, none, or by_duration with a time that is not negative (KIP-1106)."""

    __slots__ = ()

    def problem(self, value: Any) -> Problem | None:
        if value in ("earliest", "latest", "none"):
            return None
        if value.startswith(BY_DURATION):
            duration_ms = duration_as_ms(value.removeprefix(BY_DURATION))
            if duration_ms is not None and duration_ms >= 0:
                return None
        return value, (
            f"Invalid value `{value}` for configuration auto.offset.reset. The value must be either 'earliest', "
            "'latest', 'none' or of the format 'by_duration:<PnDTnHnMn.nS.>'."
        )

    def __str__(self) -> str:
        return "[latest, earliest, none, by_duration:PnDTnHnMn.nS]"


def duration_as_ms(text: str) -> int | None:
    """A duration of ISO 8601 as Java's Duration reads it, with days of 24 hours; None for what is none."""
    match = _DURATION.fullmatch(text)
    if match is None or not any(match[group] is not None for group in (2, 4, 5, 6)) or match[3] in ("T", "t"):
        return None
    if any(match[group] is not None and len(match[group]) > 19 for group in (2, 4, 5, 6)):
        return None
    days, hours, minutes, seconds = (int(match[group] or 0) for group in (2, 4, 5, 6))
    fraction_ms = int((match[7] or "").ljust(3, "0")[:3])
    if (match[6] or "").startswith("-"):
        fraction_ms = -fraction_ms
    duration_ms = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1_000 + fraction_ms
    if abs(duration_ms) > _LONGEST_MS:
        return None
    return -duration_ms if match[1] == "-" else duration_ms
