"""Answers that are none: frames whose lengths and ids lie, and messages of the right shape that make no sense."""

import random
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

from kavka.protocol.api import spec
from kavka.protocol.schema import Struct
from tests.support.message_values import message_value
from tests.support.scripted_broker import Asked, framed

HEADER_BYTES: Final = 8
"""Size and correlation id: what stays good, so that the rest is looked at."""
Lie = Callable[[bytes], bytes | None]


def _resized(frame: bytes) -> bytes:
    return struct.pack(">i", len(frame) - 4) + frame[4:]


LIES: Final[tuple[Lie, ...]] = (
    lambda frame: _resized(frame[:-1]),
    lambda frame: _resized(frame + b"more"),
    lambda frame: frame[:4] + struct.pack(">i", 77_777) + frame[8:],
    lambda frame: struct.pack(">i", 2**31 - 1) + frame[4:],
    lambda frame: struct.pack(">i", -1) + frame[4:],
    # Arrays of four thousand million elements, and as many tags.
    lambda frame: _resized(frame[:HEADER_BYTES] + b"\xff" * 200),
    lambda frame: None,
)
"""Each costs its connection: None closes it."""


def nonsense(asked: Asked, seed: int, names: Mapping[str, Any]) -> bytes:
    """A whole answer to this request with anything in it, but for fields in `names`: they say of whom it speaks.

    Half of the error codes are none, so that the rest is looked at.
    """
    value = message_value(spec(asked.header.api_key).response_class, asked.header.api_version, "full", seed)
    _aim(value, names, random.Random(seed))
    return framed(asked, value)


def _aim(value: Struct, names: Mapping[str, Any], dice: random.Random) -> None:
    for name, field in list(vars(value).items()):
        if isinstance(field, list):
            for each in field:
                if isinstance(each, Struct):
                    _aim(each, names, dice)
        elif isinstance(field, Struct):
            _aim(field, names, dice)
        elif name in names:
            setattr(value, name, names[name])
        elif name == "error_code" and dice.random() < 0.5:
            setattr(value, name, 0)
