"""`kavka`: one file in `cli/verbs/` is one command.

A verb's module has

    HELP                  one line for `kavka --help`
    add_arguments(parser)
    run(args) -> int      the exit code

and the command is its file's name, words parted by underscores: `storage_dump.py` is `kavka storage dump`. Verbs import
what they need inside `run`: `kavka broker` must not pay for the other commands.
"""

import argparse
import importlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from kavka import __version__
from kavka.cli.output import READER_LEFT, OutputError, complain, emit, flush, give_up_output

if TYPE_CHECKING:
    from _typeshed import SupportsWrite


class Verb(Protocol):
    """What each module in `cli/verbs/` offers."""

    HELP: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, args: argparse.Namespace) -> int: ...


def main(argv: Sequence[str] | None = None, *, on_ready: Callable[[], object] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 failed, 2 wrong usage, 141 nobody reads.

    `on_ready` is called just before the command does anything. Raises KeyboardInterrupt.
    """
    try:
        args = _parsed(argv)
    except OutputError as error:
        return _without_output(error)
    if not sys.platform.startswith("linux"):
        # What the commands import needs Linux's system calls, so this comes first.
        return complain("kavka", f"Linux is required, and this is {sys.platform}; a Linux container or VM will do")
    try:
        if on_ready is not None:
            on_ready()
        code = cast(Verb, args.verb).run(args)
        flush()
    except OutputError as error:
        return _without_output(error)
    return code


def _parsed(argv: Sequence[str] | None) -> argparse.Namespace:
    try:
        return build_parser().parse_args(argv)
    except SystemExit as done:
        if not done.code:
            flush()  # `--help` and `--version` have printed
        raise


def _without_output(error: OutputError) -> int:
    give_up_output()
    # Whose reader left (`kavka storage dump ... | head`) has nobody to tell.
    return error.exit_code if error.exit_code == READER_LEFT else complain("kavka", error)


class _Parser(argparse.ArgumentParser):
    """Python's own hides that `--help` and `--version` cannot be written, and writes them elsewhere."""

    def _print_message(self, message: str, file: "SupportsWrite[str] | None" = None) -> None:
        """Raises OutputError."""
        if file is not None and file is sys.stderr:
            super()._print_message(message, file)
        elif message:
            emit(message.removesuffix("\n"))


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = _Parser(prog="kavka", description="A broker that speaks Kafka's protocol.")
    parser.add_argument("--version", action="version", version=f"kavka {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    groups: dict[str, argparse._SubParsersAction[_Parser]] = {}
    for name in verb_names():
        verb = cast(Verb, importlib.import_module(f"kavka.cli.verbs.{name}"))
        group, _, word = name.partition("_")
        if not word:
            parent, word = commands, group
        elif group in groups:
            parent = groups[group]
        else:
            group_parser = commands.add_parser(group, help=f"commands about {group}; see kavka {group} --help")
            parent = groups[group] = group_parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
        verb_parser = parent.add_parser(word, help=verb.HELP, description=verb.HELP)
        verb.add_arguments(verb_parser)
        verb_parser.set_defaults(verb=verb)
    return parser


def verb_names() -> list[str]:
    """The verbs' module names, in order."""
    folder = Path(__file__).with_name("verbs")
    return sorted(path.stem for path in folder.glob("[a-z]*.py"))
