"""Seeded values for every message and version: full, at their defaults, null wherever null may be, empty, with unknown
tagged fields. Only what the version has is set, so that what is encoded comes back equal.
"""

import random
from collections.abc import Iterator
from typing import Any

from kavka.protocol.api import VERSIONS, spec
from kavka.protocol.layout import FieldLayout, StructLayout, layout_of
from kavka.protocol.schema import Message

STYLES = ("default", "full", "null", "empty", "unknown-tags")

_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_WORDS = ("a", "topic-7", "žluťoučký kůň", "鸦", "\N{BIRD}", "with space", "x" * 130)


def all_message_versions() -> Iterator[tuple[type[Message], int]]:
    """Every class and version that the protocol room declares."""
    for key in VERSIONS:
        api = spec(key)
        oldest, newest = api.versions
        for version in range(oldest, newest + 1):
            yield api.request_class, version
            yield api.response_class, version


def message_value(cls: type[Message], version: int, style: str, seed: int = 0) -> Any:
    """A message of one style; the same arguments give the same message."""
    chance = random.Random(f"{cls.__name__} {version} {style} {seed}")
    return _Values(chance, style).struct(layout_of(cls, version))


class _Values:
    def __init__(self, chance: random.Random, style: str) -> None:
        self.chance = chance
        self.style = style

    def struct(self, layout: StructLayout) -> Message:
        value = layout.schema.cls()
        if self.style == "default":
            return value
        for field in (*layout.regular, *layout.tagged):
            setattr(value, field.name, self.field(field))
        if self.style == "unknown-tags" and layout.flexible:
            tags = sorted(self.chance.sample(range(1_000, 100_000), 2))
            value.unknown_tagged_fields = tuple((tag, self.chance.randbytes(tag % 200)) for tag in tags)
        return value

    def field(self, field: FieldLayout) -> Any:
        if field.nullable and (self.style == "null" or self.chance.random() < 0.1):
            return None
        if field.kind == "array":
            if self.style == "empty" and field.layout is None:
                return []
            return [self.one(field.element or "", field) for _ in range(self.count(field))]
        return self.one(field.kind, field)

    def count(self, field: FieldLayout) -> int:
        """Arrays of numbers are written in other ways when they are long, and have longer lengths from 127 on."""
        if field.layout is not None or field.element == "string":
            return self.chance.choice((1, 1, 2))
        return self.chance.choice((1, 2, 8, 9, 127 if self.style == "unknown-tags" else 10))

    def one(self, kind: str, field: FieldLayout) -> Any:
        if kind == "struct" or (kind == field.element and field.layout is not None):
            assert field.layout is not None
            return self.struct(field.layout)
        if self.style == "empty" and kind in ("string", "bytes", "records"):
            return "" if kind == "string" else b""
        return self.scalar(kind)

    def scalar(self, kind: str) -> Any:
        chance = self.chance
        if kind in _BITS:
            limit = 1 << (_BITS[kind] - 1)
            return chance.choice((0, 1, -1, limit - 1, -limit, chance.randrange(-limit, limit)))
        match kind:
            case "bool":
                return chance.random() < 0.7
            case "uint16":
                return chance.choice((0, 65_535, chance.randrange(65_536)))
            case "uint32":
                return chance.choice((0, 2**32 - 1, chance.randrange(2**32)))
            case "float64":
                return chance.choice((0.0, -1.5, 1e300, chance.random()))
            case "uuid":
                return chance.randbytes(16)
            case "string":
                return chance.choice(_WORDS)
            case _:
                return chance.randbytes(chance.choice((1, 5, 126, 127, 128, 200)))
