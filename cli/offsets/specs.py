"""Which offset `kavka offsets get --time` means."""

from typing import Final

_NUMBERS: Final = {
    "latest": -1,
    "earliest": -2,
    "max-timestamp": -3,
    "earliest-local": -4,
    "latest-tiered": -5,
    "earliest-pending-upload": -6,
}


def spec_of(text: str, now_ms: int) -> int:
    """A number of `OffsetSpec` (-1 to -6), or milliseconds since 1970: the first record since. Raises ValueError."""
    if text in _NUMBERS:
        return _NUMBERS[text]
    if text.startswith("-"):
        digits = text[1:]
        if digits.isascii() and digits.isdigit() and -int(digits) in _NUMBERS.values():
            return -int(digits)
        raise ValueError(f"{text!r} is none of {', '.join(f'{number} ({name})' for name, number in _NUMBERS.items())}")
    from kavka.cli.moments import moment_ms

    try:
        return moment_ms(text, now_ms)
    except ValueError as error:
        raise ValueError(f"{error}, or one of {', '.join(_NUMBERS)}") from None
