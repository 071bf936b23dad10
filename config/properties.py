"""Java's properties files: `name=value`, `name: value` or `name value`, comments by # or !, escapes by \\.

The format is that of java.util.Properties. Bytes are read as UTF-8 where they are, else as Latin-1.
"""

from __future__ import annotations

import re
from typing import Final

_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_BLANKS: Final = " \t\f"
_UNICODE: Final = re.compile(r"[0-9a-fA-F]{4}")
_LINE_END: Final = re.compile(r"\r\n|\r|\n")


def parse_properties(data: bytes, names: re.Pattern[str] | None = None) -> dict[str, str]:
    """Name -> value; the last counts. Raises ValueError with the line's number for a bad escape.

    With `names`, also for a name that doesn't match: Java takes any file, a program too, for properties.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    properties: dict[str, str] = {}
    for number, line in _logical_lines(text):
        name_end = _end_of_name(line)
        rest = line[name_end:].lstrip(_BLANKS)
        if rest[:1] in ("=", ":"):
            rest = rest[1:].lstrip(_BLANKS)
        try:
            name = _unescape(line[:name_end])
            if names is not None and names.fullmatch(name) is None:
                # Not the line: it may be a part of a key, or a password.
                raise ValueError(f"expected name=value, found {line[:1]!r}")
            properties[name] = _unescape(rest)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
    return properties


def _logical_lines(text: str) -> list[tuple[int, str]]:
    """(number of the first line, the line with its continuations), without comments and blank lines."""
    lines: list[tuple[int, str]] = []
    gathered = ""
    started = 0
    raw_lines = _LINE_END.split(text)
    for number, raw in enumerate(raw_lines, 1):
        line = raw.lstrip(_BLANKS)
        if not gathered:
            # Also after a line that is a backslash alone, as in Java.
            if not line or line[0] in "#!":
                continue
            started = number
        is_continued = _is_continued(line)
        gathered += line[:-1] if is_continued else line
        if not is_continued or number == len(raw_lines):
            lines.append((started, gathered))
            gathered = ""
    if gathered:
        lines.append((started, gathered))
    return lines


def _is_continued(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _end_of_name(line: str) -> int:
    escaped = False
    for position, character in enumerate(line):
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif character in "=:" or character in _BLANKS:
            return position
    return len(line)


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character != "\\" or position == len(text):
            out.append(character)
            continue
        escape = text[position]
        position += 1
        if escape != "u":
            out.append(_ESCAPES.get(escape, escape))
            continue
        digits = text[position : position + 4]
        if _UNICODE.fullmatch(digits) is None:
            raise ValueError("a \\u needs four hexadecimal digits")
        out.append(chr(int(digits, 16)))
        position += 4
    return _join_surrogates("".join(out))


def _join_surrogates(text: str) -> str:
    """Java writes characters beyond U+FFFF as two escapes; a lone half becomes U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
