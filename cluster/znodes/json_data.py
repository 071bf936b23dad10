"""Reading and writing the JSON in znodes: one object a node, every field checked for its type and range."""

from __future__ import annotations

import json
from typing import Any, Final

INT32_MAX: Final = (1 << 31) - 1
INT64_MAX: Final = (1 << 63) - 1
_MISSING: Final = object()
_SECRETIVE: Final = ("/config/users", "/config/brokers", "/delegation_token")
"""Below these lies what no log may show."""

_decode = json.JSONDecoder().decode
_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


class ZnodeError(Exception):
    """A node holds what nobody should have written there."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} cannot be read: {reason}")
        self.path = path


def encode_json(value: Any) -> bytes:
    """Compact UTF-8, keys in the order given."""
    return _encode(value).encode()


class Fields:
    """The fields of a node's JSON object. Each accessor raises ZnodeError unless the field is what it asks for."""

    __slots__ = ("_values", "path")

    def __init__(self, path: str, values: dict[str, Any]) -> None:
        self.path = path
        self._values = values

    @classmethod
    def parse(cls, path: str, data: bytes) -> Fields:
        try:
            value = _decode(data.decode())
        except (ValueError, RecursionError) as error:
            # ValueError covers bad UTF-8, bad JSON and numbers of absurd length.
            beginning = "" if path.startswith(_SECRETIVE) else f", begins with {data[:40]!r}"
            raise ZnodeError(path, f"not JSON ({type(error).__name__}){beginning}") from None
        if not isinstance(value, dict):
            raise ZnodeError(path, f"a JSON object expected, not {type(value).__name__}")
        return cls(path, value)

    def __contains__(self, name: str) -> bool:
        return self._values.get(name) is not None

    def integer(self, name: str, low: int = 0, high: int = INT32_MAX, default: Any = _MISSING) -> int:
        value = self._values.get(name, default)
        if value is _MISSING:
            raise ZnodeError(self.path, f"no field {name}")
        return self._integer(name, value, low, high)

    def quoted_integer(self, name: str, low: int = 0, high: int = INT64_MAX) -> int:
        """A number that Kafka writes as text."""
        text = self.text(name)
        if not (text.isascii() and text.removeprefix("-").isdigit() and len(text) <= 20):
            raise ZnodeError(self.path, f"{name} is no number in text: {text[:40]!r}")
        return self._integer(name, int(text), low, high)

    def text(self, name: str) -> str:
        value = self._values.get(name, _MISSING)
        if not isinstance(value, str):
            raise ZnodeError(self.path, f"{name} must be a string")
        return value

    def optional_text(self, name: str) -> str | None:
        return self.text(name) if name in self else None

    def texts(self, name: str) -> tuple[str, ...]:
        values = self._values.get(name, _MISSING)
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise ZnodeError(self.path, f"{name} must be a list of strings")
        return tuple(values)

    def integers(self, name: str) -> tuple[int, ...]:
        """A list of distinct broker ids or the like."""
        return self._integers(name, self._values.get(name))

    def text_map(self, name: str) -> dict[str, str]:
        values = self._values.get(name, _MISSING)
        if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
            raise ZnodeError(self.path, f"{name} must be an object of strings")
        return dict(values)

    def replicas_by_partition(self, name: str) -> dict[int, tuple[int, ...]]:
        """`{"0":[1,2]}`; a field that is missing or null is empty."""
        values = self._values.get(name)
        if values is None:
            return {}
        if not isinstance(values, dict):
            raise ZnodeError(self.path, f"{name} must be an object of lists")
        replicas: dict[int, tuple[int, ...]] = {}
        for key, brokers in values.items():
            if not (key.isascii() and key.isdigit() and len(key) <= 10 and int(key) <= INT32_MAX):
                raise ZnodeError(self.path, f"{name} has a partition {key[:40]!r}")
            replicas[int(key)] = self._integers(name, brokers)
        return replicas

    def is_object(self, name: str) -> bool:
        return isinstance(self._values.get(name), dict)

    def object(self, name: str) -> Fields:
        value = self._values.get(name)
        if not isinstance(value, dict):
            raise ZnodeError(self.path, f"{name} must be an object")
        return Fields(self.path, value)

    def names(self) -> list[str]:
        return list(self._values)

    def objects(self, name: str) -> list[Fields]:
        values = self._values.get(name)
        if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
            raise ZnodeError(self.path, f"{name} must be a list of objects")
        return [Fields(self.path, value) for value in values]

    def _integers(self, name: str, values: Any) -> tuple[int, ...]:
        if not isinstance(values, list):
            raise ZnodeError(self.path, f"{name} must be a list of integers")
        for value in values:
            self._integer(name, value, 0, INT32_MAX)
        if len(set(values)) != len(values):
            raise ZnodeError(self.path, f"{name} names a broker twice")
        return tuple(values)

    def _integer(self, name: str, value: Any, low: int, high: int) -> int:
        if type(value) is not int:
            raise ZnodeError(self.path, f"{name} must be an integer")
        if not low <= value <= high:
            raise ZnodeError(self.path, f"{name} must be between {low} and {high}")
        return value
