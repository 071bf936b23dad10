"""`kavka transactions describe`: what coordinators know of transactional ids."""

import argparse

from kavka.cli.argument_types import wrong
from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.showing import add_output_arguments, show

HELP = "describe what transactional ids are doing"
EXAMPLE = "kavka transactions describe billing"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ids", nargs="*", metavar="ID", help="transactional ids")
    parser.add_argument("--transactional-id", action="append", default=[], metavar="ID", help="the same")
    add_connection_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    import time

    from kavka.cli.failing import tried
    from kavka.cli.transactions.listing import description_table

    ids = list(dict.fromkeys([*args.ids, *args.transactional_id]))
    if not ids:
        raise wrong("name a transactional id")
    with open_admin(args) as admin:
        described, failure = tried(lambda: admin.describe_transactions(ids))
    show(args, description_table(described.values(), time.time_ns() // 1_000_000))
    if failure is not None:
        raise failure
    return 0
