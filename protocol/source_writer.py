"""Writes the source text of a function line by line, and turns it into the function."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any


class SourceWriter:
    """Lines under construction, the constants they name, and a supply of fresh variable names."""

    def __init__(self, **constants: Any) -> None:
        self._lines: list[str] = []
        self._constants: dict[str, Any] = constants
        self._numbers = count(1)
        self._depth = 0

    def add(self, line: str) -> None:
        self._lines.append("    " * self._depth + line)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.add(head)
        self._depth += 1
        yield
        self._depth -= 1

    def variable(self, prefix: str) -> str:
        return f"{prefix}{next(self._numbers)}"

    def constant(self, value: Any, prefix: str = "k") -> str:
        """An expression for a value: its literal, or a name that the function's globals bind to it."""
        if value is None or type(value) in (bool, int):
            return repr(value)
        name = self.variable(prefix)
        self._constants[name] = value
        return name

    def function(self, name: str, title: str) -> Callable[..., Any]:
        code = compile(self.text(), f"<{title}>", "exec")
        exec(code, self._constants)
        function: Callable[..., Any] = self._constants[name]
        return function

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"
