"""Questions before something is done that cannot be undone."""

import sys

from kavka.cli.failing import Failure
from kavka.cli.parsing import WRONG_USAGE


def confirm(question: str) -> bool:
    """Whether whoever sits at the terminal says y. Raises Failure where nobody does."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise Failure("nobody can be asked, as standard input is no terminal", "--force asks nobody", WRONG_USAGE)
    print(f"{question} (y/n) ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
