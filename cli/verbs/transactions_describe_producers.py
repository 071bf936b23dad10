"""`kavka transactions describe-producers`: the producers that partitions remember."""

import argparse

HELP = "describe the producers that partitions remember"
EXAMPLE = "kavka transactions describe-producers --topic visits --partition 0"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from kavka.cli.transactions.describing_producers import add_arguments as add

    add(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.transactions.describing_producers import run as describe

    return describe(args)
