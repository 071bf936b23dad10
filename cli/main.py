"""`kavka`: runs the one command that is named, and imports no other (`kavka.cli.tree`).

A verb imports what it needs inside `run`: `kavka broker` must not pay for the other commands.
"""

import sys
from collections.abc import Callable, Sequence
from typing import Final

from kavka import __version__
from kavka.cli.failing import expected_errors, reported
from kavka.cli.output import READER_LEFT, OutputError, complain, flush, give_up_output
from kavka.cli.parsing import Parser
from kavka.cli.tree import Command, commands, help_of, verb_of

DESCRIPTION: Final = "A broker that speaks Kafka's protocol, and all that its operators need."


def main(argv: Sequence[str] | None = None, *, on_ready: Callable[[], object] | None = None) -> int:
    """Run one command and return its exit code, as cli/README.md lists them.

    `on_ready` is called just before the command does anything. Raises KeyboardInterrupt.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        return _run(arguments, on_ready)
    except OutputError as error:
        give_up_output()
        # Whose reader left (`kavka storage dump ... | head`) has nobody to tell.
        return error.exit_code if error.exit_code == READER_LEFT else complain("kavka", error)
    except SystemExit as done:
        # Of argparse: after `--help`, or after it said what is wrong.
        return done.code if isinstance(done.code, int) else 0


def _run(arguments: list[str], on_ready: Callable[[], object] | None) -> int:
    """Raises OutputError, SystemExit."""
    command = named(arguments, commands())
    if command is None:
        parser, rest = overview(arguments)
        try:
            parser.parse_args(rest)
        finally:
            flush()  # `--help` and `--version` have printed
        raise AssertionError(f"{arguments} names a command after all")
    verb = verb_of(command)
    prog = " ".join(("kavka", *command.words))
    parser = Parser(prog, verb.HELP, verb.EXAMPLE)
    verb.add_arguments(parser)
    try:
        args = parser.parse_args(arguments[len(command.words) :])
    finally:
        flush()
    if not sys.platform.startswith("linux"):
        # What the commands import needs Linux's system calls, so this comes first.
        return complain("kavka", f"Linux is required, and this is {sys.platform}; a Linux container or VM will do")
    if on_ready is not None:
        on_ready()
    try:
        code = verb.run(args)
    except OutputError:
        raise
    except expected_errors() as error:
        code = reported(prog, error)
    flush()
    return code


def named(arguments: Sequence[str], tree: Sequence[Command]) -> Command | None:
    """The command that the arguments begin with."""
    for command in tree:
        if tuple(arguments[: len(command.words)]) == command.words:
            return command
    return None


def overview(arguments: list[str]) -> tuple[Parser, list[str]]:
    """For arguments that name no command: a parser that helps and complains, and what it is to be given."""
    tree = commands()
    noun = arguments[0] if arguments else None
    below = [command for command in tree if len(command.words) > 1 and command.words[0] == noun]
    if below:
        parser = Parser(f"kavka {noun}", f"Commands about {noun}.")
        rows = {command.words[1]: help_of(command) for command in below}
    else:
        parser = Parser("kavka", DESCRIPTION)
        parser.add_argument("--version", action="version", version=f"kavka {__version__}")
        rows = _nouns(tree)
    children = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for word, text in rows.items():
        children.add_parser(word, help=text, description="")
    return parser, arguments[1:] if below else arguments


def _nouns(tree: Sequence[Command]) -> dict[str, str]:
    """What stands first in commands, and in a line what it can do."""
    rows: dict[str, str] = {}
    for command in tree:
        noun, *verbs = command.words
        if not verbs:
            rows[noun] = help_of(command)
        else:
            rows[noun] = f"{rows[noun]}, {verbs[0]}" if noun in rows else verbs[0]
    return rows
