"""The types of Kafka's settings: from text to a value and back to the text that Kafka shows.

Integers and doubles are bounded as in Java; text is stripped first; a list is split at commas.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from enum import IntEnum
from typing import Any, Final

from kavka.config.errors import ConfigError

ValueText = str | None
HIDDEN: Final = "[hidden]"


class Type(IntEnum):
    """The numbers are those of DescribeConfigs (KIP-569)."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Scope(IntEnum):
    """Whether a setting changes at run time, and for whom (KIP-226)."""

    READ_ONLY = 0
    PER_BROKER = 1
    """For one broker only: not as a default of the whole cluster."""
    CLUSTER_WIDE = 2
    """For one broker or as the cluster's default."""


class Importance(IntEnum):
    HIGH = 0
    MEDIUM = 1
    LOW = 2


class Source(IntEnum):
    """Where a value comes from; the numbers are those of DescribeConfigs. Of a topic's and a broker's the smaller wins;
    a group's own wins over all that its broker has.
    """

    DYNAMIC_TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_GROUP = 8


BOOLEAN, STRING, INT, SHORT, LONG = Type.BOOLEAN, Type.STRING, Type.INT, Type.SHORT, Type.LONG
DOUBLE, LIST, CLASS, PASSWORD = Type.DOUBLE, Type.LIST, Type.CLASS, Type.PASSWORD
READ_ONLY, PER_BROKER, CLUSTER_WIDE = Scope.READ_ONLY, Scope.PER_BROKER, Scope.CLUSTER_WIDE
HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW

INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1
DOUBLE_MAX: Final = 1.7976931348623157e308

_LONGEST_INTEGER: Final = 20
_DOUBLE_CHARACTERS: Final = frozenset("0123456789+-.eEdDfF")
_CUT_CHARACTERS: Final = 8
"""A word of an error that is at least so long may be the beginning of one that was cut short."""
_LIMITS: Final = {Type.SHORT: 2**15, Type.INT: 2**31, Type.LONG: 2**63}


class Password:
    """A secret that does not show itself when printed; `.value` has the text."""

    __slots__ = ("value",)

    def __init__(self, value: str) -> None:
        self.value = value

    def __repr__(self) -> str:
        return HIDDEN

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Password) and other.value == self.value

    def __hash__(self) -> int:
        return hash(self.value)


PROVIDERS: Final = "config.providers"


def is_about_providers(name: str) -> bool:
    """Whether a setting says which providers there are, of `config/providers.py`."""
    return name == PROVIDERS or name.startswith(f"{PROVIDERS}.")


class Referred(str):
    """A setting's text that a config provider gave. `reference` was given for it, and is what others may see."""

    reference: str

    def __new__(cls, text: str, reference: str) -> Referred:
        referred = super().__new__(cls, text)
        referred.reference = reference
        return referred


def as_given(text: str) -> str:
    """A setting's text as it was given, not what a provider had for it."""
    return text.reference if isinstance(text, Referred) else text


def without_values(error: ConfigError, given: Iterable[tuple[str, str]]) -> ConfigError:
    """The error without what providers gave: who is told of it may be somebody who may not read what they read.

    `given` are the names and texts of which it may speak. Errors speak of parts of lists and of addresses, too: so it
    must not have a word of a provider's value, and in doubt says less.
    """
    referred = [(name, text) for name, text in given if isinstance(text, Referred)]
    if not referred:
        return error
    said = _words(str(error))
    for name, text in referred:
        words = _words(text)
        is_cut = any(word.startswith(each) for each in said if len(each) >= _CUT_CHARACTERS for word in words)
        if is_cut or said & words or (name == error.name and error.value != text.reference):
            reason = "it cannot be used; the reason is not shown, as it may have what a config provider gave"
            return ConfigError(error.name, HIDDEN, reason)
    return error


def _words(text: str) -> set[str]:
    import re

    return {word.lstrip("0") or word for word in re.split(r"[\W_]+", text.lower()) if word}


def parse(kind: Type, text: ValueText) -> Any:
    """The value of `text`; a text of None is null. Raises ValueError with what was expected."""
    if text is None:
        return None
    text = text.strip()
    if kind is Type.STRING or kind is Type.CLASS:
        return text
    if kind is Type.LIST:
        return tuple(entry.strip() for entry in text.split(",")) if text else ()
    if kind is Type.PASSWORD:
        return Password(text)
    if kind is Type.BOOLEAN:
        lowered = text.lower()
        if lowered not in ("true", "false"):
            raise ValueError("Expected value to be either true or false")
        return lowered == "true"
    return _parse_number(kind, text)


def render(kind: Type, value: object) -> str | None:
    """The text Kafka shows: lists joined by commas, true or false, doubles as Java prints them; None for null."""
    if value is None:
        return None
    if kind is Type.BOOLEAN:
        return "true" if value else "false"
    if kind is Type.LIST and isinstance(value, tuple):
        return ",".join(value)
    if kind is Type.DOUBLE and isinstance(value, float):
        return _java_double(value)
    return str(value)


def _parse_number(kind: Type, text: str) -> float:
    if kind is Type.DOUBLE:
        if set(text) <= _DOUBLE_CHARACTERS:
            with suppress(ValueError):
                return float(text.rstrip("dDfF"))
    elif len(text) <= _LONGEST_INTEGER and text.isascii() and text[text[:1] in ("+", "-") :].isdecimal():
        number, limit = int(text), _LIMITS[kind]
        if -limit <= number < limit:
            return number
    raise ValueError(f"Not a number of type {kind.name}")


def _java_double(value: float) -> str:
    """Double.toString: plain from 1e-3 to 1e7, else one digit before the point and an exponent without a plus sign."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    from decimal import Decimal  # seldom needed, and slow to import

    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    if not isinstance(exponent, int):
        return {"inf": "Infinity", "-inf": "-Infinity"}.get(repr(value), "NaN")
    fraction = "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{digits[0]}.{fraction}E{exponent + len(digits) - 1}"
