"""Flags of `kavka users`. Loads nothing of the client."""

import argparse
from typing import Final

from kavka.cli.failing import Failure
from kavka.cli.parsing import WRONG_USAGE

MECHANISMS: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
LEAST_ITERATIONS: Final = 4096
MOST_ITERATIONS: Final = 16384
"""What Kafka's brokers take."""


def add_credential_arguments(parser: argparse.ArgumentParser) -> None:
    """Who gets which password."""
    parser.add_argument("--user", required=True, metavar="NAME", help="the user")
    parser.add_argument(
        "--mechanism",
        action="append",
        choices=MECHANISMS,
        help=f"for which the password is; may be given twice (default {MECHANISMS[1]})",
    )
    parser.add_argument(
        "--iterations",
        type=int,
        default=LEAST_ITERATIONS,
        metavar="N",
        help=f"rounds of hashing, {LEAST_ITERATIONS} (the default) to {MOST_ITERATIONS}",
    )
    parser.add_argument(
        "--password-file",
        metavar="FILE",
        help="its first line is the password; -: standard input; else it is asked for",
    )


def mechanisms_of(args: argparse.Namespace) -> list[str]:
    """Those that were given, each once, or the default. Raises Failure for a number of rounds that brokers refuse."""
    if not LEAST_ITERATIONS <= args.iterations <= MOST_ITERATIONS:
        raise Failure(
            f"--iterations {args.iterations} is not from {LEAST_ITERATIONS} to {MOST_ITERATIONS}",
            exit_code=WRONG_USAGE,
        )
    return list(dict.fromkeys(args.mechanism or [MECHANISMS[1]]))
