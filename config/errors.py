"""What is wrong with a setting, said so that an operator can put it right."""

from __future__ import annotations


class ConfigError(Exception):
    """A setting cannot be used. The text has the name, the value and what is expected (a password's value is hidden).

    `name` and `value` are None where the complaint is about several settings at once.
    """

    def __init__(self, name: str | None, value: object, expected: str) -> None:
        self.name = name
        self.value = value
        self.expected = expected
        super().__init__(
            expected if name is None else f"Invalid value {_text(value)} for configuration {name}: {expected}"
        )


class SettingRefusedError(OSError):
    """The machine refuses what a setting asks for: an address, a thread. `name` is the setting's."""

    def __init__(self, name: str, number: int | None, reason: str) -> None:
        self.name = name
        super().__init__(number, reason)


def _text(value: object) -> str:
    return "null" if value is None else str(value)
