"""The text of `sasl.jaas.config`: login modules and their options, read as Kafka's JaasConfig reads it.

    org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="secret";

Kafka has Java's StreamTokenizer cut it: `//`, `/* */` and a single `/` begin comments, quotes are double or single and
know C's escapes, words have letters, digits, `-`, `_`, `$` and `.`, and what begins with a digit is a number, which is
no value. Errors never quote the text: it has passwords.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

_CONTROL_FLAGS: Final = ("REQUIRED", "REQUISITE", "SUFFICIENT", "OPTIONAL")
_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_QUOTES: Final = "\"'"
_OCTAL: Final = "01234567"


class JaasEntry:
    """One login module: the name of its Java class, and its options. Immutable; shows no option's value."""

    __slots__ = ("login_module", "options")

    def __init__(self, login_module: str, options: Mapping[str, str]) -> None:
        self.login_module: Final = login_module
        self.options: Final = MappingProxyType(dict(options))

    def __repr__(self) -> str:
        return f"JaasEntry({self.login_module!r}, options {sorted(self.options)})"

    def is_of(self, class_name: str) -> bool:
        """Whether the login module is that class of Kafka's, also in a package that some vendor put before it."""
        return self.login_module == class_name or self.login_module.endswith(f".{class_name}")


def parse_jaas(text: str) -> tuple[JaasEntry, ...]:
    """All entries, one at least. Raises ValueError in Kafka's words, with nothing of the text in them."""
    tokens = _tokens(text)
    entries: list[JaasEntry] = []
    for module in tokens:
        if not module.text:
            raise ValueError("Login module not specified in JAAS config")
        flag = next(tokens, None)
        if flag is None:
            raise ValueError("Login module control flag not specified in JAAS config")
        if flag.text is None:
            raise ValueError("Login module control flag is not available in the JAAS config")
        if flag.text.upper() not in _CONTROL_FLAGS:
            raise ValueError("Invalid login module control flag in JAAS config")
        entries.append(JaasEntry(module.text, _options(tokens)))
    if not entries:
        raise ValueError("Login module not specified in JAAS config")
    return tuple(entries)


def only_entry(text: str) -> JaasEntry:
    """The one entry that the text must have (KIP-85). Raises ValueError."""
    entries = parse_jaas(text)
    if len(entries) != 1:
        raise ValueError(f"JAAS config property contains {len(entries)} login modules, should be 1 module")
    return entries[0]


class _Token(NamedTuple):
    """`text` is that of a word or of a quoted text; None for a number, or for any other character, which is `mark`."""

    text: str | None
    mark: str = ""


def _options(tokens: Iterator[_Token]) -> dict[str, str]:
    options: dict[str, str] = {}
    for key in tokens:
        if key.mark == ";":
            return options
        equals = next(tokens, None)
        value = next(tokens, None) if equals is not None and equals.mark == "=" else None
        if key.text is None or value is None or value.text is None:
            raise ValueError("Value not specified for an option in JAAS config")
        options[key.text] = value.text
    raise ValueError("JAAS config entry not terminated by semi-colon")


def _tokens(text: str) -> Iterator[_Token]:
    at, end = 0, len(text)
    while at < end:
        first = text[at]
        if first <= " ":
            at += 1
        elif first.isascii() and (first.isdigit() or first in ".-"):
            token, at = _number(text, at)
            yield token
        elif _is_letter(first):
            begin = at
            while at < end and (_is_letter(text[at]) or text[at] in "0123456789."):
                at += 1
            yield _Token(text[begin:at])
        elif first in _QUOTES:
            quoted, at = _quoted(text, at)
            yield _Token(quoted)
        elif first == "/":
            at = _after_comment(text, at)
        else:
            at += 1
            yield _Token(None, first)


def _is_letter(character: str) -> bool:
    """In StreamTokenizer all from 160 on are, and those that Kafka adds."""
    return (character.isascii() and character.isalpha()) or character in "-_$" or character >= "\xa0"


def _number(text: str, at: int) -> tuple[_Token, int]:
    """A number as far as it goes; a minus that no number follows is a mark."""
    if text[at] == "-":
        at += 1
        if at == len(text) or text[at] not in ".0123456789":
            return _Token(None, "-"), at
    has_dot = False
    while at < len(text) and (text[at] in "0123456789" or (text[at] == "." and not has_dot)):
        has_dot |= text[at] == "."
        at += 1
    return _Token(None), at


def _quoted(text: str, at: int) -> tuple[str, int]:
    """The text in quotes that begin at `at`; the end of the line ends them, too."""
    quote, end = text[at], len(text)
    at += 1
    parts: list[str] = []
    while at < end and text[at] not in (quote, "\n", "\r"):
        if text[at] != "\\":
            parts.append(text[at])
            at += 1
        else:
            part, at = _escaped(text, at + 1)
            parts.append(part)
    return "".join(parts), at + 1 if at < end and text[at] == quote else at


def _escaped(text: str, at: int) -> tuple[str, int]:
    """What follows a backslash: up to three octal digits, a letter of C's, or any other character as it is."""
    if at >= len(text):
        return "", at
    if text[at] not in _OCTAL:
        return _ESCAPES.get(text[at], text[at]), at + 1
    longest = 3 if text[at] <= "3" else 2
    begin = at
    while at < len(text) and at - begin < longest and text[at] in _OCTAL:
        at += 1
    return chr(int(text[begin:at], 8)), at


def _after_comment(text: str, at: int) -> int:
    if text.startswith("/*", at):
        closing = text.find("*/", at + 2)
        return len(text) if closing < 0 else closing + 2
    # As in Java, which has read the second character by then: after a single `/` it does not end the line.
    ends = [place for mark in "\r\n" if (place := text.find(mark, at + 2)) >= 0]
    return min(ends, default=len(text))
