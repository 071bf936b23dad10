"""The tree of commands, as it is on disk: one file in `cli/verbs/` is one command.

A file's name is its command's, words parted by underscores: `topics_list.py` is `kavka topics list`, and
`groups_reset_offsets.py` is `kavka groups reset-offsets`. Nothing here imports a verb but `verb_of`, and that one only.
"""

import importlib
import os
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, cast

if TYPE_CHECKING:
    import argparse

# Not by pathlib, which takes as long to load as the rest of the command.
_FOLDER: Final = __file__.removesuffix("tree.py") + "verbs"
_HELP: Final = "HELP = "
"""What follows is a text in double quotes, with nothing in it that is escaped (a test holds it)."""


class Verb(Protocol):
    """What each module in `cli/verbs/` offers.

    `HELP` is one line, a literal in one line of the file: `--help` of the commands above reads it without importing.
    `EXAMPLE` is one or more lines that the verb's own `--help` shows.
    """

    HELP: str
    EXAMPLE: str

    def add_arguments(self, parser: "argparse.ArgumentParser") -> None: ...

    def run(self, args: "argparse.Namespace") -> int: ...


class Command(NamedTuple):
    """A verb's place in the tree: `words` as they are typed after `kavka`."""

    module: str
    words: tuple[str, ...]


def commands() -> list[Command]:
    """All commands, in order."""
    with os.scandir(_FOLDER) as entries:
        files = [entry.name for entry in entries]
    names = sorted(file.removesuffix(".py") for file in files if file.endswith(".py") and file[0].islower())
    return [Command(name, _words(name)) for name in names]


def _words(name: str) -> tuple[str, ...]:
    noun, parted, verb = name.partition("_")
    return (noun, verb.replace("_", "-")) if parted else (noun,)


def verb_of(command: Command) -> Verb:
    """The command's module."""
    return cast(Verb, importlib.import_module(f"kavka.cli.verbs.{command.module}"))


def help_of(command: Command) -> str:
    """The command's HELP, read from its file's text."""
    with open(f"{_FOLDER}/{command.module}.py", encoding="utf-8") as file:
        for line in file:
            if line.startswith(_HELP):
                return line.removeprefix(_HELP).strip().strip('"')
    raise LookupError(f"{command.module}.py has no line that begins with {_HELP!r}")
