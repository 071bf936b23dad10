"""Bytes of records on a terminal: they are somebody else's, and must not drive it.

What a terminal obeys (C0 and C1 control characters, also those that turn the direction of text around) is shown as an
escape; tabs and line ends stay, as values of many lines are read. Bytes that are no UTF-8 are shown as `\\xff`.
"""

import re
from typing import Final

DRIVING: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_NOT_PLAIN: Final = re.compile(rb"[^\x20-\x7e]")


def safe_bytes(data: bytes) -> bytes:
    """The bytes as a terminal may have them."""
    if _NOT_PLAIN.search(data) is None:
        return data
    return safe_text(data.decode("utf-8", "backslashreplace")).encode()


def safe_text(text: str) -> str:
    """The text as a terminal may have it."""
    return DRIVING.sub(_escape, text)


def one_line(data: bytes) -> str:
    """The bytes as text on one line: quoted, whatever they are."""
    text = data.decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else _escape_character(c) for c in text)


def _escape(match: re.Match[str]) -> str:
    return _escape_character(match[0])


def _escape_character(character: str) -> str:
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
