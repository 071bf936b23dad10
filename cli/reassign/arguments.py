"""Flags that several commands about reassignments share. Loads nothing of the client."""

import argparse
from collections.abc import Callable


def add_file_argument(parser: argparse.ArgumentParser) -> None:
    """The reassignment that a command is about."""
    parser.add_argument(
        "--reassignment-json-file",
        required=True,
        metavar="FILE",
        help="the reassignment, as JSON of `kavka reassign plan --out`, or of Kafka's tool",
    )


def add_limit_arguments(parser: argparse.ArgumentParser) -> None:
    """How fast brokers may copy."""
    parser.add_argument(
        "--throttle", type=number_from(0), metavar="BYTES/S", help="limit of what brokers copy from each other"
    )
    parser.add_argument(
        "--replica-alter-log-dirs-throttle",
        type=number_from(0),
        metavar="BYTES/S",
        help="limit of what brokers copy between their own log directories",
    )


def add_timeout_argument(parser: argparse.ArgumentParser) -> None:
    """Kafka's `--timeout`."""
    parser.add_argument(
        "--timeout",
        type=number_from(1),
        default=10_000,
        metavar="MS",
        help="how long moves between log directories may take to begin (default 10000)",
    )


def add_own_broker_list(parser: argparse.ArgumentParser, *, required: bool) -> None:
    """Brokers by id, as the flag is called in Kafka's tool: it is no old name of --bootstrap-server here.

    To be called last: it takes the name from the connection's flags.
    """
    group = parser.add_argument_group("brokers", conflict_handler="resolve")
    group.add_argument(
        "--broker-list",
        type=broker_ids,
        required=required,
        metavar="ID[,...]",
        help="the brokers that are to have them",
    )


def broker_ids(text: str) -> list[int]:
    """`1,2,3`. Raises argparse.ArgumentTypeError."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdecimal() for part in parts):
        raise argparse.ArgumentTypeError(f"{text!r} is no list of broker ids, such as 1,2,3")
    found = [int(part) for part in parts]
    if len(set(found)) < len(found):
        raise argparse.ArgumentTypeError(f"{text!r} names a broker twice")
    return found


def number_from(lowest: int) -> Callable[[str], int]:
    """The type of whole numbers that are not lower. What it gives raises argparse.ArgumentTypeError."""

    def parse(text: str) -> int:
        if not (text.isascii() and text.isdecimal()) or int(text) < lowest:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number from {lowest} on")
        return int(text)

    return parse
