"""The parsers of commands: what is wrong with a command line is said on one line."""

import argparse
import sys
from typing import TYPE_CHECKING, Final, NoReturn

from kavka.cli.output import emit

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

WRONG_USAGE: Final = 2


class Parser(argparse.ArgumentParser):
    """Python's own prints its usage with each complaint, and hides that `--help` and `--version` cannot be written.

    A flag is never taken for another that it begins: scripts would break when a longer one comes.
    """

    def __init__(self, prog: str, description: str, example: str = "") -> None:
        """`example` is shown below the flags."""
        epilog = "\n".join(["example:", *(f"  {line}" for line in example.splitlines())]) if example else None
        super().__init__(
            prog=prog,
            description=description,
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )

    def error(self, message: str) -> NoReturn:
        """Raises SystemExit."""
        self.exit(WRONG_USAGE, f"{self.prog}: {' '.join(message.split())}; see {self.prog} --help\n")

    def _print_message(self, message: str, file: "SupportsWrite[str] | None" = None) -> None:
        """Raises OutputError."""
        if file is not None and file is sys.stderr:
            super()._print_message(message, file)
        elif message:
            emit(message.removesuffix("\n"))
