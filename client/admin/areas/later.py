"""Modules that are imported when something of theirs is first needed."""

from importlib import import_module
from typing import Any, Final


class Later:
    """Stands for a module: who asks an administrator's client for one thing need not wait for all others to load.

    Threads: any; importing has a lock of its own.
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name: Final = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)
