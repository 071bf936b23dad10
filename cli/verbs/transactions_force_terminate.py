"""`kavka transactions force-terminate`: abort the transaction that a transactional id has now."""

import argparse

from kavka.cli.connecting import add_connection_arguments, open_admin

HELP = "abort the transaction of a transactional id, and fence its producer"
EXAMPLE = "kavka transactions force-terminate --transactional-id billing"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--transactional-id", required=True, metavar="ID")
    add_connection_arguments(parser)


def run(args: argparse.Namespace) -> int:
    with open_admin(args) as admin:
        admin.force_terminate_transaction(args.transactional_id)
    return 0
