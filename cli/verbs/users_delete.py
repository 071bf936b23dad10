"""`kavka users delete`: takes a user's password away."""

import argparse

from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.users.arguments import MECHANISMS

HELP = "take a user's password away"
EXAMPLE = "kavka users delete --user alice --mechanism SCRAM-SHA-256"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--user", required=True, metavar="NAME", help="the user")
    parser.add_argument(
        "--mechanism", action="append", required=True, choices=MECHANISMS, help="for which; may be given twice"
    )
    add_connection_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.users.credentials import delete

    with open_admin(args) as admin:
        delete(admin, args)
    return 0
