"""Secrets from a prompt, standard input or a file: on a command line everybody on the machine could read them."""

import sys
from pathlib import Path
from typing import Final

from kavka.cli.failing import Failure
from kavka.cli.parsing import WRONG_USAGE

STDIN: Final = "-"
MOST_BYTES: Final = 64 * 1024


def read_secret(path: str | None, what: str, flag: str) -> str:
    """The first line of the file, of standard input for `-`, or without a path what is typed, twice, at the terminal.

    `what` is it for people, `flag` names the path's. Raises Failure, OSError.
    """
    if path is None:
        return _typed(what, flag)
    if path == STDIN:
        text = sys.stdin.readline(MOST_BYTES) if sys.stdin is not None else ""
    else:
        with Path(path).open(encoding="utf-8") as file:
            try:
                text = file.readline(MOST_BYTES)
            except UnicodeDecodeError as error:
                raise Failure(f"{path}: no UTF-8 at byte {error.start}") from error
    secret = text.rstrip("\r\n")
    if not secret:
        raise Failure(f"no {what} in {'standard input' if path == STDIN else path}")
    return secret


def _typed(what: str, flag: str) -> str:
    if sys.stdin is None or not sys.stdin.isatty():
        raise Failure(
            f"nobody can be asked for the {what}, as standard input is no terminal",
            f"{flag} FILE has it read from a file, or with {STDIN} from standard input",
            WRONG_USAGE,
        )
    from getpass import getpass

    try:
        typed = getpass(f"{what.capitalize()}: ")
        if not typed:
            raise Failure(f"no {what} was typed")
        if getpass("The same again: ") != typed:
            raise Failure("the two are not the same")
    except EOFError:
        raise Failure(f"no {what} was typed") from None
    return typed
