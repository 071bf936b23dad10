"""Where reading begins and ends: `--offset`, `--from-time`, `--until-offset`, `--until-time` in the words of a user."""

from typing import Final, NamedTuple

EARLIEST: Final = "earliest"
LATEST: Final = "latest"
_NAMES: Final = {"earliest": EARLIEST, "beginning": EARLIEST, "latest": LATEST, "end": LATEST}
LAST_OFFSET: Final = 2**63 - 1


class Place(NamedTuple):
    """One of these: an offset, so many records before the end, a time, or an end of the log by name."""

    name: str | None = None
    offset: int | None = None
    before_end: int | None = None
    time_ms: int | None = None


def place_of(text: str) -> Place:
    """`earliest`, `latest` (kcat's `beginning`, `end`), an offset, `-N`: so many before the end. Raises ValueError."""
    if text in _NAMES:
        return Place(name=_NAMES[text])
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and int(digits) <= LAST_OFFSET):
        raise ValueError(f"{text!r} is no offset: give a number, -N (before the end), earliest or latest")
    return Place(before_end=int(digits)) if text.startswith("-") else Place(offset=int(digits))


def partitions_of(text: str) -> list[int]:
    """`0`, `0,2`, `0-3` (both ends counted). Raises ValueError."""
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not (first.isascii() and first.isdigit() and (not dash or (last.isascii() and last.isdigit()))):
            raise ValueError(f"{text!r} is no list of partitions: give 0, or 0,2, or 0-3")
        low, high = int(first), int(last) if dash else int(first)
        if not low <= high <= 2**31 - 1 or high - low > 100_000:
            raise ValueError(f"{text!r} is no list of partitions: {part} cannot be")
        found.update(range(low, high + 1))
    return sorted(found)
