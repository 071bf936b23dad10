"""`kavka users list`: who has a password."""

import argparse

from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.showing import add_output_arguments, show

HELP = "list the users that have a password, and for which mechanisms"
EXAMPLE = "kavka users list --user alice"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--user", action="append", metavar="NAME", help="only this user; may be repeated")
    add_connection_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.failing import tried
    from kavka.cli.users.credentials import user_table

    with open_admin(args) as admin:
        found, failure = tried(lambda: admin.describe_user_scram_credentials(args.user))
    show(args, user_table(found))
    if failure is not None:
        raise failure
    return 0
